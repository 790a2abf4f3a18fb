"""Turning owned blocks into draft nodes: references, macros, renderers, roles, depths.

Source: spec/assembler §6.3, §7.2, §8.1, §8.2.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from tapster.engine.ecma import Json, trim, utf16_length

from .context import RequestContext
from .entries import Entry, rank
from .errors import InvalidAssembly
from .frozen import freeze
from .messages import Message, by_id, text_of
from .nodes import Draft, Span, source_json
from .ownership import MACRO, Ownership, effective_rule
from .preset import AssemblyPreset, Rule
from .registry import discard


@attrs.frozen(eq=False)
class RenderInput:
    """What a renderer gets.

    Attributes:
        text: the block's text with content macros expanded.
        context: the request's frozen context.
        variables: one map shared by all blocks of the request, in emission order; discarded afterwards.
        block: the block as its source gave it, read-only.
        diagnostics: records may be appended.
        identity: the block's key, to name it in diagnostics.
        scratch: what renderers keep from block to block of one request, by keys of their own.
    """

    text: str
    context: RequestContext
    variables: dict[str, Json]
    block: Mapping[str, Json]
    diagnostics: list[dict[str, Json]]
    identity: str
    scratch: dict[object, Any]


@attrs.define
class SlotRecord:
    """One reference as a slot of the layout."""

    id: str
    source: Mapping[str, Json]
    target_source_id: str
    group: str | None
    target_keys: list[str]
    duplicate: bool
    node_ids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "source": dict(self.source),
            "targetSourceId": self.target_source_id,
            "group": self.group,
            "emitsText": False,
            "nodeIds": list(self.node_ids),
            "duplicate": self.duplicate,
        }


@attrs.frozen(eq=False)
class _Slot:
    """The outermost reference a block is reached through."""

    entry: Entry
    rule: Rule
    owner: str | None
    """Source id of the slot owner, None when the reference's source owns no slots."""


