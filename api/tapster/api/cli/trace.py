"""``tapster trace``: the records of what was sent."""

from __future__ import annotations

import click

from tapster.engine.ecma import Json, stringify

from .client import CONTRACT, Api, run, segment
from .demo import proof
from .output import write_lines, write_text


@click.group("trace")
def command() -> None:
    """List, show and verify the records of what was sent and why."""


@command.command("list")
@click.argument("session")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def list_(context: click.Context, session: str, as_json: bool) -> None:
    """The records of SESSION, oldest first."""
    records = run(context, lambda api: api.get(_path(session)))["records"]
    if as_json:
        write_text(stringify(records, indent=2))
        return
    for record in records:
        place = f"{record['turn']}.{record['step']} attempt {record['attempt']}"
        write_text(f"{record['id']}  turn {place}  {record['status']}")
    if not records:
        write_text(f"session {session} has no records")


@command.command("show")
@click.argument("session")
@click.argument("record")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def show(context: click.Context, session: str, record: str, as_json: bool) -> None:
    """One RECORD of SESSION, every text proved against the host's history."""
    found = run(context, lambda api: api.get(f"{_path(session)}/{segment(record)}"))["record"]
    if as_json:
        write_text(stringify(found, indent=2))
    else:
        write_lines(proof(found))


@command.command("verify")
@click.argument("session")
@click.pass_context
def verify(context: click.Context, session: str) -> None:
    """Prove every record of SESSION against its history; exit code 1 when one can't be proved."""

    async def work(api: Api) -> list[Json]:
        rows = (await api.get(_path(session)))["records"]
        return [(await api.get(f"{_path(session)}/{segment(row['id'])}"))["record"] for row in rows]

    records = run(context, work)
    failed = 0
    for record in records:
        is_proved = record.get("contentStatus") == "available"
        failed += not is_proved
        why = "" if is_proved else f" ({record.get('referenceError') or record.get('contentStatus')})"
        write_text(f"{'✓' if is_proved else '✗'} {record['id']} turn {record['turn']}.{record['step']}{why}")
    write_text(f"{len(records) - failed} verified, {failed} not")
    context.exit(1 if failed else 0)


def _path(session: str) -> str:
    return f"{CONTRACT}/v3/sessions/{segment(session)}/assemblies"
