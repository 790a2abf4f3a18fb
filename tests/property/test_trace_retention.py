"""What holds of retained records whatever is written (spec/trace §2, §10)."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.engine.ecma import stringify, utf8
from tapster.engine.trace import AuditBook, AuditLimits, RetentionLimits, TraceBook, count, open_book
from tapster.engine.trace.audit import clip

Json = Any
LIMITS = RetentionLimits(max_records=5, max_record_bytes=4096, max_total_bytes=4096)
records = st.builds(
    lambda name, session, pad: {
        "schemaVersion": 4,
        "id": name,
        "sessionId": session,
        "turn": 1,
        "step": 0,
        "attempt": 1,
        "recordedAt": 1,
        "status": "assembled",
        "contentStatus": "reference-only",
        "pad": pad,
    },
    st.sampled_from(["a", "b", "c", "d", "e", "f", "g"]),
    st.sampled_from(["s", "t"]),
    st.text(max_size=8).map(lambda text: text * 120),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(records, max_size=20))
def test_the_book_stays_within_its_limits_and_survives_its_file(written: list[Json]) -> None:
    book = TraceBook(LIMITS)
    for record in written:
        book = book.put([record])
        key = (record["sessionId"], record["id"])
        assert list(book.rows)[-1] == key
    text = book.to_text()
    assert len(book.rows) <= LIMITS.max_records
    assert len(utf8(text)) <= LIMITS.max_total_bytes
    assert open_book(utf8(text), LIMITS).to_text() == text


@settings(max_examples=60, deadline=None)
@given(st.lists(records, min_size=1, max_size=12))
def test_what_stays_is_the_newest(written: list[Json]) -> None:
    book = TraceBook(LIMITS)
    for record in written:
        book = book.put([record])
    latest = list(dict.fromkeys((record["sessionId"], record["id"]) for record in reversed(written)))
    assert list(book.rows)[::-1] == latest[: len(book.rows)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("st"), st.integers(0, 50), st.integers(0, 300)), max_size=25))
def test_the_audit_file_stays_within_its_limit(written: list[tuple[str, int, int]]) -> None:
    book = AuditBook(AuditLimits(max_records_per_session=4, max_total_bytes=1500))
    for number, (session, updated_at, size) in enumerate(written):
        times = {"turn": 1, "step": 0, "attempt": 1, "recordedAt": 0, "updatedAt": updated_at}
        book = book.put(session, [{"id": f"r{number}", **times, "pad": "x" * size}])
        assert len(utf8(book.to_text())) <= 1500
        assert all(len(rows) <= 4 for rows in book.sessions.values())


@given(st.text(alphabet=st.characters(codec=None), max_size=40))
def test_counts_agree_with_the_encodings(text: str) -> None:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    counts = count(text)
    assert counts.characters == len(joined)
    assert counts.utf16_units == len(text.encode("utf-16-le", "surrogatepass")) // 2
    assert counts.utf8_bytes == len(joined.encode("utf-8", "surrogatepass"))


@given(st.text(max_size=20), st.integers(1, 10))
def test_clipping_keeps_short_texts_and_marks_cut_ones(text: str, units: int) -> None:
    clipped = clip(text, units)
    assert clipped is not None
    length = len(text.encode("utf-16-le")) // 2
    assert (clipped == text) if length <= units else clipped.endswith("…")
    assert len(stringify(clipped)) <= 6 * (units + 1) + 2
