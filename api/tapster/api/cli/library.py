"""``tapster library``: what the library holds."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import attrs
import click

from tapster.engine.ecma import Json, parse_json, stringify

from .client import CONTRACT, Api, run, segment
from .offline import decoded, read_bytes, standard_input
from .output import write_bytes, write_text
from .paths import TYPED_PATH


@attrs.frozen
class Kind:
    """One kind of resource: its routes and the members of their answers."""

    path: str
    many: str
    one: str
    edit: str
    export: str | None


KINDS: Final = {
    "preset": Kind("/v1/presets", "presets", "preset", "PUT", "/export"),
    "character": Kind("/v1/characters", "characters", "character", "PATCH", "/png"),
    "world-book": Kind("/v1/world-books", "worldBooks", "worldBook", "PATCH", "/json"),
    "user": Kind("/v1/users", "users", "user", "PATCH", None),
}
KIND: Final = click.Choice(list(KINDS))


@click.group("library")
def command() -> None:
    """List, show, edit, export and delete presets, characters, world books and users (personas)."""


@command.command("list")
@click.argument("kind", required=False, type=KIND)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def list_(context: click.Context, kind: str | None, as_json: bool) -> None:
    """List everything, or one KIND."""
    wanted = [kind] if kind else list(KINDS)

    async def work(api: Api) -> dict[str, Json]:
        return {name: (await api.get(CONTRACT + KINDS[name].path))[KINDS[name].many] for name in wanted}

    found = run(context, work)
    if as_json:
        write_text(stringify(found, indent=2))
        return
    for name, items in found.items():
        for item in items:
            write_text(f"{name:<10}  {item['id']}  {item['name']}")
    if not any(found.values()):
        write_text("The library is empty; `tapster import FILE…` fills it.")


@command.command("show")
@click.argument("kind", type=KIND)
@click.argument("identity")
@click.pass_context
def show(context: click.Context, kind: str, identity: str) -> None:
    """Show the whole document of one resource as JSON."""
    chosen = KINDS[kind]
    answer = run(context, lambda api: api.get(f"{CONTRACT}{chosen.path}/{segment(identity)}"))
    write_text(stringify(answer[chosen.one], indent=2))


@command.command("edit")
@click.argument("kind", type=KIND)
@click.argument("identity")
@click.option("--patch", required=True, help="Members to change, as JSON; @FILE reads a file, - reads standard input.")
@click.pass_context
def edit(context: click.Context, kind: str, identity: str, patch: str) -> None:
    """Change members of one resource; what the patch doesn't name stays (for presets see the docs)."""
    chosen = KINDS[kind]
    body = _patch(patch)
    answer = run(context, lambda api: api.call(chosen.edit, f"{CONTRACT}{chosen.path}/{segment(identity)}", body))
    write_text(f"{kind} {identity} is saved: {answer[chosen.one]['name']}")


@command.command("export")
@click.argument("kind", type=KIND)
@click.argument("identity")
@click.option("-o", "--output", type=TYPED_PATH, help="Target file; - or nothing writes to stdout.")
@click.pass_context
def export(context: click.Context, kind: str, identity: str, output: Path | None) -> None:
    """Write one resource as a SillyTavern file (cards as PNG)."""
    chosen = KINDS[kind]
    if chosen.export is None:
        raise click.UsageError("personas have no file of their own; `library show user ID` prints one")
    path = f"{CONTRACT}{chosen.path}/{segment(identity)}{chosen.export}"
    data = run(context, lambda api: api.download(path))
    write_bytes(output, data)


@command.command("delete")
@click.argument("kind", type=KIND)
@click.argument("identity")
@click.option("--yes", is_flag=True, help="Don't ask.")
@click.pass_context
def delete(context: click.Context, kind: str, identity: str, yes: bool) -> None:
    """Delete one resource and every use of it in sessions and relations."""
    if not yes:
        click.confirm(f"Delete {kind} {identity} and every use of it?", abort=True)
    run(context, lambda api: api.call("DELETE", f"{CONTRACT}{KINDS[kind].path}/{segment(identity)}"))
    write_text(f"{kind} {identity} is deleted")


def _patch(given: str) -> Json:
    if given == "-":
        return parse_json(standard_input())
    return parse_json(decoded(read_bytes(Path(given[1:]))) if given.startswith("@") else given)
