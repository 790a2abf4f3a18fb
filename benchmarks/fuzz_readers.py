"""Fuzz every file reader: no crash, bounded thread CPU, bounded memory.

    python -m benchmarks.fuzz_readers --minutes 2        # for each reader
    python -m benchmarks.fuzz_readers --reader png --seed 7

Each reader first meets a fixed list of hostile files (as large as its limits allow), then mutations of good files.
Exit code 1 when an input makes a reader raise anything but a declared error, takes over 1 s of thread CPU time, or
peaks above 10 times its size + 64 MiB (tracemalloc).
"""

import argparse
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

from benchmarks.hostile_files import hostile_files, seeds
from tapster.engine.errors import TapsterError
from tapster.engine.formats import import_file
from tapster.engine.formats.cards import export_card_json, parse_card
from tapster.engine.formats.chats import export_chat, parse_chat
from tapster.engine.formats.documents import to_document
from tapster.engine.formats.json_guard import decode_text
from tapster.engine.formats.png import read_card_text, read_lenient_text, read_sillytavern_text, strip
from tapster.engine.formats.presets import export_preset, parse_preset, restore_preset
from tapster.engine.formats.world_books import export_world_book, import_world_book, restore_world_book
from tapster.engine.limits import CARD_BYTES, CHAT_BYTES, MIB, PRESET_BYTES, WORLD_BOOK_BYTES

CPU_SECONDS = 1.0
SPARE_BYTES = 64 * MIB
NOW = "2026-01-01T00:00:00.000Z"
SHOWN = 8


@attrs.frozen
class Reader:
    """A function under test and the largest input its border lets through."""

    run: Callable[[bytes], object]
    limit: int


@attrs.frozen
class Measured:
    """What one input cost; ``crash`` names an error that is not declared."""

    cpu: float
    peak: int
    crash: str | None = None

    def breaches(self, size: int) -> list[str]:
        """What is over its bound."""
        found = [self.crash] if self.crash else []
        if self.cpu > CPU_SECONDS:
            found.append(f"{self.cpu:.2f} s of CPU")
        if self.peak > 10 * size + SPARE_BYTES:
            found.append(f"peak {self.peak / MIB:.0f} MiB for {size / MIB:.2f} MiB")
        return found


def _preset(data: bytes) -> object:
    preset = parse_preset(decode_text(data), id="p", now=NOW, profile="lenient")
    return export_preset(preset), restore_preset(preset)


def _book(data: bytes) -> object:
    stored = import_world_book(data, id="b", now=NOW, profile="lenient")
    return restore_world_book(stored.book)


def _written_book(data: bytes) -> object:
    return export_world_book(import_world_book(data, id="b", now=NOW).book)


def _stored_book(data: bytes) -> object:
    return to_document(import_world_book(data, id="b", now=NOW))


def _png(data: bytes) -> object:
    for read in (read_card_text, read_sillytavern_text, read_lenient_text):
        try:
            read(data)
        except TapsterError:
            continue
    return strip(data)


READERS: Mapping[str, Reader] = {
    "card": Reader(lambda data: export_card_json(parse_card(data, id="c", now=NOW)), CARD_BYTES),
    "png": Reader(_png, CARD_BYTES),
    "world_book": Reader(_book, WORLD_BOOK_BYTES),
    "world_book_export": Reader(_written_book, WORLD_BOOK_BYTES),
    "world_book_document": Reader(_stored_book, WORLD_BOOK_BYTES),
    "preset": Reader(_preset, PRESET_BYTES),
    "chat": Reader(lambda data: export_chat(parse_chat(data)), CHAT_BYTES),
    "any_file": Reader(lambda data: import_file("x.bin", data, id="x", now=NOW), CARD_BYTES),
}


