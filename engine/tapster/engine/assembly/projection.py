"""The core backend's last step: ordered system contributions folded into complete system snapshots.

Source: spec/assembler §12.1.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, utf16_length

from .errors import AssemblyRefused, InvalidAssembly
from .ids import derived_id
from .messages import Message, blocks_of, by_id, json_size, text_of
from .nodes import Node, Span
from .result import AssemblyResult

Capability = Literal["in-history", "leading-only", "unverified"]
_SEPARATOR = "\n\n"


@attrs.frozen
class ProjectedSystem:
    """One emitted system snapshot.

    Attributes:
        index: its place in the projected messages.
        input_ids: the logical system messages folded in here.
        message_id: the emitted message.
        contributor_ids: all logical system messages whose text it holds.
        replaced_native_ids: native ones superseded before they were ever sent.
        spans: which contributor each character is from; separators belong to what follows them.
    """

    index: int
    input_ids: tuple[str, ...]
    message_id: str
    contributor_ids: tuple[str, ...]
    replaced_native_ids: tuple[str, ...]
    spans: tuple[Span, ...]

    def to_json(self) -> dict[str, Json]:
        return {
            "index": self.index,
            "inputIds": list(self.input_ids),
            "messageId": self.message_id,
            "contributorIds": list(self.contributor_ids),
            "replacedNativeIds": list(self.replaced_native_ids),
        }


@attrs.frozen(eq=False)
class Projection:
    """The physical request of a logical one."""

    messages: tuple[Message, ...]
    nodes: tuple[Node, ...]
    diagnostics: tuple[dict[str, Json], ...]
    capability: Capability
    systems: tuple[ProjectedSystem, ...]
    extra_bytes: int
    max_bytes: int
    logical: AssemblyResult

    def metadata(self) -> dict[str, Json]:
        """Everything but the messages, as a recorded request keeps it."""
        return self.logical.metadata() | {
            "nodes": [node.to_json() for node in self.nodes],
            "diagnostics": list(self.diagnostics),
            "extraBytes": self.extra_bytes,
            "logicalExtraBytes": self.logical.extra_bytes,
            "systemProjection": {
                "version": 1,
                "semantics": "complete-snapshots",
                "capability": self.capability,
                "maxBytes": self.max_bytes,
                "messages": [system.to_json() for system in self.systems],
            },
        }


def project_system_snapshots(
    logical: AssemblyResult,
    native_messages: Sequence[Message],
    max_bytes: int = limits.SYSTEM_PROJECTION_BYTES,
    *,
    system_prompt_update: str | None = None,
    preview: bool = False,
) -> Projection:
    """Fold system messages so that each one sent is the complete instruction text up to there.

    Args:
        logical: the ordered request.
        native_messages: the host's messages.
        max_bytes: the physical ceiling on added bytes; nothing is ever truncated.
        system_prompt_update: what the model can do with a later system message.
        preview: report an unverified capability instead of refusing.

    Raises:
        InvalidAssembly: ``SYSTEM_CONTENT_UNSUPPORTED`` for system content that isn't text.
        AssemblyRefused: ``ASSEMBLY_SYSTEM_UPDATES_UNSUPPORTED`` (409) or ``ASSEMBLY_TOO_LARGE`` (413).
    """
    fold = _Fold(by_id(native_messages))
    for index, message in enumerate(logical.messages):
        fold.add(index, message)
    fold.flush()
    if fold.extra_bytes > max_bytes:
        raise AssemblyRefused(
            f"the system snapshots add {fold.extra_bytes} bytes, {max_bytes} are allowed",
            code="ASSEMBLY_TOO_LARGE",
            status=413,
            details={"size_bytes": fold.extra_bytes, "limit_bytes": max_bytes},
        )
    capability, diagnostics = _capability(fold.systems, system_prompt_update, preview)
    return Projection(
        messages=tuple(fold.messages),
        nodes=tuple(_remap(node, fold) for node in logical.nodes),
        diagnostics=(*logical.diagnostics, *diagnostics),
        capability=capability,
        systems=tuple(fold.systems),
        extra_bytes=fold.extra_bytes,
        max_bytes=max_bytes,
        logical=logical,
    )


def _capability(
    systems: Sequence[ProjectedSystem], update: str | None, preview: bool
) -> tuple[Capability, list[dict[str, Json]]]:
    if update == "in-history":
        return "in-history", []
    has_late = any(system.index > 0 for system in systems)
    if preview:
        return "unverified", [{"code": "SYSTEM_UPDATE_CAPABILITY_UNVERIFIED"}] if has_late else []
    if has_late:
        raise AssemblyRefused(
            "the chosen model can't take system instructions within the history",
            code="ASSEMBLY_SYSTEM_UPDATES_UNSUPPORTED",
            status=409,
        )
    return "leading-only", []


@attrs.define(eq=False)
class _Fold:
    native: Mapping[str, Message]
    messages: list[Message] = attrs.field(factory=list)
    systems: list[ProjectedSystem] = attrs.field(factory=list)
    places: dict[int, int] = attrs.field(factory=dict)
    """Logical message index -> projected index."""
    extra_bytes: int = 0
    _parts: list[Message] = attrs.field(factory=list)
    _native_part: int | None = None
    _queue: list[Message] = attrs.field(factory=list)

    def is_native(self, message: Message) -> bool:
        return str(message["id"]) in self.native

    def add(self, index: int, message: Message) -> None:
        if message.get("role") != "system":
            self.flush()
            self.places[index] = len(self.messages)
            self.messages.append(message)
            return
        blocks = blocks_of(message)
        if any(block.get("type") != "text" for block in blocks) or len(blocks) != len(message["content"]):
            raise InvalidAssembly("a system snapshot can hold text only", code="SYSTEM_CONTENT_UNSUPPORTED")
        self.places[index] = len(self.messages)
        self._queue.append(message)
        if not self.is_native(message):
            self._parts.append(message)
        elif self._native_part is not None:
            self._parts[self._native_part] = message
        else:
            self._native_part = len(self._parts)
            self._parts.append(message)

    def flush(self) -> None:
        if not self._queue:
            return
        text, spans = self._text()
        last = self._queue[-1]
        emitted = last if text_of(last) == text else self._copy(last, text)
        part_ids = [str(part["id"]) for part in self._parts]
        natives = [str(message["id"]) for message in self._queue if self.is_native(message)]
        counterpart = self.native[natives[-1]] if natives else None
        self.extra_bytes += max(0, _size(emitted) - (0 if counterpart is None else _size(counterpart)))
        self.systems.append(
            ProjectedSystem(
                index=len(self.messages),
                input_ids=tuple(str(message["id"]) for message in self._queue),
                message_id=str(emitted["id"]),
                contributor_ids=tuple(part_ids),
                replaced_native_ids=tuple(native for native in natives if native not in part_ids),
                spans=spans,
            )
        )
        self.messages.append(emitted)
        self._queue = []

    def _text(self) -> tuple[str, tuple[Span, ...]]:
        texts: list[str] = []
        spans: list[Span] = []
        offset = 0
        for part in self._parts:
            text = text_of(part)
            if not text:
                continue
            piece = text if not texts else _SEPARATOR + text
            end = offset + utf16_length(piece)
            spans.append(Span(offset, end, str(part["id"]), "text"))
            texts.append(piece)
            offset = end
        return "".join(texts), tuple(spans)

    def _copy(self, message: Message, text: str) -> Message:
        seed = {"id": message["id"], "system": text, "at": len(self.messages)}
        return {**message, "id": derived_id(seed), "content": [{"type": "text", "text": text}]}


def _size(message: Message) -> int:
    return json_size(message)


def _remap(node: Node, fold: _Fold) -> Node:
    if node.count == 0:
        before = [place for index, place in fold.places.items() if index < node.start]
        return attrs.evolve(node, start=before[-1] + 1 if before else 0)
    first, last = fold.places[node.start], fold.places[node.start + node.count - 1]
    return attrs.evolve(
        node,
        start=first,
        count=last - first + 1,
        input_message_ids=node.request_message_ids,
        request_message_ids=tuple(str(message["id"]) for message in fold.messages[first : last + 1]),
    )
