"""The options of commands that work on files instead of a library."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from .offline import Files
from .paths import TYPED_PATH

_OPTIONS: Final = (
    click.option("--preset", type=TYPED_PATH, help="Chat-completion preset (JSON)."),
    click.option("--card", type=TYPED_PATH, help="Character card (PNG, JSON or CHARX)."),
    click.option("--world", "worlds", multiple=True, type=TYPED_PATH, help="World book; may be repeated."),
    click.option("--persona", type=TYPED_PATH, help="Persona (JSON with name and description)."),
    click.option("--chat", type=TYPED_PATH, help="SillyTavern chat (JSONL)."),
)


def takes_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of files; it gets them as ``files``."""

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        preset: Path | None,
        card: Path | None,
        worlds: tuple[Path, ...],
        persona: Path | None,
        chat: Path | None,
        **options: Any,
    ) -> None:
        command(*args, files=Files(preset, card, worlds, persona, chat), **options)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped
