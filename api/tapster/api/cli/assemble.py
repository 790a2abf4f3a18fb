"""``tapster assemble``: files in, sections and messages out."""

from pathlib import Path

import click

from tapster.engine.ecma import stringify

from . import offline
from .output import write_lines, write_text


@click.command("assemble")
@click.option("--preset", type=click.Path(path_type=Path), help="Chat-completion preset (JSON).")
@click.option("--card", type=click.Path(path_type=Path), help="Character card (PNG, JSON or CHARX).")
@click.option("--world", "worlds", multiple=True, type=click.Path(path_type=Path), help="World book; may be repeated.")
@click.option("--persona", type=click.Path(path_type=Path), help="Persona (JSON with name and description).")
@click.option("--chat", type=click.Path(path_type=Path), help="SillyTavern chat (JSONL); its messages are searched.")
@click.option("--message", help="A message that was just written, searched with the chat.")
@click.option("--user", "user_name", help="Name for {{user}} when no persona is given.")
@click.option("--seed", default="assemble", show_default=True, help="Seed of {{random}} and {{roll}}.")
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of text.")
def command(
    preset: Path | None,
    card: Path | None,
    worlds: tuple[Path, ...],
    persona: Path | None,
    chat: Path | None,
    message: str | None,
    user_name: str | None,
    seed: str,
    as_json: bool,
) -> None:
    """Assemble a request from files and show its sections, its messages, and why each world-book entry is in or out."""
    files = offline.Files(preset, card, worlds, persona, chat)
    result = offline.assemble(offline.read(files), message=message, user_name=user_name, seed=seed)
    if as_json:
        write_text(stringify(result, indent=2))
    else:
        write_lines(offline.describe(result))
