"""What is shown of records old and new, and how parts are named (spec/trace §3, §11)."""

import pytest

from tapster.engine.errors import RequestError
from tapster.engine.trace import (
    AssemblyPart,
    OfficialAssembly,
    PartSource,
    TraceSources,
    audit_rows,
    decode_segment,
    find_record,
    index_rows,
    name_parts,
    section_name,
    storable,
)
from tapster.engine.trace.render import record_assembly
from tapster.engine.trace.sections import recorded_source

NEW = {"schemaVersion": 4, "id": "a", "sessionId": "s", "recordedAt": 5, "audit": {"id": "1:0:1", "captureId": "c"}}
OLD = {"schemaVersion": 3, "id": "a", "sessionId": "s", "recordedAt": 1, "sections": []}
LEGACY = {"id": "1:0:1", "turn": 1, "step": 0, "attempt": 1, "recordedAt": 5}


def test_a_new_record_hides_an_old_one_of_its_id() -> None:
    sources = TraceSources([NEW], [OLD, {**OLD, "id": "b"}])
    assert [(item["schemaVersion"], item["id"]) for item in index_rows("s", sources)] == [(3, "b"), (4, "a")]
    found = find_record("s", "a", sources)
    assert found is NEW


def test_a_legacy_row_is_hidden_by_its_capture_id_only() -> None:
    sources = TraceSources([NEW], (), [LEGACY, {**LEGACY, "captureId": "c"}, {**LEGACY, "captureId": "other"}])
    assert [item["id"] for item in index_rows("s", sources)] == ["legacy:1:0:1", "legacy:1:0:1", "a"]
    assert [item.get("captureId") for item in audit_rows(sources)] == [None, "other", "c"]


def test_only_the_last_legacy_rows_are_shown() -> None:
    rows = [{**LEGACY, "id": f"{number}:0:1"} for number in range(200)]
    shown = index_rows("s", TraceSources((), (), rows))
    assert (len(shown), shown[0]["id"]) == (128, "legacy:72:0:1")
    assert find_record("s", "legacy:0:0:1", TraceSources((), (), rows)) is None
    assert find_record("s", "legacy:199:0:1", TraceSources((), (), rows)) is not None


def test_part_names() -> None:
    source = PartSource("world book", "entry/1", "x")
    assert section_name(3, [source]) == "pmp-dsh-tavern:part:0003:world_book:entry_1"
    assert section_name(12345, []) == "pmp-dsh-tavern:part:12345:generated:header"
    parts = name_parts([("", [source]), ("A", [source]), ("B", [])])
    assert [part.name.split(":")[2] for part in parts] == ["0000", "0001"]


def test_a_source_is_recorded_without_its_text() -> None:
    entry = PartSource("worldbook", "content", "Text 😀", "w1", is_entry=True, entry_id="7", qualified_entry_id="w1:7")
    recorded = recorded_source(entry.to_json())
    assert "text" not in recorded
    assert (recorded["characters"], recorded["utf16Units"], recorded["utf8Bytes"]) == (6, 7, 9)
    assert (recorded["entryId"], recorded["qualifiedEntryId"]) == ("7", "w1:7")
    assert recorded["textStatus"] == "not-stored"
    assert recorded_source({"kind": "user"})["hash"] == recorded_source({"kind": "user", "text": ""})["hash"]


@pytest.mark.parametrize("text", ["{{missing}}", "{{Upper}}", "{{ a }}", "{{}}", "{{number}}", "{{__proto__}}"])
def test_one_unresolved_placeholder_makes_the_assembly_unavailable(text: str) -> None:
    variables = {"a": "x", "Upper": "x", "number": 5}
    assert record_assembly(OfficialAssembly((AssemblyPart("n", text),), (), variables)) is None


def test_placeholders_are_replaced_once_unless_told_not_to() -> None:
    parts = (AssemblyPart("a", "{{a}}"), AssemblyPart("b", "{{a}}", interpolate=False), AssemblyPart("c", "{{e}}"))
    recorded = record_assembly(OfficialAssembly(parts, (), {"a": "{{b}}", "e": ""}))
    assert recorded is not None
    places = [(part["index"], part["utf16Units"], part["offsetUtf16"]) for part in recorded.sections]
    assert places == [(0, 5, 0), (1, 5, 7)]


def test_storing_strips_every_text() -> None:
    record = {
        **NEW,
        "requestAssembly": {"x": 1},
        "nativeSourceRefs": [{"text": "t", "hash": "h"}],
        "contexts": [{"name": "n", "text": "t", "sources": []}],
        "failureRef": {"eventSeq": 1},
        "failureStatus": "available",
        "failure": {"code": "c"},
        "bodyStorage": "elsewhere",
    }
    kept = storable(record)
    assert kept["nativeSourceRefs"] == [{"hash": "h"}]
    assert kept["contexts"] == [{"name": "n", "sources": []}]
    assert (kept["failureStatus"], kept["bodyStorage"]) == ("reference-only", "official-session")
    assert not {"requestAssembly", "failure"} & set(kept)


@pytest.mark.parametrize(("raw", "text"), [("a", "a"), ("%3A", ":"), ("%E7%81%AF", "灯"), ("a+b", "a+b")])
def test_segments(raw: str, text: str) -> None:
    assert decode_segment(raw) == text


@pytest.mark.parametrize("raw", ["%", "%1", "%GG", "%FF", "%E7%81", "%+1"])
def test_malformed_segments(raw: str) -> None:
    with pytest.raises(RequestError):
        decode_segment(raw)
