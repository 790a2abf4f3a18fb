"""``tapster sources``: what can contribute to requests."""

from __future__ import annotations

import click

from tapster.engine.ecma import stringify

from .client import OWN, run, segment
from .output import write_text


@click.command("sources")
@click.option("--session", help="Say what they have to offer to this session.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with roles, positions and content guides.")
@click.pass_context
def command(context: click.Context, session: str | None, as_json: bool) -> None:
    """List every registered source, and what became of each installed plug-in."""
    query = "" if session is None else f"?sessionId={segment(session)}"
    found = run(context, lambda api: api.get(f"{OWN}/sources{query}"))
    if as_json:
        write_text(stringify(found, indent=2))
        return
    for source in found["sources"]:
        takes = "module" if source["supportsModule"] else "text only"
        offer = "" if source["moduleAvailable"] or not source["supportsModule"] else "  nothing to offer now"
        write_text(f"{source['id']}  {source['pluginId']}  version {source['version']}  {takes}{offer}")
    for plugin in found["plugins"]:
        state = plugin["error"] or f"gives {', '.join([*plugin['source_ids'], *plugin['strategy_ids']]) or 'presets'}"
        write_text(f"plug-in {plugin['name']} of {plugin['package']} {plugin['version']}: {state}")
