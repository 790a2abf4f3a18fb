"""The v1 audit file: what leaves first, and what is refused (spec/trace §9)."""

from typing import Any

import pytest

from tapster.engine.ecma import stringify
from tapster.engine.errors import RequestError, StoreError
from tapster.engine.trace import AuditBook, AuditLimits

Json = Any


def audit(number: int, **more: Json) -> Json:
    return {"id": f"a{number}", "turn": 1, "step": 0, "attempt": 1, "recordedAt": number, "updatedAt": number, **more}


def size(*records: Json) -> int:
    return len(AuditBook().put("s", records).to_text().encode())


def test_a_record_that_leaves_counts_in_its_compact_form() -> None:
    records = [audit(number) for number in (1, 2, 3)]
    compact = len(stringify(records[0]).encode())
    limit = size(*records) - compact
    for max_bytes, kept in ((limit, ["a2", "a3"]), (limit - 1, ["a3"])):
        book = AuditBook(AuditLimits(max_total_bytes=max_bytes)).put("s", records)
        assert [record["id"] for record in book.sessions["s"]] == kept


def test_one_byte_less_and_the_oldest_leaves() -> None:
    pair = [audit(1), audit(2)]
    book = AuditBook(AuditLimits(max_total_bytes=size(*pair) - 1)).put("s", pair)
    assert [record["id"] for record in book.sessions["s"]] == ["a2"]


def test_one_that_fits_nowhere_is_refused() -> None:
    with pytest.raises(StoreError):
        AuditBook(AuditLimits(max_total_bytes=size(audit(1)) - 1)).put("s", [audit(1)])


@pytest.mark.parametrize(
    "records",
    [None, "a1", {"id": "a"}, [1], [{}], [audit(1, id="")], [audit(1, turn=1.5)], [audit(1, updatedAt=True)]],
)
def test_odd_records_are_refused(records: Json) -> None:
    with pytest.raises(RequestError):
        AuditBook().put("s", records)