def measure(reader: Reader, data: bytes) -> Measured:
    """CPU of one run, then the peak of another, so that tracing does not count as CPU."""
    start = time.thread_time()
    crash = _run(reader, data)
    cpu = time.thread_time() - start
    tracemalloc.start()
    _run(reader, data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Measured(cpu, peak, crash)


def _run(reader: Reader, data: bytes) -> str | None:
    try:
        reader.run(data)
    except TapsterError:
        return None
    except Exception as error:  # noqa: BLE001 - a crash is what is looked for
        return f"{type(error).__name__}: {ascii(str(error))[:200]}"
    return None


def mutations(files: list[bytes], draw: random.Random, limit: int) -> Iterator[bytes]:
    """Good files with a few places changed, for ever."""
    while True:
        data = bytearray(draw.choice(files))
        for _ in range(draw.randint(1, 6)):
            _mutate(data, draw, files)
        yield bytes(data[:limit])


def _mutate(data: bytearray, draw: random.Random, files: list[bytes]) -> None:
    at = draw.randrange(len(data) + 1)
    kind = draw.randrange(7)
    if kind == 0 and data:
        data[at % len(data)] = draw.randrange(256)
    elif kind == 1:
        del data[at : at + draw.randint(1, 40)]
    elif kind == 2:
        data[at:at] = draw.choice(TOKENS)
    elif kind == 3:
        piece = bytes(data[at : at + draw.randint(1, 60)])
        data[at:at] = piece * draw.randint(1, 200)
    elif kind == 4:
        other = draw.choice(files)
        start = draw.randrange(len(other) + 1)
        data[at:at] = other[start : start + draw.randint(1, 400)]
    elif kind == 5:
        data[at : at + 4] = draw.randbytes(4)
    else:
        data[at:at] = draw.choice(TOKENS) * draw.choice((1, 10, 1000))


TOKENS = [
    b"[", b"]", b"{", b"}", b'"', b"\\", b",", b":", b"null", b"NaN", b"1e999", b"-0", b"\\ud800", b"\xed\xa0\x80",
    b"\0", b"\xff", b'{"a":', b'"key":', b'"entries":', b'"data":', b'"prompts":', b"{{", b"}}", b"::", b"IEND",
    b"tEXt", b"zTXt", b"PK\x01\x02", b"PK\x05\x06", b"9" * 400, b"0.1", b"true", b'"extensions":[]', b'"uid":-1', b"\n",
]  # fmt: skip


def fuzz(name: str, reader: Reader, minutes: float, seed: int, corpus: Path | None) -> int:
    """The number of inputs of one reader that broke a bound; each is printed."""
    draw = random.Random(f"{seed} {name}")
    worst_cpu = worst_ratio = 0.0
    broken = count = 0

    def check(label: str, data: bytes) -> None:
        nonlocal worst_cpu, worst_ratio, broken, count
        result = measure(reader, data)
        count += 1
        worst_cpu = max(worst_cpu, result.cpu)
        worst_ratio = max(worst_ratio, result.peak / (10 * len(data) + SPARE_BYTES))
        breaches = result.breaches(len(data))
        if breaches:
            broken += 1
            if broken <= SHOWN:
                print(f"  {label} ({len(data)} bytes, starts {data[:60]!r}): {'; '.join(breaches)}")

    for label, data in hostile_files(reader.limit):
        check(label, data)
    end = time.monotonic() + 60 * minutes
    for number, data in enumerate(mutations(seeds(corpus), draw, reader.limit)):
        if time.monotonic() > end:
            break
        check(f"mutation {number} of seed {seed}", data)
    worst = f"worst CPU {worst_cpu:.2f} s, worst peak {100 * worst_ratio:.0f} % of its bound"
    print(f"{name}: {count} inputs, {broken} broken, {worst}", flush=True)
    return broken


def main() -> int:
    """Run the readers asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_readers", description=__doc__)
    parser.add_argument("--minutes", type=float, default=2, help="for each reader, after the hostile files")
    parser.add_argument("--reader", action="append", choices=sorted(READERS), help="only this one; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, help="a folder of good files to mutate beside the built-in ones")
    options = parser.parse_args()
    chosen = options.reader or list(READERS)
    broken = sum(fuzz(name, READERS[name], options.minutes, options.seed, options.corpus) for name in chosen)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
