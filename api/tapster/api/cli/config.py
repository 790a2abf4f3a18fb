"""``tapster config``: every setting, its value, where it came from, and its three spellings."""

import json

import click

from tapster.api.config import Config, settings

from .main import read_config
from .output import write_text


@click.command("config")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def command(context: click.Context, as_json: bool) -> None:
    """Show every setting, its value and where it came from (file, environment, flag, or default)."""
    rows = list(describe(read_config(context)))
    if as_json:
        write_text(json.dumps(rows, indent=2, ensure_ascii=False))
        return
    width = max(len(str(row["key"])) for row in rows)
    for row in rows:
        value = "(not set)" if row["value"] is None else row["value"]
        write_text(f"{row['key']:<{width}}  {value}  [{row['origin']}; {row['environment']}]")
        write_text(f"{'':<{width}}  {row['help']}")


def describe(config: Config) -> list[dict[str, str | None]]:
    """The settings for display; secrets are shown as set or not set only."""
    rows: list[dict[str, str | None]] = []
    for field in settings():
        value = getattr(config, field.name)
        shown = None if value is None else "(set, hidden)" if field.metadata["secret"] else text_of(value)
        rows.append(
            {
                "key": field.metadata["key"],
                "value": shown,
                "origin": config.origins.get(field.name, "default"),
                "environment": field.metadata["env"],
                "help": field.metadata["help"],
            }
        )
    return rows


def text_of(value: object) -> str:
    """A setting's value as text."""
    if isinstance(value, tuple):
        return ", ".join(str(item) for item in value) or "(none)"
    return str(value).lower() if isinstance(value, bool) else str(value)
