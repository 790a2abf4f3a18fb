"""From resolved outputs to one request: ownership, emission, order, depth, snapshots, checks.

Pure and all or nothing: the same plan and outputs give the same result, and a refusal gives none.
Source: spec/assembler §6-§13.
"""

from collections.abc import Mapping, Sequence
from typing import cast

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, utf16_length

from .adaptive import Adaptive, PlacementControl, placement_controls
from .checks import check_native_once, check_size, check_system_order, check_tools, emptiness
from .depth import insert_at_depth
from .emission import Emitter
from .entries import Entries, collect_entries
from .errors import AssemblyRefused
from .ids import content_hash, derived_id
from .layout import Layout
from .layout_blocks import apply_overrides, follow_regions, overridden_ids
from .messages import Message, text_of
from .nodes import Draft, Node, Span, finish_node, node_marks, read_marks
from .ordering import Ordering, Stage
from .outputs import Output
from .ownership import decide_ownership
from .plan import Plan
from .preset import AssemblyPreset
from .result import AssemblyResult, ResourceLayout
from .snapshots import SnapshotRecord, Snapshots, read_snapshot

_LAYOUT_FATAL = frozenset({"WORLD_BOOK_SLOT_MISSING", "NATIVE_SLOTS_ABSENT", "ASSEMBLY_REFERENCE_UNAVAILABLE"})
_COMPATIBILITY = (
    "Prompts and references follow the preset's own order; content at a depth counts native messages, "
    "never splits a tool transaction, and system updates keep their place in the history."
)


@attrs.frozen(eq=False)
class Carried:
    """What a session carries from its last request to this one."""

    snapshots: tuple[SnapshotRecord, ...] = ()
    marks: bytes | None = None


def read_carried(assembly: Json) -> Carried:
    """What a recorded request's ``metadata.assembly`` carries to the next one; nothing when it isn't one."""
    if not isinstance(assembly, dict):
        return Carried()
    records, nodes = assembly.get("snapshots"), assembly.get("nodes")
    return Carried(
        snapshots=tuple(read_snapshot(record) for record in records) if isinstance(records, list) else (),
        marks=node_marks((node["id"], node["hash"]) for node in nodes) if isinstance(nodes, list) else None,
    )


def place(
    plan: Plan,
    outputs: Sequence[Output],
    carried: Carried | None = None,
    *,
    max_bytes: int = limits.ASSEMBLY_CONTENT_BYTES,
) -> AssemblyResult:
    """The request that a plan's outputs make.

    Args:
        plan: the jobs and what was captured with them.
        outputs: one accepted output a job, in job order.
        carried: snapshots and node marks of the session's last request, if there was one.
        max_bytes: limit for the JSON of contributed messages.

    Raises:
        InvalidAssembly: sources that contradict each other.
        AssemblyRefused: a layout, order or size that isn't allowed.
    """
    return _Assembly(plan, carried or Carried(), max_bytes).run(outputs)


