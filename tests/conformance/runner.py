"""Runs vector files against the product: one result a line, grouped by area."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import attrs

from tapster.engine.errors import TapsterError
from tests.conformance.compare import differences
from tests.conformance.registry import Adapter, error_value, find_adapter
from tests.conformance.unbuilt import is_unbuilt

Json = Any
Outcome = Literal["passed", "failed", "skipped"]


@attrs.frozen
class Result:
    """What one line gave; ``differences`` is empty unless it failed."""

    area: str
    line_id: str
    outcome: Outcome
    differences: tuple[str, ...] = ()


def read_lines(path: Path) -> Iterator[Json]:
    """The vector lines of a file."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def area_of(stem: str, line: Json) -> str | None:
    """The area a line belongs to, or None for a line that is left to ``benchmarks/``."""
    if stem == "user_reports":
        operation = line["repro"]["op"]
        return None if operation == "bench" else f"user.{operation}"
    return str(line["area"])


def run_line(stem: str, area: str, line: Json) -> Result:
    """Run one line through its adapter; an undeclared exception is a failure with its name."""
    line_id = str(line["id"])
    adapter = find_adapter(stem, area)
    if adapter is None:
        if is_unbuilt(stem, area):
            return Result(area, line_id, "skipped")
        return Result(area, line_id, "failed", (f"no adapter for {stem} {area}",))
    try:
        found = _compared(adapter, stem, line)
    except Exception as error:  # noqa: BLE001 - a crash of the product is a failed line, not the end of the run
        return Result(area, line_id, "failed", (f"{type(error).__name__}: {ascii(str(error))[:300]}",))
    return Result(area, line_id, "failed" if found else "passed", tuple(found))


def _compared(adapter: Adapter, stem: str, line: Json) -> list[str]:
    """Where what the product gives for a line differs from what the line expects."""
    given, expected = (line["repro"], line["expect"]) if stem == "user_reports" else (line["input"], line["expected"])
    try:
        actual = adapter.run(given)
    except TapsterError as error:
        actual = error_value(error)
    return (adapter.compare or differences)(expected, actual)


def run_file(path: Path, *, stem: str | None = None, areas: Iterable[str] = ()) -> Iterator[Result]:
    """Run the lines of one file, all of them or those of the given areas."""
    stem = stem or path.stem
    wanted = set(areas)
    for line in read_lines(path):
        area = area_of(stem, line)
        if area is not None and (not wanted or area in wanted):
            yield run_line(stem, area, line)


def tally(results: Iterable[Result]) -> dict[str, Counter[str]]:
    """Counts by area in order of first appearance."""
    counts: dict[str, Counter[str]] = {}
    for result in results:
        counts.setdefault(result.area, Counter())[result.outcome] += 1
    return counts
