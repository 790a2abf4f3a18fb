"""The conformance runner: which lines run, and that no line ends the run."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.__main__ import main
from tests.conformance.runner import run_file, run_line


def vector(area: str, given: Any, expected: Any) -> str:
    return json.dumps({"id": f"{area}-1", "area": area, "input": given, "expected": expected})


def test_labels_of_sillytavern_files_are_only_labels(tmp_path: Path) -> None:
    path = tmp_path / "heldout.jsonl"
    line = vector(
        "a label nobody knows", {"scripts": [], "calls": [{"text": "x"}]}, {"outputs": ["x"], "variables": {}}
    )
    path.write_text(line + "\n\n", encoding="utf-8")
    assert [result.outcome for result in run_file(path, stem="st_regex")] == ["passed"]
    assert list(run_file(path, stem="st_regex", areas=["another"])) == []


def test_areas_are_a_union_and_may_be_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tavern_loader.jsonl"
    lines = [vector("rp.secret", {"name": name}, {"secret": True}) for name in (".env", "x.pem")]
    lines.append(vector("rp.normalize", {"value": 5}, {}))
    path.write_text("\n".join(lines), encoding="utf-8")
    assert main([str(path), "--area", "rp.secret", "--area", "nothing"]) == 0
    told = capsys.readouterr().out
    assert "nothing: 0 lines" in told
    assert told.splitlines()[-1] == "2 passed, 0 failed, 0 skipped"


@pytest.mark.parametrize(
    ("given", "expected"),
    [({"name": 5}, {"secret": True}), ({"name": ".env"}, None), ({}, {"secret": True})],
)
def test_an_odd_line_fails_and_nothing_more(given: Any, expected: Any) -> None:
    line = {"id": "x", "area": "rp.secret", "input": given, "expected": expected}
    assert run_line("tavern_loader", "rp.secret", line).outcome == "failed"


def test_a_report_that_cannot_be_compared_fails_and_nothing_more() -> None:
    line = {"id": "x", "repro": {"op": "macro", "text": "a"}, "expect": {"trace": 5}}
    assert run_line("user_reports", "user.macro", line).outcome == "failed"
