"""Read faults, kills in mid-write and damaged files, on every durable engine (symptoms of public reports)."""

from typing import Any

import pytest

from tests.conformance.adapters.user_store import compare_runs, user_store

POINTS = ["before_first_byte", "half_written", "all_written", "synced"]


def check(given: Any, expected: Any) -> None:
    assert compare_runs(expected, user_store(given)) == []


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 200_000])
def test_a_kill_leaves_the_old_or_the_new_document(size: int) -> None:
    steps = [
        {"op": "write", "doc": "chat-2", "value": {"messages": ["x" * size]}, "label": "old"},
        {"op": "crash_at", "point": "each"},
        {"op": "write", "doc": "chat-2", "value": {"messages": ["y" * size, "z"]}, "label": "new", "base": "old"},
        {"op": "start"},
        {"op": "open", "doc": "chat-2"},
        {"op": "write", "doc": "chat-2", "messages": 3, "label": "later"},
        {"op": "stop"},
        {"op": "start"},
    ]
    runs = user_store({"steps": steps, "points": POINTS})
    results = [{"ok": True}, {"ok": True}, {"crashed": True}, {"ok": True}, {"state_is_one_of": ["old", "new"]}]
    expected = {"results": [*results, *[{"ok": True}] * 3], "final": {"chat-2": {"state": "later", "messages": 3}}}
    assert compare_runs(expected, runs) == []
    for engine in ("sqlite", "files"):
        assert runs[f"{engine} before_first_byte"]["results"][4]["state"] == "old"
        assert runs[f"{engine} half_written"]["results"][4]["state"] == "old"
        assert runs[f"{engine} synced"]["results"][4]["state"] == "new"


@pytest.mark.slow
def test_the_first_write_may_be_killed_too() -> None:
    steps = [
        {"op": "crash_at", "point": "half_written"},
        {"op": "write", "doc": "settings", "value": {"a": 1}, "label": "new"},
        {"op": "start"},
        {"op": "open", "doc": "settings"},
    ]
    expected = {"results": [{"ok": True}, {"crashed": True}, {"ok": True}, {"state": None}]}
    check({"steps": steps}, expected)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"messages": [1', "\ufeff{}", "Öl\x00"])
@pytest.mark.parametrize("document", ["settings", "chat-7"])
def test_an_unreadable_document_is_kept_aside(document: str, text: str) -> None:
    steps = [
        {"op": "write", "doc": "chat-1", "messages": 2, "label": "r"},
        {"op": "write", "doc": document, "value": {"messages": []}, "label": "lost"},
        {"op": "stop"},
        {"op": "put_bytes", "doc": document, "text": text},
        {"op": "start"},
        {"op": "open", "doc": document},
        {"op": "write", "doc": document, "value": {"n": 1}, "label": "again", "base": None},
        {"op": "stop"},
        {"op": "start"},
    ]
    warning = {"code": "unreadable_moved_aside", "mention": [document]}
    ok = {"ok": True}
    expected = {
        "results": [ok, ok, ok, ok, {"ok": True, "warnings": [warning]}, {"state": None}, ok, ok, ok],
        "final": {document: {"state": "again"}, "chat-1": {"state": "r", "messages": 2}},
        "kept_aside": {document: text},
    }
    check({"engine": "files", "steps": steps}, expected)


def test_a_passing_read_error_moves_nothing() -> None:
    steps = [
        {"op": "write", "doc": "settings", "value": {"n": 1}, "label": "r"},
        {"op": "fault", "doc": "settings", "on": "read", "errno": "EACCES"},
        {"op": "stop"},
        {"op": "start"},
        {"op": "open", "doc": "settings"},
        {"op": "write", "doc": "settings", "value": {}, "base": None},
        {"op": "clear_faults"},
    ]
    failed = {"error": {"code": "read_failed", "mention": ["settings"]}}
    refused = {"error": {"code": "conflict", "mention": ["settings"]}}
    ok = {"ok": True}
    expected = {"results": [ok, ok, ok, ok, failed, refused, ok], "final": {"settings": {"state": "r"}}}
    check({"steps": steps}, expected)
