"""``tapster assemble``: files in, sections and messages out."""

from collections.abc import Callable, Iterator
from datetime import datetime

import click

from tapster.engine.ecma import Json, stringify

from . import offline, sillytavern
from .file_options import takes_files
from .output import write_lines, write_text


@click.command("assemble")
@takes_files
@click.option("--message", help="A message that was just written, searched with the chat.")
@click.option("--user", "user_name", help="Name for {{user}} when no persona is given.")
@click.option("--seed", default="assemble", show_default=True, help="Seed of {{random}} and {{roll}}.")
@click.option(
    "--renderer",
    type=click.Choice(["tavern", "sillytavern"]),
    default="tavern",
    show_default=True,
    help="Whose prompt: the contract's sections, or SillyTavern's messages.",
)
@click.option("--exact", is_flag=True, help="With SillyTavern's renderer: keep its plain defects.")
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of text.")
def command(
    files: offline.Files,
    message: str | None,
    user_name: str | None,
    seed: str,
    renderer: str,
    exact: bool,
    as_json: bool,
) -> None:
    """Assemble a request from files and show its sections, its messages, and why each world-book entry is in or out."""
    if renderer == "sillytavern":
        library = sillytavern.read_library(files, message=message, user_name=user_name)
        assembly = sillytavern.assemble_library(
            library, seed=seed, now=datetime.now().astimezone(), quirks="exact" if exact else "repaired"
        )
        shown: tuple[Json, Callable[[Json], Iterator[str]]] = sillytavern.result(assembly), sillytavern.describe
    else:
        material = offline.read(files)
        shown = offline.assemble(material, message=message, user_name=user_name, seed=seed), offline.describe
    result, describe = shown
    if as_json:
        write_text(stringify(result, indent=2))
    else:
        write_lines(describe(result))
