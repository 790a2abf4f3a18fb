"""Printing for people and programs: any character, on any terminal."""

import sys
from collections.abc import Iterable
from pathlib import Path

import click

from tapster.engine.errors import SourceError


class FileUnwritable(SourceError):
    """A file can't be written; the message names it."""

    code = "FILE_UNWRITABLE"


def write_text(text: str) -> None:
    """Print a text; what the terminal's encoding lacks is escaped instead of failing."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


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
        sys.stdout.buffer.write(data)
        return
    try:
        target.write_bytes(data)
    except OSError as error:
        raise FileUnwritable(f"{target} can't be written: {error.strerror or error}") from error
    write_text(f"{target}: {len(data)} bytes")
