"""``python -m tests.conformance FILE…``: vector files through the product's public functions."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.runner import Result, run_file, tally

SHOWN_FAILURES = 5
SHOWN_DIFFERENCES = 6


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--area", action="append", default=[], help="only this area; may be repeated")
    parser.add_argument("--as", dest="stem", help="take every file as this stem, whatever its name")
    parser.add_argument("--failures", type=int, default=SHOWN_FAILURES, help="how many failed lines to show an area")
    options = parser.parse_args(arguments)
    total = {"passed": 0, "failed": 0, "skipped": 0}
    for path in options.files:
        if not path.is_file():
            parser.error(f"{path} is not a file")
        results = list(run_file(path, stem=options.stem, areas=options.area))
        report(path, results, options.area, options.failures)
        for result in results:
            total[result.outcome] += 1
    print(f"{total['passed']} passed, {total['failed']} failed, {total['skipped']} skipped")
    return 1 if total["failed"] else 0


def report(path: Path, results: list[Result], areas: list[str], shown_failures: int) -> None:
    print(path.name)
    counts = tally(results)
    for area in areas:
        if area not in counts:
            print(f"  {area}: 0 lines")
    for area, count in counts.items():
        skipped = f", {count['skipped']} skipped (known, not built)" if count["skipped"] else ""
        print(f"  {ascii_line(area)}: {count['passed']} passed, {count['failed']} failed{skipped}")
        failures = [result for result in results if result.area == area and result.outcome == "failed"]
        for failure in failures[:shown_failures]:
            print(f"    {ascii_line(failure.line_id)}")
            for difference in failure.differences[:SHOWN_DIFFERENCES]:
                print(f"      {ascii_line(difference)}")


def ascii_line(text: str) -> str:
    """The text for any terminal: what isn't printable ASCII is escaped."""
    return text.encode("ascii", "backslashreplace").decode("ascii")


if __name__ == "__main__":
    sys.exit(main())
