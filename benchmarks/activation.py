"""``python -m benchmarks.activation``: what world-book activation costs, against a plain loop in the same run.

Books of 100, 1,000 and 10,000 entries with three keys each over 64 KiB of mixed English and Chinese, cold and warm;
growth over texts from 1 KiB to 1 MiB; the ``bench`` lines of ``user_reports``. Read the ratios: times are
this machine's.
"""

import argparse
import json
import math
import random
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tapster.engine.activation.sillytavern import (
    BookUse,
    ScanInput,
    ScanMessage,
    ScanPorts,
    ScanSettings,
    compile_scan_book,
    scan_books,
    scan_entries,
)
from tapster.engine.activation.tavern import activate_book, compile_book
from tapster.engine.formats.world_books import WorldBook, parse_world_book

VECTORS = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "user_reports.jsonl"
SYLLABLES = ("ka", "lo", "mir", "ten", "dra", "gon", "sha", "vel", "or", "in", "ast", "um", "bel", "quo", "zen")
HAN = "".join(map(chr, range(0x4E00, 0x4E00 + 1500)))
FILLER = ("the", "rain", "went", "on", "and", "nobody", "spoke", "until", "morning", "came")
TEXT_UNITS = 65_536
Json = Any


def made_key(rng: random.Random) -> str:
    """A made-up name: half of them Chinese, some of two words."""
    if rng.random() < 0.5:
        return "".join(rng.choice(HAN) for _ in range(rng.randint(2, 4)))
    words = rng.choice((1, 1, 1, 2))
    return " ".join("".join(rng.choice(SYLLABLES) for _ in range(rng.randint(3, 5))) for _ in range(words))


def made_book(rng: random.Random, count: int) -> WorldBook:
    """A book of entries with three keys each."""
    entries = {
        str(uid): {"uid": uid, "key": [made_key(rng) for _ in range(3)], "content": f"lore {uid}"}
        for uid in range(count)
    }
    return parse_world_book({"entries": entries})


def made_text(rng: random.Random, length: int, names: Sequence[str]) -> str:
    """Mixed prose in which one of some names occurs every few sentences; others occur by chance."""
    parts: list[str] = []
    size = 0
    while size < length:
        if rng.random() < 0.5:
            part = " ".join(rng.choice(FILLER) for _ in range(8)) + ". "
        else:
            part = "".join(rng.choice(HAN) for _ in range(12)) + "。"
        if rng.random() < 0.05:
            part += rng.choice(names) + " "
        parts.append(part)
        size += len(part)
    return "".join(parts)[:length]


def names_of(book: WorldBook) -> list[str]:
    """Every key of a book."""
    return [key for entry in book.entries for key in entry.keys]


def milliseconds(work: Callable[[], object], rounds: int = 7) -> float:
    """The best CPU time of some rounds: what the work costs, whoever else uses the machine."""
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        work()
        times.append((time.thread_time() - start) * 1000)
    return min(times)


