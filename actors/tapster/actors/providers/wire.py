"""The OpenAI chat-completions wire, both ways, without any network: requests out, stream objects in.

Source: spec/dsh_host §13.3. DeepSeek's ``reasoning_content`` is read, and sent back beside tool calls as the host does.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, final

import attrs

from tapster.engine.ecma import Json, is_record, is_safe_integer, parse_json
from tapster.engine.errors import FormatError

from .chunks import (
    BlockEnd,
    BlockStart,
    BlockType,
    Chunk,
    Failure,
    Finish,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    UsageChunk,
    joined,
)
from .port import ModelRequest

DONE: Final = "[DONE]"
_FINISHES: Final[Mapping[str, Finish]] = {
    "stop": Finish("stop"),
    "tool_calls": Finish("tool-calls"),
    "function_call": Finish("tool-calls"),
    "length": Finish("max-tokens"),
    "content_filter": Finish("content-filter"),
}


def request_body(request: ModelRequest, max_tokens_member: str = "max_tokens") -> Json:
    """The JSON body of ``POST /chat/completions``; some servers want ``max_completion_tokens`` instead."""
    config = request.config
    body: Json = {
        "model": request.model,
        "messages": wire_messages(request.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    names = {
        "maxTokens": max_tokens_member,
        "temperature": "temperature",
        "stop": "stop",
        "reasoningEffort": "reasoning_effort",
    }
    body |= {wire: config[name] for name, wire in names.items() if config.get(name) is not None}
    if request.tools:
        body["tools"] = [{"type": "function", "function": dict(tool)} for tool in request.tools]
    return body


def wire_messages(messages: Sequence[Json]) -> list[Json]:
    """Derived messages as the wire has them; a tool call whose result is missing is left out."""
    answered = {block["toolCallId"] for message in messages for block in _blocks(message, "tool-result")}
    return [wire for message in messages for wire in _wire(message, answered)]


def _wire(message: Json, answered: set[str]) -> Iterator[Json]:
    results = _blocks(message, "tool-result")
    for block in results:
        yield {"role": "tool", "tool_call_id": block["toolCallId"], "content": _text(block.get("content") or ())}
    text = _content(message)
    if message["role"] == "assistant":
        yield from _wire_assistant(message, text, answered)
    elif text and not (results and text == ""):
        yield {"role": message["role"], "content": text}


def _wire_assistant(message: Json, text: Json, answered: set[str]) -> Iterator[Json]:
    calls = [block for block in _blocks(message, "tool-call") if block["id"] in answered]
    reasoning = "".join(block["text"] for block in _blocks(message, "reasoning"))
    if not text and not calls:
        return
    wire: Json = {"role": "assistant", "content": text or None}
    if reasoning and calls:
        wire["reasoning_content"] = reasoning
    if calls:
        wire["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in calls
        ]
    yield wire


def _blocks(message: Json, kind: str) -> list[Json]:
    content = message.get("content")
    return [block for block in content if block.get("type") == kind] if isinstance(content, list) else []


def _text(content: Sequence[Json]) -> str:
    return "".join(block["text"] for block in content if block.get("type") == "text")


def _content(message: Json) -> Json:
    content = message.get("content")
    if isinstance(content, str):
        return content
    images = [block for block in content or () if block.get("type") == "image" and isinstance(block.get("url"), str)]
    text = _text(content or ())
    if not images:
        return text
    parts: list[Json] = [{"type": "text", "text": text}] if text else []
    return parts + [{"type": "image_url", "image_url": {"url": block["url"]}} for block in images]


@attrs.define
class _OpenBlock:
    index: int
    kind: BlockType
    parts: list[str] = attrs.field(factory=list)
    id: str = ""
    name: str = ""

    def end(self) -> BlockEnd:
        text = joined(self.parts)
        if self.kind == "tool-call":
            return BlockEnd(self.index, {"type": self.kind, "id": self.id, "name": self.name, "arguments": text})
        return BlockEnd(self.index, {"type": self.kind, "text": text})


@final
@attrs.define(eq=False)
class ChunkParser:
    """Turns the ``data`` of one stream's events into chunks; ``is_done`` after ``[DONE]``."""

    is_done: bool = False
    failure: Failure | None = None
    _finish: Finish | None = None
    _usage: Json = None
    _blocks: list[_OpenBlock] = attrs.field(factory=list)
    _calls: dict[int, _OpenBlock] = attrs.field(factory=dict)

    def feed(self, data: str) -> list[Chunk]:
        """The chunks of one event; an error in it is kept in ``failure`` and ends the stream."""
        if self.is_done or self.failure is not None:
            return []
        if data.strip() == DONE:
            self.is_done = True
            return []
        try:
            value = parse_json(data)
        except FormatError as error:
            self.failure = Failure("MALFORMED_RESPONSE", f"the provider's stream isn't JSON: {error.message}")
            return []
        return list(self._value(value))

    def close(self) -> list[Chunk]:
        """The last chunks, once the stream has ended: whole blocks, usage, and how it went."""
        finish = self._ending()
        if finish.kind == "error":
            return [finish]
        usage = [] if self._usage is None else [UsageChunk(self._usage)]
        return [*(block.end() for block in self._blocks), *usage, finish]

    def _ending(self) -> Finish:
        if self.failure is not None:
            return Finish("error", self.failure)
        if self._finish is None and not self.is_done:
            return Finish("error", Failure("STREAM_CLOSED", "the event stream ended without [DONE]"))
        if not any(part for block in self._blocks for part in (*block.parts, block.name)):
            return Finish("error", Failure("EMPTY_RESPONSE", "the model answered without any content"))
        return self._finish or Finish("stop")

    def _value(self, value: Json) -> Iterator[Chunk]:
        if not is_record(value):
            self.failure = Failure("MALFORMED_RESPONSE", "the provider's stream sent something that is no object")
            return
        if value.get("error"):
            self.failure = failure_of(None, value)
            return
        if is_record(value.get("usage")):
            self._usage = usage_of(value["usage"])
        choices = value.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not is_record(choice):
                continue
            delta = choice.get("delta")
            if is_record(delta):
                yield from self._delta(delta)
            reason = choice.get("finish_reason")
            if isinstance(reason, str):
                self._finish = _FINISHES.get(reason, Finish("stop"))

    def _delta(self, delta: Json) -> Iterator[Chunk]:
        reasoning = delta.get("reasoning_content") or delta.get("reasoning")
        if isinstance(reasoning, str) and reasoning:
            block, started = self._current("reasoning")
            block.parts.append(reasoning)
            yield from (*started, ReasoningDelta(block.index, reasoning))
        text = delta.get("content")
        if isinstance(text, str) and text:
            block, started = self._current("text")
            block.parts.append(text)
            yield from (*started, TextDelta(block.index, text))
        for call in delta.get("tool_calls") or ():
            if is_record(call):
                yield from self._call(call)

    def _current(self, kind: BlockType) -> tuple[_OpenBlock, list[Chunk]]:
        if self._blocks and self._blocks[-1].kind == kind and kind != "tool-call":
            return self._blocks[-1], []
        block = _OpenBlock(len(self._blocks), kind)
        self._blocks.append(block)
        return block, [BlockStart(block.index, kind)]

    def _call(self, call: Json) -> Iterator[Chunk]:
        number = call.get("index", len(self._calls))
        block = self._calls.get(number)
        if block is None:
            block, started = self._current("tool-call")
            self._calls[number] = block
            yield from started
        function = call.get("function")
        function = function if is_record(function) else {}
        block.id = call.get("id") or block.id or f"call-{number}"
        block.name = function.get("name") or block.name
        arguments = function.get("arguments") or ""
        block.parts.append(arguments)
        yield ToolCallDelta(block.index, block.id, block.name, arguments)