@attrs.define(eq=False)
class _Assembly:
    plan: Plan
    carried: Carried
    max_bytes: int
    diagnostics: list[dict[str, Json]] = attrs.field(factory=list)
    stages: list[Stage] = attrs.field(factory=list)

    @property
    def preset(self) -> AssemblyPreset:
        return self.plan.context.preset

    @property
    def native(self) -> Sequence[Message]:
        return self.plan.context.native_messages

    def run(self, outputs: Sequence[Output]) -> AssemblyResult:
        preset = self.preset
        self.diagnostics += self.plan.diagnostics
        for output in outputs:
            self.diagnostics += output.diagnostics
        entries = collect_entries(preset, self.plan.jobs, outputs)
        ownership = decide_ownership(entries)
        for source_id in ownership.unavailable:
            self.diagnostics.append({"code": "ASSEMBLY_REFERENCE_UNAVAILABLE", "sourceId": source_id})
        emitter = Emitter(self.plan.context, ownership, self.plan.render_text, self.diagnostics)
        drafts = self._order(emitter.emit_all())
        self._check_layout()
        controls = tuple(placement_controls(entries, ownership, drafts)) if preset.is_adaptive else None
        placed, records = self._insert(drafts)
        slots = tuple(slot.to_json() for slot in emitter.slots)
        return self._finish(entries, placed, records, controls, slots)

    def _order(self, drafts: list[Draft]) -> list[Draft]:
        preset, layout = self.preset, self.preset.layout
        if not preset.is_adaptive:
            if layout is None:
                return drafts
            drafts = self._run_ordering(drafts, layout, logical=False)
            return apply_overrides(drafts, preset, layout, self.diagnostics)
        is_logical = layout is not None and layout.identity == "position"

        def run_logical(nodes: list[Draft]) -> list[Draft]:
            return self._run_ordering(nodes, cast(Layout, layout), logical=True)

        drafts = Adaptive(preset, self.diagnostics, run_logical if is_logical else None).run(drafts)
        if layout is None:
            return drafts
        if not is_logical:
            drafts = self._run_ordering(drafts, layout, logical=False)
            follow_regions(drafts)
        return apply_overrides(drafts, preset, layout, self.diagnostics)

    def _run_ordering(self, nodes: list[Draft], layout: Layout, *, logical: bool) -> list[Draft]:
        ordering = Ordering(
            preset=self.preset,
            layout=layout,
            strategies=self.plan.strategies,
            diagnostics=self.diagnostics,
            logical=logical,
            overridden=overridden_ids(nodes, layout),
        )
        nodes = ordering.run(nodes)
        self.stages += ordering.stages
        return nodes

    def _check_layout(self) -> None:
        layout = self.preset.layout
        if layout is None or layout.fallback != "error":
            return
        found = next((record["code"] for record in self.diagnostics if record.get("code") in _LAYOUT_FATAL), None)
        if found is not None:
            raise AssemblyRefused(
                f"the layout insists on a place that isn't there ({found})", code="LAYOUT_TARGET_MISSING", status=409
            )

    def _insert(self, drafts: list[Draft]) -> tuple[list[Draft | SnapshotRecord], tuple[SnapshotRecord, ...]]:
        native_ids = frozenset(str(message["id"]) for message in self.native)
        for draft in drafts:
            draft.make_message()
        retained = [draft for draft in drafts if draft.is_snapshot]
        placed = insert_at_depth([draft for draft in drafts if not draft.is_snapshot], native_ids)
        if not retained and not self.carried.snapshots:
            return list(placed), ()
        snapshots = Snapshots(
            previous=self.carried.snapshots,
            kept_rules=self._snapshot_rules(),
            base=[message for draft in placed for message in draft.messages],
            native_ids=native_ids,
            diagnostics=self.diagnostics,
        )
        records = snapshots.update(retained)
        return _interleave(placed, snapshots.inject(records)), tuple(records)

    def _snapshot_rules(self) -> frozenset[str]:
        return frozenset(
            job.rule.id
            for job in self.plan.jobs
            if job.rule.lifetime == "snapshot" and (job.rule.enabled or not job.is_listed)
        )

    def _finish(
        self,
        entries: Entries,
        placed: Sequence[Draft | SnapshotRecord],
        records: tuple[SnapshotRecord, ...],
        controls: tuple[PlacementControl, ...] | None,
        slots: tuple[dict[str, Json], ...],
    ) -> AssemblyResult:
        messages, nodes, extra = self._lay_out(placed)
        required = [message_id for entry in self._emitted_native(placed) for message_id in entry]
        check_native_once(messages, required)
        check_system_order(messages, self.native, frozenset(required))
        check_tools(messages)
        self.diagnostics += emptiness(messages)
        size = check_size(extra, self.max_bytes)
        context, preset = self.plan.context, self.preset
        return AssemblyResult(
            messages=tuple(messages),
            nodes=tuple(nodes),
            snapshots=records,
            diagnostics=tuple(self.diagnostics),
            placement_controls=controls,
            sources=tuple(job.registration.descriptor() for job in self.plan.jobs),
            extra_bytes=size,
            preset_id=preset.id,
            preset_name=preset.name,
            preset_revision=preset.revision,
            preview=context.preview,
            compatibility=_COMPATIBILITY if preset.placement == "st" else None,
            layout=self._layout(entries, nodes, slots),
            deliveries={rule.id: rule.delivery for rule in preset.rules if rule.delivery is not None},
        )

    def _emitted_native(self, placed: Sequence[Draft | SnapshotRecord]) -> list[tuple[str, ...]]:
        """The messages each emitted native block names, however often depth has cut its node."""
        blocks = {item.entry.key: item.entry.block for item in placed if isinstance(item, Draft) and item.is_native}
        return [block.message_ids for block in blocks.values()]

    def _lay_out(self, placed: Sequence[Draft | SnapshotRecord]) -> tuple[list[Message], list[Node], list[Message]]:
        messages: list[Message] = []
        nodes: list[Node] = []
        extra: list[Message] = []
        seen: set[str] = {str(message["id"]) for message in self.native}
        previous = None if self.carried.marks is None else read_marks(self.carried.marks)
        for item in placed:
            start = len(messages)
            if isinstance(item, Draft) and item.is_native:
                own = list(item.messages)
            else:
                own = [_with_own_id(message, seen) for message in item.messages]
                extra += own
            messages += own
            if isinstance(item, Draft):
                nodes.append(finish_node(item, start, own, previous))
            else:
                nodes.append(_retained_node(item, start, own))
        return messages, nodes, extra

    def _layout(self, entries: Entries, nodes: Sequence[Node], slots: tuple[dict[str, Json], ...]) -> ResourceLayout:
        layout = self.preset.layout
        decisions = [
            {
                "nodeId": node.id,
                "sourceId": node.module,
                "positionId": node.position_id,
                "decision": node.position_decision,
            }
            for node in nodes
        ]
        decisions += [
            {"nodeId": entry.key, "sourceId": entry.source_id, "positionId": entry.position.id, "decision": "disabled"}
            for entry in entries
            if not entry.is_on
        ]
        priority = layout.priority if layout is not None else None
        return ResourceLayout(
            policy=layout,
            slots=slots,
            nodes=tuple(nodes),
            stages=tuple(self.stages),
            strategies=tuple(
                {"id": strategy.id, "pluginId": strategy.plugin_id, "name": list(strategy.name)}
                for strategy_id in priority or ()
                if (strategy := self.plan.strategies.get(strategy_id)) is not None
            ),
            decisions=tuple(decisions),
        )


