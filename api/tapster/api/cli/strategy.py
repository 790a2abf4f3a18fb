"""``tapster strategy``: how requests are put together."""

from __future__ import annotations

from pathlib import Path

import click

from tapster.engine.ecma import Json, parse_json, stringify

from .client import OWN, Api, run, segment
from .offline import decoded, read_bytes
from .output import write_bytes, write_lines, write_text
from .paths import TYPED_PATH

ROUTE = f"{OWN}/strategies"


@click.group("strategy")
def command() -> None:
    """List, show, save, take over, apply, preview and export strategies."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """Every strategy that can be applied."""
    found = run(context, lambda api: api.get(ROUTE))
    if as_json:
        write_text(stringify(found["presets"], indent=2))
        return
    for preset in found["presets"]:
        owner = preset.get("pluginId") or ("built-in" if preset.get("builtin") else "own")
        write_text(f"{preset['id']}  {preset.get('backend', 'core'):<6}  {owner}  {preset['name']}")


@command.command("show")
@click.argument("identity")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def show(context: click.Context, identity: str, as_json: bool) -> None:
    """One strategy and its modules in order."""
    preset = run(context, lambda api: api.get(f"{ROUTE}/{segment(identity)}"))["strategy"]
    if as_json:
        write_text(stringify(preset, indent=2))
        return
    write_text(f"{preset['name']}  backend {preset.get('backend', 'core')}  placement {preset['placement']}")
    write_lines(_rule(rule) for rule in preset["rules"])


@command.command("save")
@click.argument("file", type=TYPED_PATH)
@click.option("--id", "identity", help="Save in the place of this own strategy.")
@click.pass_context
def save(context: click.Context, file: Path, identity: str | None) -> None:
    """Keep a strategy from a JSON FILE, as a new one unless an id is given."""
    body = {"strategy": parse_json(decoded(read_bytes(file)))}

    async def work(api: Api) -> Json:
        if identity is None:
            return await api.call("POST", ROUTE, body)
        return await api.call("PUT", f"{ROUTE}/{segment(identity)}", body)

    write_text(run(context, work)["strategy"]["id"])


@command.command("import")
@click.argument("file", type=TYPED_PATH)
@click.pass_context
def import_(context: click.Context, file: Path) -> None:
    """Take over an older assembly-presets.json FILE: what is here already stays as it is."""
    body = {"document": parse_json(decoded(read_bytes(file)))}
    changed = run(context, lambda api: api.call("POST", f"{ROUTE}/import", body))["changed"]
    write_text(f"{file} is taken over" if changed else f"{file} has nothing that isn't here already")


@command.command("delete")
@click.argument("identity")
@click.pass_context
def delete(context: click.Context, identity: str) -> None:
    """Delete an own strategy that no session has applied."""
    run(context, lambda api: api.call("DELETE", f"{ROUTE}/{segment(identity)}"))
    write_text(f"strategy {identity} is deleted")


@command.command("apply")
@click.argument("session")
@click.argument("identity", required=False)
@click.option("--off", is_flag=True, help="Turn the session's strategy off.")
@click.pass_context
def apply(context: click.Context, session: str, identity: str | None, off: bool) -> None:
    """Copy a strategy to a SESSION; later edits of the strategy don't follow."""
    if off == (identity is not None):
        raise click.UsageError("name a strategy, or give --off")
    body = {"id": None if off else identity}
    run(context, lambda api: api.call("PUT", f"{OWN}/sessions/{segment(session)}/strategy", body))
    write_text(f"session {session} has no strategy now" if off else f"session {session} uses {identity} from now on")


@command.command("preview")
@click.argument("session")
@click.option("--draft", help="A message taken as if it had been said.")
@click.option("--id", "identity", help="Another strategy than the applied one.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the provenance of every piece.")
@click.pass_context
def preview(context: click.Context, session: str, draft: str | None, identity: str | None, as_json: bool) -> None:
    """The request that a SESSION would send now; nothing is recorded or changed."""
    body = {name: value for name, value in (("draft", draft), ("id", identity)) if value is not None}
    path = f"{OWN}/sessions/{segment(session)}/strategy/preview"
    found = run(context, lambda api: api.call("POST", path, body))["preview"]
    if as_json:
        write_text(stringify(found, indent=2))
        return
    for message in found["messages"]:
        texts = (block["text"] for block in message["content"] if block.get("type") == "text")
        write_text(f"[{message['role']}] " + "\n".join(texts))
    for node in found["nodes"]:
        write_text(f"  {node['id']}  {node['role']}  from {node['source']['plugin']}  {node['positionDecision']}")
    for diagnostic in found["diagnostics"]:
        write_text(f"! {diagnostic['code']}")


@command.command("export")
@click.argument("identity")
@click.option("-o", "--output", type=TYPED_PATH, help="Target file; - or nothing writes to stdout.")
@click.pass_context
def export(context: click.Context, identity: str, output: Path | None) -> None:
    """Write a strategy as the JSON that ``save`` and other assemblers read."""
    preset = run(context, lambda api: api.get(f"{ROUTE}/{segment(identity)}"))["strategy"]
    kept = {name: value for name, value in preset.items() if name not in ("id", "builtin", "pluginId")}
    write_bytes(output, (stringify(kept, indent=2) + "\n").encode())


def _rule(rule: Json) -> str:
    state = "on " if rule["enabled"] else "off"
    depth = "" if rule["depth"] is None else f"  depth {rule['depth']}"
    return f"  {state}  {rule['id']}  {rule['kind']}  role {rule['role']}  {rule['lifetime']}{depth}"
