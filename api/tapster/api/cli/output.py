"""Printing for people and programs: any character, on any terminal."""

import sys
from collections.abc import Iterable

import click


def write_text(text: str) -> None:
    """Print a text; what the terminal's encoding lacks is escaped instead of failing."""
    encoding = sys.stdout.encoding or "utf-8"
    click.echo(text.encode(encoding, "backslashreplace").decode(encoding))


def write_lines(lines: Iterable[str]) -> None:
    """Print lines."""
    for line in lines:
        write_text(line)
