"""The profile's byte budget and the contract's macros over random input."""

import itertools
import re

from hypothesis import given
from hypothesis import strategies as st

from tapster.engine.ecma import trim
from tapster.engine.profile import LoreEntry, ProfileCharacter, ProfileInput, ProfileTooLarge, fit_profile, joined
from tapster.engine.text.tavern_macros import MacroContext, expand_macros

TEXTS = st.text(st.sampled_from("ab灯🌙 \n"), max_size=20)
CONTEXT = MacroContext()


def size(given_input: ProfileInput) -> int:
    rendering = fit_profile(given_input, CONTEXT, lambda: 0.5).rendering
    return len(joined(rendering.parts).encode())


@given(lore=st.lists(TEXTS, max_size=12), description=TEXTS, budget=st.integers(1, 120))
def test_the_longest_prefix_that_fits_is_kept(lore: list[str], description: str, budget: int) -> None:
    entries = tuple(LoreEntry(text, id=str(index)) for index, text in enumerate(lore))
    character = ProfileCharacter("c", "Bo", {"description": description})
    whole = ProfileInput(character=character, lore=entries, max_bytes=budget)
    try:
        fitted = fit_profile(whole, CONTEXT, lambda: 0.5)
    except ProfileTooLarge:
        assert len(trim(description).encode()) > budget
        return
    filled = [entry for entry in entries if trim(entry.content)]
    assert list(fitted.lore) == filled[: len(fitted.lore)]
    assert len(joined(fitted.rendering.parts).encode()) <= budget
    if len(fitted.lore) < len(filled):
        more = tuple(filled[: len(fitted.lore) + 1])
        bigger = size(ProfileInput(character=character, lore=more, max_bytes=100_000))
        read = sum(len(entry.content.encode()) for entry in more)
        assert bigger > budget or read > 2 * budget


@given(st.text(st.sampled_from("{}:/ abusertvx,13d+\n"), max_size=60), st.lists(st.floats(-2, 2), max_size=4))
def test_an_expanded_text_holds_no_macro_and_is_trimmed(text: str, draws: list[float]) -> None:
    draw = itertools.cycle(draws or [0.0]).__next__
    expanded = expand_macros(text, CONTEXT, draw=draw).text
    assert re.search(r"\{\{.*?\}\}", expanded, re.DOTALL) is None
    assert expanded == trim(expanded)
