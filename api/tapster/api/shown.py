"""What a preview and an assembly show of themselves."""

from collections.abc import Mapping

from tapster.actors.session import Assembled
from tapster.engine.ecma import Json
from tapster.engine.lazy_list import chained
from tapster.engine.profile import ProfileSnapshot


def preview_json(assembled: Assembled) -> Json:
    """A preview for a client: sections with their text, entries with reasons, diagnostics, parameters."""
    return {
        **profile_json(assembled.snapshot),
        "activation": assembled.activation.to_json(),
        "policy": assembled.policy_text,
        "rolls": {"seed": assembled.seed, "draws": assembled.draws},
    }


def profile_json(snapshot: ProfileSnapshot) -> dict[str, Json]:
    """A compiled profile: sections, entries with reasons, budgets, diagnostics, call config."""
    rows = snapshot.audit["worldBooks"]["resources"]
    return {
        "sections": [
            {"name": part.name, "text": part.text, "sources": [_without_text(source) for source in part.sources]}
            for part in snapshot.sections
        ],
        "systemPromptMode": snapshot.system_prompt_mode,
        "entries": chained([row["decisions"] for row in rows]),
        "budgets": [{"resource": row["resource"]["id"], **row["budget"]} for row in rows],
        "diagnostics": [diagnostic.to_json() for diagnostic in snapshot.diagnostics],
        "callConfig": snapshot.call_config.to_json(),
        "fingerprint": snapshot.fingerprint,
    }


def _without_text(source: Mapping[str, Json]) -> Json:
    return {key: value for key, value in source.items() if key != "text"}
