"""The profile within its byte budget: static text is never cut, lore is, from its end.

Source: spec/loader §8.5.
"""

from collections.abc import Callable

import attrs

from tapster.engine.ecma import trim, utf8
from tapster.engine.errors import RequestError
from tapster.engine.limits import PROFILE_LORE_INPUT_FACTOR, PROFILE_MAX_LORE_ENTRIES
from tapster.engine.text.ports import Checkpoint, go_on
from tapster.engine.text.tavern_macros import Draw, MacroContext

from .draws import Tape
from .inputs import LoreEntry, ProfileInput
from .parts import Diagnostic, joined
from .render import Rendering, render_combined, render_preset


class ProfileTooLarge(RequestError):
    """The profile without any lore is over its byte budget; ``details`` has actual and maximum bytes."""

    code = "TAVERN_PROFILE_TOO_LARGE"
    status = 413


@attrs.frozen
class FittedProfile:
    """A rendering that fits, and the lore that it was made with."""

    rendering: Rendering
    lore: tuple[LoreEntry, ...]


def fit_profile(
    given: ProfileInput, context: MacroContext, draw: Draw, checkpoint: Checkpoint = go_on
) -> FittedProfile:
    """The profile with as many of the lore entries, from the first, as its budget allows.

    Every attempt sees the same random draws, so what is measured is what is returned.

    Raises:
        ProfileTooLarge: it doesn't fit even without lore.
    """
    tape = Tape(draw)

    def attempt(count: int) -> Rendering:
        tape.rewind()
        if given.preset is not None and given.preset_only:
            return render_preset(given.preset, context, tape, checkpoint, given.variables)
        return render_combined(attrs.evolve(given, lore=lore[:count]), context, tape, checkpoint)

    lore = tuple(entry for entry in given.lore if trim(entry.content))
    bare = attempt(0)
    size = _size(bare)
    if size > given.max_bytes:
        raise ProfileTooLarge(
            f"the profile needs {size} bytes without any lore, at most {given.max_bytes} are allowed: shorten the "
            "preset, card or persona",
            details={"actualBytes": size, "maxBytes": given.max_bytes},
        )
    if not lore:
        return FittedProfile(bare, ())
    candidates = _candidate_count(lore, given.max_bytes)
    whole = attempt(candidates)
    measured = _size(whole)
    if candidates == len(lore) and measured <= given.max_bytes:
        return FittedProfile(whole, lore)
    count, best = _longest_prefix(candidates, whole, bare, attempt, given.max_bytes)
    limited = _limited(given, lore, count, measured)
    return FittedProfile(attrs.evolve(best, diagnostics=(*best.diagnostics, limited)), lore[:count])


def _candidate_count(lore: tuple[LoreEntry, ...], max_bytes: int) -> int:
    room = PROFILE_LORE_INPUT_FACTOR * max_bytes
    for count, entry in enumerate(lore[:PROFILE_MAX_LORE_ENTRIES]):
        room -= len(utf8(entry.content))
        if room < 0:
            return count
    return min(len(lore), PROFILE_MAX_LORE_ENTRIES)


def _longest_prefix(
    candidates: int, whole: Rendering, bare: Rendering, attempt: Callable[[int], Rendering], max_bytes: int
) -> tuple[int, Rendering]:
    """The longest prefix that fits, by binary search: size is assumed to grow with the count."""
    if _size(whole) <= max_bytes:
        return candidates, whole
    low, best, high = 0, bare, candidates - 1
    while low < high:
        middle = (low + high + 1) // 2
        tried = attempt(middle)
        if _size(tried) <= max_bytes:
            low, best = middle, tried
        else:
            high = middle - 1
    return low, best


def _size(rendering: Rendering) -> int:
    return len(utf8(joined(rendering.parts)))


def _limited(given: ProfileInput, lore: tuple[LoreEntry, ...], kept: int, measured: int) -> Diagnostic:
    omitted = len(lore) - kept
    return Diagnostic(
        "TAVERN_PROFILE_LORE_LIMITED",
        "warning",
        f"{omitted} of {len(lore)} active lore entries were left out: the profile may have {given.max_bytes} bytes",
        (
            ("maxProfileBytes", given.max_bytes),
            ("measuredCandidateBytes", measured),
            ("maxLoreInputBytes", PROFILE_LORE_INPUT_FACTOR * given.max_bytes),
            ("retainedLoreEntries", kept),
            ("omittedLoreEntries", omitted),
        ),
    )
