"""What a model streams, as values, and the message that grows from it.

Source: spec/dsh_host §5 (chunk kinds), §7 (kept prefix), §8 (failures).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Literal, TypeAlias, final

import attrs

from tapster.engine.ecma import Json, utf16_slice

BlockType = Literal["text", "reasoning", "tool-call"]


@attrs.frozen
class Failure:
    """Why a request failed; ``code`` is one of spec/dsh_host §8.

    Attributes:
        retry_after_ms: how long the provider asked to wait.
    """

    code: str
    message: str
    status: int | None = None
    request_id: str | None = None
    retry_after_ms: int | None = None

    def to_json(self) -> Json:
        """The failure as the log has it."""
        value: Json = {"message": self.message, "code": self.code}
        optional = {"status": self.status, "providerRetryAfterMs": self.retry_after_ms, "requestId": self.request_id}
        return value | {name: member for name, member in optional.items() if member is not None}


@attrs.frozen
class BlockStart:
    """A block begins."""

    index: int
    block_type: BlockType

    def to_json(self) -> Json:
        """The chunk as the log has it."""
        return {"type": "block-start", "index": self.index, "blockType": self.block_type}


@attrs.frozen
class TextDelta:
    """More text of a text block."""

    index: int
    text: str

    def to_json(self) -> Json:
        """The chunk as the log has it."""
        return {"type": "text-delta", "index": self.index, "text": self.text}


@attrs.frozen
class ReasoningDelta:
    """More text of a reasoning block."""

    index: int
    text: str

    def to_json(self) -> Json:
        """The chunk as the log has it."""
        return {"type": "reasoning-delta", "index": self.index, "text": self.text}


@attrs.frozen
class ToolCallDelta:
    """More of a tool call's arguments, as raw JSON text."""

    index: int
    id: str
    name: str
    arguments: str

    def to_json(self) -> Json:
        """The chunk as the log has it."""
        return {
            "type": "tool-call-delta",
            "index": self.index,
            "id": self.id,
            "name": self.name,
            "argumentsDelta": self.arguments,
        }


@attrs.frozen
class BlockEnd:
    """A block is whole; ``block`` is its content block."""

    index: int
    block: Json

    def to_json(self) -> Json:
        """The chunk as the log has it."""
        return {"type": "block-end", "index": self.index, "block": self.block}


@attrs.frozen
class UsageChunk:
    """Token counts of the request."""

    usage: Json

    def to_json(self) -> Json:
        """The chunk as the log has it."""
        return {"type": "usage", "usage": self.usage}


@attrs.frozen
class Finish:
    """The last chunk: how the stream ended; ``failure`` only with kind ``error``."""

    kind: Literal["stop", "tool-calls", "max-tokens", "content-filter", "error", "aborted"]
    failure: Failure | None = None

    def to_json(self) -> Json:
        """The chunk as the log has it."""
        reason: Json = {"kind": self.kind}
        if self.failure is not None:
            reason["failure"] = self.failure.to_json()
        return {"type": "finish", "reason": reason}


Chunk: TypeAlias = BlockStart | TextDelta | ReasoningDelta | ToolCallDelta | BlockEnd | UsageChunk | Finish


@attrs.define
class _Block:
    kind: BlockType
    parts: list[str] = attrs.field(factory=list)
    id: str = ""
    name: str = ""
    whole: Json = None

    def content(self) -> Json:
        text = joined(self.parts)
        if self.whole is not None:
            return self.whole
        if self.kind == "tool-call":
            return {"type": "tool-call", "id": self.id, "name": self.name, "arguments": text}
        return {"type": self.kind, "text": text}

    @property
    def is_empty(self) -> bool:
        return self.whole is None and not any(self.parts) and not self.id


@final
@attrs.define(eq=False)
class Reply:
    """A reply as far as it has arrived: content blocks, the chunks, usage and the end."""

    chunks: list[Chunk] = attrs.field(factory=list)
    usage: Json = None
    finish: Finish | None = None
    _blocks: dict[int, _Block] = attrs.field(factory=dict)

    def take(self, chunk: Chunk) -> None:
        """Add the next chunk."""
        self.chunks.append(chunk)
        match chunk:
            case BlockStart(index, kind):
                self._blocks[index] = _Block(kind)
            case TextDelta(index, text):
                self._block(index, "text").parts.append(text)
            case ReasoningDelta(index, text):
                self._block(index, "reasoning").parts.append(text)
            case ToolCallDelta(index, call_id, name, arguments):
                block = self._block(index, "tool-call")
                block.parts.append(arguments)
                block.id, block.name = call_id or block.id, name or block.name
            case BlockEnd(index, block_content):
                self._block(index, block_content["type"]).whole = block_content
            case UsageChunk(usage):
                self.usage = usage
            case Finish():
                self.finish = chunk

    def content(self) -> list[Json]:
        """The content blocks in order, empty ones left out."""
        return [block.content() for _, block in sorted(self._blocks.items()) if not block.is_empty]

    def rendered_prefix(self) -> list[Json]:
        """What a reader has seen of an interrupted reply: text and reasoning, no tool calls."""
        return [block for block in self.content() if block["type"] != "tool-call"]

    def stream(self) -> list[Json]:
        """The chunks as ``stream`` of a message or attempt in log format 4; deltas in a row are one."""
        return [{"type": "chunk", "chunk": chunk.to_json()} for chunk in merged(self.chunks)]

    def _block(self, index: int, kind: BlockType) -> _Block:
        return self._blocks.setdefault(index, _Block(kind))


def joined(parts: Sequence[str]) -> str:
    """Pieces of a text as one; a surrogate pair that was cut between two pieces becomes its character again."""
    return utf16_slice("".join(parts), 0)


def merged(chunks: Sequence[Chunk]) -> Iterator[Chunk]:
    """The chunks with deltas of one block that follow each other joined."""
    for _, group in groupby(enumerate(chunks), key=_run_key):
        run = [chunk for _, chunk in group]
        first = run[0]
        if isinstance(first, ToolCallDelta):
            parts = [chunk.arguments for chunk in run if isinstance(chunk, ToolCallDelta)]
            yield attrs.evolve(first, arguments=joined(parts))
        elif isinstance(first, TextDelta | ReasoningDelta):
            texts = [chunk.text for chunk in run if isinstance(chunk, TextDelta | ReasoningDelta)]
            yield attrs.evolve(first, text=joined(texts))
        else:
            yield first


def _run_key(numbered: tuple[int, Chunk]) -> tuple[type, int, int]:
    place, chunk = numbered
    if isinstance(chunk, TextDelta | ReasoningDelta | ToolCallDelta):
        return type(chunk), chunk.index, -1
    return type(chunk), 0, place


def has_output(chunks: Sequence[Chunk]) -> bool:
    """Whether any output began: a chunk other than usage and finish."""
    return any(not isinstance(chunk, UsageChunk | Finish) for chunk in chunks)
