"""The SillyTavern renderer over random presets, chats and lore."""

import itertools
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.engine.profile.sillytavern import Injection, SpeakerNames, post_process
from tests.support import sillytavern as support

TEXTS = st.text(st.sampled_from("ab \n{}灯"), max_size=12)
ROLES = st.sampled_from(["system", "user", "assistant"])
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"content": TEXTS, "position": st.sampled_from([0, 1, 2, 3, 4, 5]), "depth": st.integers(0, 4)}
    ),
    max_size=4,
)
PROMPTS = st.lists(
    st.fixed_dictionaries(
        {
            "content": TEXTS,
            "role": ROLES,
            "injection_position": st.sampled_from([0, 1]),
            "injection_depth": st.integers(0, 3),
            "injection_order": st.sampled_from([50, 100, 200]),
        }
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None)
@given(
    extra=PROMPTS,
    entries=ENTRIES,
    texts=st.lists(TEXTS, max_size=5),
    injections=st.lists(st.builds(Injection, st.just("x"), TEXTS, depth=st.integers(0, 3), role=ROLES), max_size=2),
    context=st.integers(40, 120),
    squash=st.booleans(),
)
def test_every_character_has_one_source_and_the_budget_holds(
    extra: list[dict[str, Any]],
    entries: list[dict[str, Any]],
    texts: list[str],
    injections: list[Injection],
    context: int,
    squash: bool,
) -> None:
    named = [{"identifier": f"p{index}", **prompt} for index, prompt in enumerate(extra)]
    preset = support.prompts(
        "main", *support.MARKERS, *(str(prompt["identifier"]) for prompt in named), extra=named,
        openai_max_context=context, openai_max_tokens=0, squash_system_messages=squash,
    )  # fmt: skip
    source = support.given(preset, *texts, injections=tuple(injections), quirks="exact")
    assembly = support.run(source, *entries)
    itemisation = assembly.itemisation
    assert itemisation.covers(assembly.messages)
    assert sum(itemisation.by_source.values()) == itemisation.total
    assert assembly.built.budget_left >= 0
    assert itemisation.total <= context
    assert all(message.content for message in assembly.messages)


MESSAGES = st.lists(
    st.fixed_dictionaries({"role": ROLES, "content": TEXTS.filter(bool)}, optional={"name": st.just("Ann")}),
    max_size=6,
)


@settings(max_examples=80, deadline=None)
@given(messages=MESSAGES)
def test_strict_alternates_and_starts_with_the_user(messages: list[dict[str, Any]]) -> None:
    done = post_process(messages, "strict", SpeakerNames("Bo", "Ann"))
    roles = [message["role"] for message in done]
    assert "system" not in roles[1:]
    assert all(not message.get("name") for message in done)
    talk = roles[1:] if roles[:1] == ["system"] else roles
    assert all(left != right for left, right in itertools.pairwise(talk))
    assert talk[:1] == ["user"]
    assert post_process(messages, "", SpeakerNames()) == messages