def usage_of(usage: Json) -> Json:
    """Token counts in the log's names."""
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if is_record(details) else usage.get("prompt_cache_hit_tokens")
    value = {"inputTokens": usage.get("prompt_tokens") or 0, "outputTokens": usage.get("completion_tokens") or 0}
    if not cached:
        return value
    return {**value, "inputTokens": max(0, value["inputTokens"] - cached), "cacheReadTokens": cached}


_BY_STATUS: Final[Mapping[int, str]] = {
    400: "INVALID_REQUEST",
    401: "AUTH",
    402: "QUOTA",
    403: "AUTH",
    408: "TIMEOUT",
    413: "CONTEXT_WINDOW_EXCEEDED",
    422: "INVALID_REQUEST",
    429: "RATE_LIMIT",
}
_BY_WORD: Final[Mapping[str, str]] = {
    "insufficient_quota": "QUOTA",
    "context_length_exceeded": "CONTEXT_WINDOW_EXCEEDED",
    "rate_limit_exceeded": "RATE_LIMIT",
    "invalid_api_key": "AUTH",
    "invalid_request_error": "INVALID_REQUEST",
    "server_error": "SERVER",
}


def failure_of(
    status: int | None, body: Json, *, retry_after_ms: int | None = None, request_id: str | None = None
) -> Failure:
    """The failure that an error answer (or an error within a stream) stands for."""
    error: Json = body.get("error") if is_record(body) else None
    detail: dict[str, Json] = error if is_record(error) else {"message": error}
    message = detail.get("message")
    words = [word for word in (detail.get("code"), detail.get("type")) if isinstance(word, str)]
    code = next((_BY_WORD[word] for word in words if word in _BY_WORD), None)
    number: Json = detail.get("code")
    if status is None and code is None and is_safe_integer(number):
        status = int(number)
    if status is not None and code not in ("QUOTA", "CONTEXT_WINDOW_EXCEEDED"):
        code = _BY_STATUS.get(status) or ("SERVER" if status >= 500 else f"HTTP_{status}")
    text = message if isinstance(message, str) and message else f"the provider answered with status {status}"
    return Failure(code or "SERVER", text, status, request_id, retry_after_ms)