@attrs.define(eq=False)
class Emitter:
    """Emits the roots of a request, in order."""

    context: RequestContext
    ownership: Ownership
    default_renderer: Callable[..., object] | None
    diagnostics: list[dict[str, Json]]
    drafts: list[Draft] = attrs.field(factory=list)
    slots: list[SlotRecord] = attrs.field(factory=list)
    variables: dict[str, Json] = attrs.field(factory=dict)
    scratch: dict[object, Any] = attrs.field(factory=dict)
    _native: dict[str, Message] = attrs.field(factory=dict)
    _emitted: set[str] = attrs.field(factory=set)
    _listed: frozenset[str] = frozenset()
    _by_key: dict[str, Draft] = attrs.field(factory=dict)

    @property
    def preset(self) -> AssemblyPreset:
        return self.context.preset

    def emit_all(self) -> list[Draft]:
        """The drafts of all roots that nobody took over."""
        self._native = by_id(self.context.native_messages)
        self._listed = frozenset(rule.id for rule in self.preset.rules)
        for root in self.ownership.roots:
            if self.ownership.owner_of(root.entry) is None:
                self._emit(root.entry, root.rule, root.rule, None)
        for slot in self.slots:
            slot.node_ids = tuple(self._by_key[key].id for key in slot.target_keys if key in self._by_key)
        return self.drafts

    def _emit(self, entry: Entry, rule: Rule, place_rule: Rule, slot: _Slot | None) -> None:
        self._emitted.add(entry.key)
        if entry.block.type == "reference":
            self._emit_reference(entry, rule, place_rule, slot)
        elif entry.block.type == "native":
            self._emit_native(entry, rule, place_rule, slot)
        else:
            self._emit_text(entry, rule, place_rule, slot)

    def _emit_reference(self, entry: Entry, rule: Rule, place_rule: Rule, slot: _Slot | None) -> None:
        registration = entry.job.registration
        outermost = slot or _Slot(entry, rule, registration.id if registration.owns_slots else None)
        targets = self.ownership.targets(entry)
        is_duplicate = bool(targets) and all(target.key in self._emitted for target in targets)
        record = SlotRecord(
            id=entry.key,
            source=source_json(entry),
            target_source_id=entry.block.source_id,
            group=entry.block.group,
            target_keys=[target.key for target in targets],
            duplicate=is_duplicate,
        )
        self.slots.append(record)
        if is_duplicate:
            self.diagnostics.append({"code": "LAYOUT_DUPLICATE_SLOT", "slotId": entry.key})
        for target in targets:
            if target.key not in self._emitted and self.ownership.owner_of(target) == entry.key:
                own = effective_rule(self.preset.rules, target)
                self._emit(target, rule if entry.block.use_owner_rule else own, place_rule, outermost)
                self._lock(target, entry)

    def _lock(self, target: Entry, reference: Entry) -> None:
        draft = self._by_key.get(target.key)
        if draft is not None and draft.lock_reason is None and reference.block.lock:
            draft.lock_reason = f"reference:{reference.block.owner or reference.block.id}"

    def _emit_native(self, entry: Entry, rule: Rule, place_rule: Rule, slot: _Slot | None) -> None:
        messages = []
        for message_id in entry.block.message_ids:
            message = self._native.get(message_id)
            if message is None:
                raise InvalidAssembly(
                    f"{entry.source_id} names the native message {message_id}, which the session doesn't have",
                    code="NATIVE_MESSAGE_UNKNOWN",
                )
            messages.append(message)
        keeps_empty = self.preset.is_adaptive and entry.source_id in ("history", "input")
        if not messages and not keeps_empty:
            return
        text = "\n\n".join(text_of(message) for message in messages)
        draft = self._draft(entry, rule, place_rule, slot, "preserve", text)
        draft.messages = messages
        draft.decision = "runtime"
        draft.children = list(entry.block.children)
        draft.spans = (Span(0, utf16_length(text), entry.key, "native"),) if text else ()
        if not self.preset.is_adaptive:
            draft.depth = entry.block.depth

    def _emit_text(self, entry: Entry, rule: Rule, place_rule: Rule, slot: _Slot | None) -> None:
        text, spans, children = self._expand(entry)
        rendered = self._render(entry, text)
        if rendered == "":
            return
        draft = self._draft(entry, rule, place_rule, slot, self._role(entry, rule, slot), rendered)
        draft.children = [*entry.block.children, *children]
        draft.spans = spans if rendered == text else (Span(0, utf16_length(rendered), entry.key, "render"),)
        draft.original_role = entry.block.role or "system"
        depth = self._depth(entry, rule, slot)
        if self.preset.is_adaptive:
            draft.requested_depth = depth
            self._report_depth(draft)
        else:
            draft.depth = depth
        draft.decision = _first_decision(draft)

    def _draft(self, entry: Entry, rule: Rule, place_rule: Rule, slot: _Slot | None, role: str, text: str) -> Draft:
        registration = entry.job.registration
        draft = Draft(id=entry.key, entry=entry, rule=rule, place_rule=place_rule, role=role, text=text)
        if slot is not None:
            draft.slot_id = slot.entry.key
            if slot.owner is not None:
                draft.slot_owner, draft.slot_owner_rule_id = slot.owner, slot.rule.id
        elif registration.owns_slots and entry.block.type == "text":
            draft.slot_owner, draft.slot_owner_rule_id = registration.id, rule.id
        self.drafts.append(draft)
        self._by_key[entry.key] = draft
        return draft

    def _expand(self, entry: Entry) -> tuple[str, tuple[Span, ...], list[Json]]:
        parts: list[str] = []
        spans: list[Span] = []
        children: list[Json] = []
        position, offset = 0, 0
        text = entry.block.text

        def add(piece: str, key: str, via: str) -> None:
            nonlocal offset
            if piece:
                end = offset + utf16_length(piece)
                parts.append(piece)
                if spans and (spans[-1].key, spans[-1].via) == (key, via):
                    spans[-1] = attrs.evolve(spans[-1], end=end)
                else:
                    spans.append(Span(offset, end, key, via))
                offset = end

        for match in MACRO.finditer(text):
            name = trim(match.group(1))
            target = self.ownership.macro_target(entry, name)
            if target is None:
                continue
            add(text[position : match.start()], entry.key, "text")
            position = match.end()
            if self.ownership.is_macro_allowed(target):
                add(target.block.text, target.key, f"macro:{name}")
                children.append(_macro_child(target, name))
        add(text[position:], entry.key, "text")
        return "".join(parts), tuple(spans), children

    def _render(self, entry: Entry, text: str) -> str:
        renderer = entry.job.registration.definition.render_text or self.default_renderer
        if renderer is None:
            return text
        block = freeze(entry.block.raw)
        given = RenderInput(text, self.context, self.variables, block, self.diagnostics, entry.key, self.scratch)
        rendered = renderer(given)
        if not isinstance(rendered, str):
            discard(rendered)
            raise InvalidAssembly(f"{entry.source_id}: renderText must return text at once", code="RENDER_TEXT_RESULT")
        return rendered

    def _role(self, entry: Entry, rule: Rule, slot: _Slot | None) -> str:
        layout, block = self.preset.layout, entry.block
        if layout is not None and layout.identity == "preserve":
            own = entry.job.rule
            written = own.role if not own.is_module and own.role != "preserve" else None
            return block.role or written or "system"
        if self.preset.placement == "native-roles" and entry.source_id == "worldbook":
            return block.role or "system"
        owns = entry.job.registration.owns_slots or (slot is not None and slot.owner is not None)
        if self.preset.is_adaptive and owns:
            return (slot.entry.block.role if slot is not None else None) or block.role or "system"
        return rule.role if rule.role != "preserve" else block.role or "system"

    def _depth(self, entry: Entry, rule: Rule, slot: _Slot | None) -> int | None:
        preset = self.preset
        is_listed = rule.id in self._listed
        block_depth = entry.block.depth
        depth = rule.depth if preset.is_list and is_listed else rule.depth if block_depth is None else block_depth
        if entry.is_user_placed or (slot is not None and rank(preset, "preset", "resource")):
            return None
        return None if rank(preset, "default", "resource") else depth

    def _report_depth(self, draft: Draft) -> None:
        depth = draft.requested_depth
        is_boundary = self.preset.placement == "native-slots" and draft.module == "worldbook" and depth in (0, 1)
        if depth is not None and not is_boundary:
            self.diagnostics.append(
                {"code": "NATIVE_DEPTH_APPROXIMATED", "id": draft.id, "name": draft.name, "depth": depth}
            )


def _macro_child(target: Entry, name: str) -> dict[str, Json]:
    return {
        "id": target.key,
        "name": target.block.id,
        "lockReason": f"macro:{name}",
        "text": target.block.text,
        "source": source_json(target),
        "stability": target.block.stability or target.job.registration.definition.stability,
    }


def _first_decision(draft: Draft) -> str:
    """Who placed a text node before any strategy runs."""
    if draft.is_snapshot:
        return "runtime"
    if draft.entry.is_user_placed:
        return "user"
    if draft.depth is not None or draft.requested_depth is not None:
        return "resource-depth"
    return "preset" if draft.slot_id is not None else "source"
