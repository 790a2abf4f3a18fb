"""The suite's own copy of the vectors, all of it, through the conformance runner."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.registry import find_adapter
from tests.conformance.runner import area_of, read_lines, run_file
from tests.conformance.unbuilt import UNBUILT, is_unbuilt

VECTORS = Path(__file__).resolve().parent.parent / "vectors"


def areas() -> Iterator[tuple[str, str]]:
    for path in sorted(VECTORS.glob("*.jsonl")):
        found = dict.fromkeys(area for line in read_lines(path) if (area := area_of(path.stem, line)))
        yield from ((path.stem, area) for area in found)


@pytest.mark.parametrize(("stem", "area"), sorted(areas()))
def test_area(stem: str, area: str) -> None:
    if is_unbuilt(stem, area) and find_adapter(stem, area) is None:
        pytest.skip(f"{stem} {area} is known and not built")
    results = list(run_file(VECTORS / f"{stem}.jsonl", areas=[area]))
    failures = {result.line_id: result.differences for result in results if result.outcome == "failed"}
    assert results
    assert failures == {}


def test_what_is_unbuilt_has_no_adapter() -> None:
    built = [(stem, area) for stem, area in UNBUILT if area != "*" and find_adapter(stem, area)]
    assert built == []
