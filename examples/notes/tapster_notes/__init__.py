"""Notes as a source, an ordering strategy that puts them last, and a preset that uses both.

docs/sources.md builds this package step by step.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from tapster.actors.sources import Output, Source, SourcePlugin
from tapster.engine.assembly import (
    InvalidAssembly,
    RequestContext,
    Rule,
    Strategy,
    StrategyInput,
    StrategyResult,
)

SOURCE_ID = "example.notes"
STRATEGY_ID = "example.notes-last"
PLUGIN_ID = "tapster-notes-example"
MAX_NOTES = 100


class Notes(Source):
    """Hand-written notes, one a line; as a module, those of ``assets.notes``."""

    id: ClassVar[str] = SOURCE_ID
    plugin_id: ClassVar[str] = PLUGIN_ID
    name: ClassVar[str] = "Notes"
    multiple = True

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        notes = context.assets.get("notes")
        return _output([note for note in notes if isinstance(note, str)] if isinstance(notes, list) else [])

    async def parse_text(self, context: RequestContext, rule: Rule) -> Output:
        notes = [line.strip() for line in rule.text.splitlines() if line.strip()]
        if len(notes) > MAX_NOTES:
            raise InvalidAssembly(f"there may be {MAX_NOTES} notes", code="NOTES_TOO_MANY")
        return _output(notes)


def _output(notes: list[str]) -> Output:
    blocks = [
        {"type": "text", "id": f"n{index}", "name": f"Note {index}", "text": note, "source": {"field": f"note-{index}"}}
        for index, note in enumerate(notes, start=1)
    ]
    return {"blocks": blocks}


def notes_last(given: StrategyInput) -> StrategyResult:
    """Claim the notes that are still free and put them behind everything else."""
    nodes: Mapping[str, Mapping[str, Any]] = {str(node["id"]): node for node in given.nodes}
    notes = [node_id for node_id in given.remaining_node_ids if nodes[node_id]["module"] == SOURCE_ID]
    rest = [node_id for node_id in nodes if node_id not in notes]
    return StrategyResult(notes, order=[*rest, *notes])


PRESET: dict[str, Any] = {
    "id": "notes-last",
    "format": "dsh-tavern-request-assembly",
    "version": 1,
    "name": "笔记在后 / Notes last",
    "backend": "core",
    "layout": {
        "version": 1,
        "source": "preset-slots",
        "identity": "preserve",
        "fallback": "source-order",
        "overrides": [],
        "priority": [STRATEGY_ID, "preset", "resource", "default"],
    },
    "rules": [
        {"id": "native-system", "kind": "native-system"},
        {"id": "notes", "kind": SOURCE_ID, "role": "system"},
        {"id": "history", "kind": "history"},
        {"id": "input", "kind": "input"},
    ],
}

PLUGIN = SourcePlugin(
    sources=(Notes(),),
    strategies=(Strategy(STRATEGY_ID, PLUGIN_ID, ("笔记在后", "Notes last"), notes_last),),
    presets=(PRESET,),
)