def _with_own_id(message: Message, seen: set[str]) -> Message:
    """The message, with a fresh id when an earlier one has its id."""
    message_id, repeat = str(message["id"]), 0
    while message_id in seen:
        repeat += 1
        message_id = derived_id({"id": message["id"], "repeat": repeat})
    seen.add(message_id)
    return message if repeat == 0 else {**message, "id": message_id}


def _interleave(
    placed: Sequence[Draft], records: Mapping[str | None, Sequence[SnapshotRecord]]
) -> list[Draft | SnapshotRecord]:
    """The drafts with retained records after the messages they are anchored to."""
    result: list[Draft | SnapshotRecord] = []

    def add_after(message_id: str | None) -> None:
        for record in records.get(message_id, ()):
            result.append(record)
            add_after(str(record.messages[-1]["id"]))

    add_after(None)
    for draft in placed:
        rest = draft
        offset = 0
        for index, message in enumerate(draft.messages):
            if message["id"] not in records:
                continue
            head = attrs.evolve(rest, messages=draft.messages[offset : index + 1])
            result.append(head)
            add_after(str(message["id"]))
            offset = index + 1
            rest = attrs.evolve(draft, id=f"{draft.id}:split:{offset}")
        if offset < len(draft.messages) or not draft.messages:
            result.append(attrs.evolve(rest, messages=draft.messages[offset:]))
    return result


def _retained_node(record: SnapshotRecord, start: int, messages: Sequence[Message]) -> Node:
    text = "\n\n".join(text_of(message) for message in messages)
    role = str(messages[0]["role"])
    return Node(
        id=f"{record.id}:retained:{messages[0]['id']}",
        rule_id=record.rule_id,
        module=record.module,
        name=record.name,
        role=role,
        text=text,
        source=record.source,
        stability="snapshot",
        lifetime="snapshot",
        recorded=False,
        lock_reason="retained-snapshot",
        children=(),
        spans=(Span(0, utf16_length(text), record.id, "snapshot"),),
        hash=content_hash(text, role),
        depth=record.depth,
        order=100,
        changed=False,
        start=start,
        count=len(messages),
        request_message_ids=tuple(str(message["id"]) for message in messages),
        position_id="content",
        position_decision="runtime",
        original_role=role,
        message_roles=tuple(str(message["role"]) for message in messages),
        layout_group=str(record.source.get("field")),
        is_runtime=True,
    )
