"""Retained request snapshots: content appended once and kept in its place while it is current.

Source: spec/assembler §8.4.
"""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json

from .ids import derived_id
from .messages import Message, contributed
from .nodes import Draft, source_json


@attrs.frozen
class SnapshotRecord:
    """One retained contribution and where it stands."""

    id: str
    rule_id: str
    name: str
    source: Mapping[str, Json]
    depth: int | None
    hash: str
    messages: tuple[Message, ...]
    after_id: str | None
    native_after_id: str | None
    module: str

    def to_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "ruleId": self.rule_id,
            "name": self.name,
            "source": dict(self.source),
            "depth": self.depth,
            "hash": self.hash,
            "messages": [dict(message) for message in self.messages],
            "afterId": self.after_id,
            "nativeAfterId": self.native_after_id,
            "module": self.module,
        }


def read_snapshot(value: Mapping[str, Json]) -> SnapshotRecord:
    """A record as an earlier request stored it."""
    return SnapshotRecord(
        id=value["id"],
        rule_id=value["ruleId"],
        name=value["name"],
        source=value["source"],
        depth=value["depth"],
        hash=value["hash"],
        messages=tuple(value["messages"]),
        after_id=value["afterId"],
        native_after_id=value["nativeAfterId"],
        module=value["module"],
    )


def expiry_text(name: str) -> str:
    """What tells the model that an entry's retained content is no longer current."""
    return f"Current context is empty for entry {name}. Its earlier snapshots are no longer current."


@attrs.define(eq=False)
class Snapshots:
    """The snapshot step of one assembly.

    Attributes:
        previous: the records carried from the last request.
        kept_rules: ids of rules whose records stay.
        base: the request's messages without snapshots.
        native_ids: ids of the host's messages.
        diagnostics: where lost anchors are reported.
    """

    previous: Sequence[SnapshotRecord]
    kept_rules: frozenset[str]
    base: Sequence[Message]
    native_ids: frozenset[str]
    diagnostics: list[dict[str, Json]]

    def update(self, drafts: Sequence[Draft]) -> list[SnapshotRecord]:
        """The records after this request: kept, changed and expired ones."""
        records = [record for record in self.previous if record.rule_id in self.kept_rules]
        kept_ids = list(dict.fromkeys(record.id for record in records))
        last = self.base[-1]["id"] if self.base else None
        last_native = self._last_native()
        for draft in drafts:
            if _newest_hash(records, draft.id) != draft.hash:
                records.append(_record(draft, records, last, last_native))
        present = {draft.id for draft in drafts}
        for record_id in kept_ids:
            if record_id not in present and _newest_hash(records, record_id) != "empty":
                records.append(_expired(records, record_id, last_native))
        return records

    def _last_native(self) -> str | None:
        found = [str(message["id"]) for message in self.base if message["id"] in self.native_ids]
        return found[-1] if found else None

    def inject(self, records: Sequence[SnapshotRecord]) -> dict[str | None, list[SnapshotRecord]]:
        """Records by the message they follow; None is before everything. Lost anchors are reported."""
        known = {str(message["id"]) for message in self.base}
        placed: dict[str | None, list[SnapshotRecord]] = {}
        for record in records:
            if record.after_id is None or record.after_id in known:
                anchor = record.after_id
            elif record.native_after_id is not None and record.native_after_id in known:
                anchor = record.native_after_id
                self.diagnostics.append({"code": "SNAPSHOT_ANCHORED_TO_NATIVE_HISTORY", "id": record.id})
            else:
                self.diagnostics.append({"code": "SNAPSHOT_ANCHOR_NO_LONGER_ACTIVE", "id": record.id})
                continue
            placed.setdefault(anchor, []).append(record)
            known.update(str(message["id"]) for message in record.messages)
        return placed


def _newest(records: Sequence[SnapshotRecord], record_id: str) -> SnapshotRecord | None:
    return next((record for record in reversed(records) if record.id == record_id), None)


def _newest_hash(records: Sequence[SnapshotRecord], record_id: str) -> str | None:
    newest = _newest(records, record_id)
    return None if newest is None else newest.hash


def _fresh(message: Message, record_id: str, records: Sequence[SnapshotRecord]) -> Message:
    generation = sum(record.id == record_id for record in records)
    return {**message, "id": derived_id({"id": message["id"], "snapshot": record_id, "generation": generation})}


def _record(
    draft: Draft, records: Sequence[SnapshotRecord], last: str | None, last_native: str | None
) -> SnapshotRecord:
    return SnapshotRecord(
        id=draft.id,
        rule_id=draft.rule.id,
        name=draft.name,
        source=source_json(draft.entry),
        depth=draft.depth,
        hash=draft.hash,
        messages=tuple(_fresh(message, draft.id, records) for message in draft.messages),
        after_id=last,
        native_after_id=last_native,
        module=draft.module,
    )


def _expired(records: Sequence[SnapshotRecord], record_id: str, last_native: str | None) -> SnapshotRecord:
    newest = _newest(records, record_id)
    if newest is None:
        raise KeyError(record_id)
    message = contributed(record_id, expiry_text(newest.name), "system")
    return attrs.evolve(newest, hash="empty", messages=(_fresh(message, record_id, records),), after_id=last_native)
