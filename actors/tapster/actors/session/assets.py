"""What the sources of a request may read: the bound resources and the active lore, as opaque JSON.

Source: spec/assembler §5 ``assets``, §14.
"""

from collections.abc import Iterator, Mapping, Sequence

from tapster.engine.activation.sillytavern import ScanResult
from tapster.engine.activation.sillytavern.entry import DEFAULT_DEPTH, POSITIONS
from tapster.engine.activation.tavern import AdapterResult, BookReport, lore_id
from tapster.engine.assembly import Section
from tapster.engine.ecma import Json
from tapster.engine.formats.presets import PresetPrompt
from tapster.engine.policy import selection_json
from tapster.engine.projection import greeting_applies

from .compute import Computed, FrozenInput


def request_assets(
    frozen: FrozenInput, computed: Computed, sections: Sequence[Section], variables: Mapping[str, str]
) -> dict[str, Json]:
    """The assets of one request.

    Args:
        frozen: what the request is made from.
        computed: its activation.
        sections: the official sections.
        variables: the host's prompt variables.
    """
    resources = frozen.bound.resources
    preset, character, user = resources.preset, resources.character, resources.user
    names = {"user": None if user is None else user.name, "char": None if character is None else character.name}
    assets: dict[str, Json] = {
        "preset": None,
        "character": None,
        "user": None,
        "selection": selection_json(frozen.bound.selection),
        "characterSelection": selection_json(frozen.bound.selection).get("character"),
        "loreEntries": list(_lore_entries(frozen, computed)),
        "includeGreetingReference": greeting_applies(frozen.history),
        "context": {**{key: value for key, value in names.items() if value}, **frozen.host_context},
        "officialSections": [section.to_json() for section in sections],
        "nativeVariables": dict(variables),
        "revisions": {use.id: use.revision for use in frozen.bound.uses},
        "diagnostics": [diagnostic.to_json() for diagnostic in computed.snapshot.diagnostics],
    }
    if preset is not None:
        assets["preset"] = {"id": preset.id, "name": preset.name, "prompts": [*map(_prompt, preset.prompts)]}
    if character is not None:
        assets["character"] = {"id": character.id, "name": character.name, "data": dict(character.data)}
    if user is not None:
        assets["user"] = {"id": user.id, "name": user.name, "description": user.description}
    return assets


def _prompt(prompt: PresetPrompt) -> dict[str, Json]:
    value: dict[str, Json] = {
        "identifier": prompt.identifier,
        "name": prompt.name,
        "role": prompt.role,
        "content": prompt.content,
        "enabled": prompt.enabled,
        "marker": prompt.marker,
    }
    if prompt.injection_position is not None:
        value["injectionPosition"] = prompt.injection_position
    if prompt.injection_depth is not None:
        value["injectionDepth"] = prompt.injection_depth
    for member in ("injection_order", "forbid_overrides"):
        if member in prompt.st:
            value[member] = prompt.st[member]
    return value


def _lore_entries(frozen: FrozenInput, computed: Computed) -> Iterator[Json]:
    if isinstance(computed.lore, AdapterResult):
        for report in computed.lore.reports:
            yield from _of_book(report)
    else:
        yield from _of_scan(frozen, computed, computed.lore)


def _of_scan(frozen: FrozenInput, computed: Computed, result: ScanResult) -> Iterator[Json]:
    """A scan's entries; their macros and scripts have run. What belongs to an outlet stands nowhere by itself."""
    books = frozen.bound.scan.books if frozen.bound.scan is not None else ()
    ids = {book.use.compiled.name: book.id for book in books}
    known = {f"{ids.get(each.entry.world)}:{each.entry.uid}": each.entry for each in result.active}
    for lore in computed.entries:
        entry = known.get(str(lore.id))
        if entry is None or lore.outlet is not None or not isinstance(entry.position, int):
            continue
        yield {
            "id": lore.id,
            "uid": lore.uid,
            "comment": entry.comment,
            "content": lore.content,
            "position": "before" if lore.before else "after",
            "requestedPosition": POSITIONS[entry.position],
            "role": entry.role or 0,
            "depth": DEFAULT_DEPTH if entry.depth is None else entry.depth,
            "order": entry.order,
            "constant": entry.constant,
            "resourceId": lore.resource_id,
        }


def _of_book(report: BookReport) -> Iterator[Json]:
    known = {lore_id(report.resource_id, each): each.entry for each in report.activation.accepted}
    for lore in report.lore:
        entry = known[lore.id]
        yield {
            "id": lore.id,
            "uid": lore.uid,
            "comment": entry.comment,
            "content": lore.content,
            "position": lore.position,
            "requestedPosition": entry.position,
            "role": entry.role,
            "depth": entry.depth,
            "order": entry.insertion_order,
            "constant": entry.constant,
            "resourceId": report.resource_id,
        }
