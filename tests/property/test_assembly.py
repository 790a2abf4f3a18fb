"""What holds for every assembly, whatever its sources give."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapster.engine.assembly import (
    AssemblyResult,
    Carried,
    InvalidAssembly,
    SourceDefinition,
    freeze_context,
    normalise_preset,
    project_system_snapshots,
)
from tapster.engine.assembly.assemble import assemble_request
from tapster.engine.assembly.layout_blocks import REGION_ORDER
from tapster.engine.ecma import stringify, utf16_length
from tapster.engine.errors import TapsterError
from tests.support.assembly import Case, cases, laid_out_cases


def native_ids(result: AssemblyResult, case: Case) -> list[str]:
    known = {message["id"] for message in case.native}
    return [message["id"] for message in result.messages if message["id"] in known]


@given(cases())
def test_tool_transactions_are_never_split(case: Case) -> None:
    opened: set[str] = set()
    for message in case.assemble().messages:
        if message["role"] == "tool":
            opened.remove(message["toolCallId"])
            continue
        assert not opened
        opened = {block["id"] for block in message["content"] if block["type"] == "tool-call"}
    assert not opened


@given(cases())
def test_native_messages_are_all_there_once_and_in_order(case: Case) -> None:
    assert native_ids(case.assemble(), case) == [message["id"] for message in case.native]


@given(cases(placement="st"), st.randoms(use_true_random=False))
def test_listing_order_never_changes_who_owns_a_block(case: Case, random: st.DataObject) -> None:
    rules = list(case.preset["rules"])
    random.shuffle(rules)  # type: ignore[attr-defined]
    shuffled = attrs.evolve(case, preset={**case.preset, "rules": rules})
    assert emitted(case.assemble()) == emitted(shuffled.assemble())


def emitted(result: AssemblyResult) -> dict[str, str]:
    """Which blocks stand in the request as their own, with the text each came to."""
    return {node.id: node.text for node in result.nodes if node.module not in ("history", "input")}


@given(cases())
def test_the_same_frozen_input_gives_the_same_bytes(case: Case) -> None:
    assert stringify(case.assemble().to_json()) == stringify(case.assemble().to_json())


@given(cases())
def test_a_preview_shows_exactly_what_is_sent(case: Case) -> None:
    preview, real = case.assemble(preview=True), case.assemble()
    assert stringify(list(preview.messages)) == stringify(list(real.messages))
    assert [node.to_json() for node in preview.nodes] == [node.to_json() for node in real.nodes]


@given(cases())
def test_every_message_and_every_character_has_an_origin(case: Case) -> None:
    result = case.assemble()
    covered = [index for node in result.nodes for index in range(node.start, node.start + node.count)]
    assert covered == list(range(len(result.messages)))
    for node in result.nodes:
        position = 0
        for span in node.spans:
            assert span.start == position
            assert span.end > span.start
            position = span.end
        assert position == utf16_length(node.text)


@given(cases())
def test_system_snapshots_say_who_wrote_each_character(case: Case) -> None:
    result = case.assemble()
    projection = project_system_snapshots(result, case.native, system_prompt_update="in-history")
    logical = {message["id"]: message for message in result.messages}
    for system in projection.systems:
        text = projection.messages[system.index]["content"][0]["text"]
        assert [span.start for span in system.spans] == [0, *[span.end for span in system.spans[:-1]]]
        assert system.spans[-1].end == utf16_length(text)
        assert all(span.key in logical for span in system.spans)


@given(cases(), st.data())
def test_a_failing_source_gives_nothing_and_leaves_nothing(case: Case, data: st.DataObject) -> None:
    registry = case.registry()
    listed = [rule["kind"] for rule in case.preset["rules"]]
    before = registry.descriptors()

    def fail(context: object, rule: object) -> object:
        raise InvalidAssembly("broken", code="BROKEN")

    registry.register(SourceDefinition(id="broken", plugin_id="test.plugin", name="broken", resolve=fail))
    place = data.draw(st.integers(0, len(listed)))
    rules = list(case.preset["rules"])
    rules.insert(place, {"id": "broken", "kind": "broken"})
    context = freeze_context(normalise_preset({**case.preset, "rules": rules}), case.native, input_ids=case.input_ids)
    frozen = stringify(list(context.native_messages))
    carried = Carried()
    with pytest.raises(TapsterError) as raised:
        assemble_request(registry, context, carried)
    assert raised.value.code == "BROKEN"
    assert carried.snapshots == ()
    assert stringify(list(context.native_messages)) == frozen
    assert registry.descriptors()[: len(before)] == before


def assembled(case: Case) -> AssemblyResult | None:
    """The request, or None for a declared refusal; anything else is a crash."""
    try:
        return case.assemble()
    except TapsterError:
        return None


@given(laid_out_cases())
def test_any_layout_gives_a_whole_request_or_a_declared_refusal(case: Case) -> None:
    result = assembled(case)
    if result is None:
        return
    known = [message["id"] for message in case.native]
    found = native_ids(result, case)
    assert sorted(found) == sorted(set(known) & set(found))
    covered = [index for node in result.nodes for index in range(node.start, node.start + node.count)]
    assert covered == list(range(len(result.messages)))
    assert stringify(result.to_json()) == stringify(case.assemble().to_json())
    if result.placement_controls is not None:
        assert found == known
        regions = [node.region for node in result.nodes]
        assert regions == sorted(regions, key=list(REGION_ORDER).index)
