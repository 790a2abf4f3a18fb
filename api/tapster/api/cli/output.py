"""Printing for people and programs: any character, on any terminal."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from tapster.engine.errors import SourceError


class FileUnwritable(SourceError):
    """A file can't be written; the message names it."""

    code = "FILE_UNWRITABLE"


def write_text(text: str, *, end: str = "\n") -> None:
    """Print a text; what the terminal's encoding lacks is escaped instead of failing.

    Raises:
        BrokenPipeError: whoever read it has gone.
        FileUnwritable: standard output takes nothing.
    """
    encoding = sys.stdout.encoding or "utf-8"
    with _standard_output():
        click.echo(f"{text}{end}".encode(encoding, "backslashreplace").decode(encoding), nl=False)


def give_up_output() -> None:
    """What waits in standard output would fail again when the process ends: let it."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextmanager
def _standard_output() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        give_up_output()
        raise FileUnwritable(f"standard output can't be written: {error.strerror or error}") from error


def write_lines(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        write_text(line)


def write_bytes(target: Path | None, data: bytes) -> None:
    """Write a file and say so; ``-`` or nothing writes to standard output.

    Raises:
        FileUnwritable: the file can't be written.
    """
    if target is None or str(target) == "-":
        with _standard_output():
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        return
    try:
        target.write_bytes(data)
    except OSError as error:
        raise FileUnwritable(f"{target} can't be written: {error.strerror or error}") from error
    write_text(f"{target}: {len(data)} bytes")