def peak_mib(work: Callable[[], object]) -> float:
    """The peak of memory that Python allocated during some work."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / 1024 / 1024
    finally:
        tracemalloc.stop()


def lowered_keys(book: WorldBook) -> list[list[str]]:
    """The keys of every entry, lower-cased beforehand."""
    return [[key.lower() for key in entry.keys] for entry in book.entries]


def plain_loop(keys: list[list[str]], text: str) -> list[bool]:
    """What a reader would write: every key of every entry looked for in the text."""
    lowered = text.lower()
    return [any(key in lowered for key in own) for own in keys]


def scan_input(book: WorldBook, text: str, settings: ScanSettings) -> tuple[ScanInput, ScanPorts]:
    compiled = compile_scan_book("Book", scan_entries("Book", book, exact=False))
    ports = ScanPorts(lambda purpose: 0.5, lambda content: math.ceil(len(content) / 4))
    return ScanInput((BookUse("global", compiled),), (ScanMessage(text),), settings), ports


def sizes(counts: list[int]) -> None:
    print(f"64 KiB of text ({TEXT_UNITS:,} characters), CPU times in ms")
    print(
        f"{'entries':>8} {'compile':>8} {'cold':>8} {'warm':>8} {'st warm':>8} {'st all':>8} {'bare scan':>10} "
        f"{'plain':>9} {'plain/warm':>11} {'warm/bare':>10} {'active':>7} {'peak MiB':>9}"
    )
    for count in counts:
        rng = random.Random(count)
        book = made_book(rng, count)
        text = made_text(rng, TEXT_UNITS, names_of(book))
        compiled = compile_book(book)
        keys = lowered_keys(book)
        compile_ms = milliseconds(lambda book=book: compile_book(book), 3)  # type: ignore[misc]
        warm = milliseconds(lambda compiled=compiled, text=text: activate_book(compiled, text))  # type: ignore[misc]
        given, ports = scan_input(book, text, ScanSettings(depth=2, budget_tokens=math.inf))
        st_warm = milliseconds(lambda given=given, ports=ports: scan_books(given, ports))  # type: ignore[misc]
        st_all = milliseconds(lambda given=given, ports=ports: list(scan_books(given, ports).decisions()))  # type: ignore[misc]
        bare = milliseconds(lambda compiled=compiled, text=text: compiled.index.bare_scan(text))  # type: ignore[misc]
        plain = milliseconds(lambda keys=keys, text=text: plain_loop(keys, text), 3)  # type: ignore[misc]
        activation = activate_book(compiled, text)
        assert len(activation.accepted) == sum(plain_loop(keys, text))
        peak = peak_mib(lambda book=book, text=text: activate_book(compile_book(book), text))  # type: ignore[misc]
        print(
            f"{count:>8,} {compile_ms:>8.1f} {compile_ms + warm:>8.1f} {warm:>8.2f} {st_warm:>8.2f} {st_all:>8.2f} "
            f"{bare:>10.2f} {plain:>9.1f} {plain / warm:>10.0f}x {warm / bare:>9.1f}x "
            f"{len(activation.accepted):>7} {peak:>9.1f}"
        )


def growth() -> None:
    print("\n10,000 entries, growth over the text, CPU times in ms")
    print(f"{'characters':>11} {'warm':>9} {'us/KiB':>9} {'plain':>9} {'plain/warm':>11} {'peak MiB':>9}")
    rng = random.Random(1)
    book = made_book(rng, 10_000)
    compiled = compile_book(book)
    keys = lowered_keys(book)
    whole = made_text(rng, 1 << 20, names_of(book))
    for power in range(10, 21, 2):
        text = whole[: 1 << power]
        warm = milliseconds(lambda text=text: activate_book(compiled, text), 5)  # type: ignore[misc]
        plain = milliseconds(lambda text=text: plain_loop(keys, text), 1)  # type: ignore[misc]
        peak = peak_mib(lambda text=text: activate_book(compiled, text))  # type: ignore[misc]
        print(
            f"{1 << power:>11,} {warm:>9.2f} {warm * 1024 / (1 << (power - 10)):>9.1f} {plain:>9.1f} "
            f"{plain / warm:>10.0f}x {peak:>9.2f}"
        )


def report_lines(path: Path) -> None:
    print(f"\nbench lines of {path.name}")
    for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
        if line["repro"]["op"] == "bench":
            report_line(line)


def report_line(line: Json) -> None:
    given, wanted = line["repro"], line["expect"]["bench"]
    book = bench_book(given["entries"])
    settings = ScanSettings(
        depth=given["settings"].get("scan_depth", 4),
        recursive=given["settings"].get("recursive", False),
        budget_tokens=given["settings"].get("budget_tokens", math.inf),
        match_whole_words=given["settings"].get("whole_words", False),
    )
    entries = scan_entries("Book", book, exact=False)
    counted: dict[str, int] = {}

    def count(text: str) -> int:
        counted[text] = counted.get(text, 0) + 1
        return len(text.split())

    messages = tuple(ScanMessage(text) for text in bench_messages(given))

    def whole() -> object:
        compiled = compile_scan_book("Book", entries)
        ports = ScanPorts(lambda purpose: 0.5, count)
        return scan_books(ScanInput((BookUse("global", compiled),), messages, settings), ports)

    took = milliseconds(whole, 3)
    calls = sum(counted.values()) / 3 / max(1, len(entries))
    print(
        f"  {line['id']}: {took:.0f} ms compiled and scanned (wanted {wanted.get('max_ms', '-')}), "
        f"{calls:.2f} counter calls an entry (wanted at most {wanted.get('token_counts_per_entry_max', '-')})"
    )


def bench_book(entries: Json) -> WorldBook:
    letters = "abcdefghijklmnopqrstuvwxyz"
    content = " ".join(["w"] * entries["words_each"])
    made = {
        str(uid): {
            "uid": uid,
            "key": [f"k{uid}{letters[key]}" for key in range(entries["keys_each"])],
            "content": content,
        }
        for uid in range(entries["count"])
    }
    return parse_world_book({"entries": made})


def bench_messages(given: Json) -> list[str]:
    size = given["messages"]["chars_each"]
    filler = "lorem " * (size // 6 + 1)
    return [
        ((f"k{number}a " if number < given.get("hits", 0) else "") + filler)[:size]
        for number in range(given["messages"]["count"])
    ]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.activation", description=__doc__)
    parser.add_argument("--entries", type=int, action="append", help="book sizes (default 100, 1,000, 10,000)")
    parser.add_argument("--reports", type=Path, default=VECTORS, help="a file with bench lines")
    options = parser.parse_args()
    sizes(options.entries or [100, 1_000, 10_000])
    growth()
    if options.reports.is_file():
        report_lines(options.reports)


if __name__ == "__main__":
    main()
