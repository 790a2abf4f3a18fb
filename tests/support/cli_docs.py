"""``docs/cli.md``: what every command says of itself.

``python -m tests.support.cli_docs --write`` writes the page anew; without ``--write`` it is printed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
from click.testing import CliRunner

from tapster.api.cli.main import group

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "cli.md"
WIDTH: Final = 100
HEAD: Final = """# Commands

Made by `python -m tests.support.cli_docs --write` from each command's `--help`; a test compares them.

`--config` and `--data-dir` go before a command's name (`tapster --data-dir FOLDER library list`); every setting is
in [configuration.md](configuration.md). Commands over a library ask the running server when one has the data folder,
and open the folder themselves when none has. `explain` (of files), `assemble`, `macro` and `regex` need neither.

Exit codes: 0 done; 1 refused or failed, in one line that says what and what to do, with a code of
[errors.md](errors.md); 2 the command was used wrongly.
"""


def commands(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """A command and all below it, as the words that call them."""
    yield path
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                yield from commands(inner, (*path, name))


def help_text(path: tuple[str, ...]) -> str:
    """What a command prints for ``--help``, at a fixed width and without a terminal."""
    result = CliRunner().invoke(
        group, [*path, "--help"], prog_name="tapster", terminal_width=WIDTH, catch_exceptions=False
    )
    return result.output.strip()


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for path in commands(group):
        name = " ".join(("tapster", *path))
        parts.append(f"\n{'#' * min(len(path) + 2, 3)} `{name}`\n\n```\n{help_text(path)}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
