"""``tapster ps``: what lives in the running server, and how it does."""

from __future__ import annotations

import click

from tapster.api.runtime_text import COLUMNS, actor_row, summary, table
from tapster.engine.ecma import stringify

from .client import OWN, run
from .output import write_lines, write_text


@click.command("ps")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Every actor with its state, inbox and the age of its work; loop, store, threads, outbox."""
    reading = run(context, lambda api: api.get(f"{OWN}/runtime"))["runtime"]
    if as_json:
        write_text(stringify(reading, indent=2))
        return
    write_lines(summary(reading))
    write_lines(table([COLUMNS, *(actor_row(actor) for actor in reading["actors"])]))
