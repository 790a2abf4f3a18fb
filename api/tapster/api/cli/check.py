"""``tapster check``: whether all data is sound."""

from __future__ import annotations

import click
import trio

from tapster.api.config import Config
from tapster.api.running_file import find_server
from tapster.engine.ecma import Json, stringify

from .client import OWN, open_api
from .data import data_engine
from .main import read_config
from .output import write_text


@click.command("check")
@click.option("--json", "as_json", is_flag=True, help="The result as JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Check all data, in the running server or without one; exit code 1 when something is wrong."""
    config = read_config(context)
    if find_server(config.data_dir) is not None:
        found = trio.run(ask, config)
    else:
        with data_engine(config) as engine:
            problems = [*(warning.message for warning in engine.warnings), *engine.check()]
        found = {"ok": not problems, "problems": problems}
    if as_json:
        write_text(stringify(found, indent=2))
    else:
        for problem in found["problems"]:
            write_text(f"✗ {problem}")
        write_text(f"{config.data_dir}: {'all sound' if found['ok'] else 'not sound'}")
    context.exit(0 if found["ok"] else 1)


async def ask(config: Config) -> Json:
    """The server's answer."""
    async with open_api(config) as api:
        return await api.get(f"{OWN}/store/check")
