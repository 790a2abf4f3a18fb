"""An OFFLINE STAND-IN for a model server: no model, only the protocol.

It speaks the real OpenAI streaming protocol over HTTP on loopback, so that everything above it runs as it would
against a provider. Its replies are made of the request alone and always the same. What it should do wrong is chosen by
a script that a test queues, or by the model's name:

======================  ==============================================================
``stand-in``            an echo-like reply to the last user message
``stand-in:reasoning``  the same with reasoning before it
``stand-in:slow``       the same, with a pause before each piece
``stand-in:hang``       headers and a first piece, then nothing
``stand-in:silent``     takes the request and never answers
``stand-in:half``       a piece, half an event, then the connection is closed
``stand-in:error:500``  that status with an OpenAI error body
``stand-in:length``     a reply cut off by its token limit
``stand-in:empty``      no content at all
``stand-in:tool:NAME``  a call of that tool, then (given its result) an echo
======================  ==============================================================
"""

import json
import math
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, final

import attrs
import h11
import trio

from tapster.engine.ecma import Json, parse_json
from tapster.engine.errors import FormatError
from tapster.runtime import Watched, bounded_shield

NAME: Final = "offline stand-in"
READ_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 32 * 1024 * 1024
SLOW_S: Final = 0.2


@attrs.frozen
class Answer:
    """What one request gets.

    Attributes:
        deltas: ``choices[0].delta`` of each piece, in order.
        finish: the last ``finish_reason``, or None to leave it out.
        status: any other than 200 sends ``error`` as JSON.
        pause_s: a wait before each piece.
        hang_after: send so many pieces, then wait for ever.
        cut_after: send so many pieces and half an event, then close.
        raw: send these bytes as the whole event stream.
    """

    deltas: tuple[Json, ...] = ()
    finish: str | None = "stop"
    status: int = 200
    error: Json = None
    headers: Mapping[str, str] = attrs.field(factory=dict)
    pause_s: float = 0.0
    hang_after: int | None = None
    cut_after: int | None = None
    raw: bytes | None = None
    silent: bool = False


@attrs.frozen
class Received:
    """A request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: Json


@final
@attrs.define(eq=False)
class ModelServer:
    """A running stand-in; made by ``open_model_server``.

    Attributes:
        url: the base to give a provider.
        requests: everything that was asked, oldest first.
        answers: queued answers, taken before the model's name is looked at.
        open_connections: clients connected now.
    """

    url: str
    requests: list[Received] = attrs.field(factory=list)
    answers: deque[Answer] = attrs.field(factory=deque)
    open_connections: Watched[int] = attrs.field(factory=lambda: Watched(0))

    def add(self, *answers: Answer) -> None:
        """Queue answers for the next requests."""
        self.answers.extend(answers)

    def answer(self, received: Received) -> Answer:
        """The answer of a request."""
        if received.path.split("?")[0].rstrip("/").endswith("/models"):
            return Answer(status=404, error={"message": "the stand-in lists no models", "type": "not_found"})
        return self.answers.popleft() if self.answers else named_answer(received.body)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer requests on one connection until it closes."""
        self.open_connections.set(self.open_connections.value + 1)
        try:
            await _Connection(self, stream).run()
        except (trio.BrokenResourceError, trio.ClosedResourceError, h11.RemoteProtocolError):
            return
        finally:
            self.open_connections.set(self.open_connections.value - 1)
            with bounded_shield():
                await trio.aclose_forcefully(stream)


@asynccontextmanager
async def open_model_server(port: int = 0) -> AsyncIterator[ModelServer]:
    """A stand-in on loopback for the length of a block; port 0 takes a free one."""
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(port, host="127.0.0.1")
        bound = listeners[0].socket.getsockname()[1]
        server = ModelServer(f"http://127.0.0.1:{bound}/v1")
        await nursery.start(trio.serve_listeners, server.serve, listeners)
        yield server
        nursery.cancel_scope.cancel(reason="the stand-in closes")


@attrs.define(eq=False)
class _Connection:
    server: ModelServer
    stream: trio.SocketStream
    wire: h11.Connection = attrs.field(factory=lambda: h11.Connection(h11.SERVER))

    async def run(self) -> None:
        while (received := await self._request()) is not None:
            self.server.requests.append(received)
            answer = self.server.answer(received)
            if not await self._answer(answer, received.body):
                return
            if self.wire.our_state is not h11.DONE or self.wire.their_state is not h11.DONE:
                return
            self.wire.start_next_cycle()

    async def _request(self) -> Received | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = await self._event()
            if isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > MAX_BODY_BYTES:
                    return None
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
                return Received(head.target.decode(), headers, _parsed(bytes(body)))
            elif isinstance(event, h11.ConnectionClosed):
                return None

    async def _event(self) -> h11.Event:
        while True:
            event = self.wire.next_event()
            if isinstance(event, h11.Event):
                return event
            self.wire.receive_data(await self.stream.receive_some(READ_BYTES))

    async def _answer(self, answer: Answer, body: Json) -> bool:
        if answer.silent:
            await self._until_gone()
            return False
        if answer.status != 200:
            await self._send_json(answer)
            return True
        await self._send_head(200, {"content-type": "text/event-stream", **answer.headers})
        if answer.raw is not None:
            await self._data(answer.raw)
        elif not await self._pieces(answer, body):
            return False
        await self._send(h11.EndOfMessage())
        return True

    async def _pieces(self, answer: Answer, body: Json) -> bool:
        pieces = [*answer.deltas]
        for index, delta in enumerate(pieces):
            if index == answer.hang_after:
                await self._until_gone()
                return False
            if index == answer.cut_after:
                await self._data(_event_line(body, {"delta": delta})[:20])
                return False
            await trio.sleep(answer.pause_s)
            await self._data(_event_line(body, {"delta": delta}))
        if answer.finish is not None:
            await self._data(_event_line(body, {"delta": {}, "finish_reason": answer.finish}))
        await self._data(_usage_line(body, pieces))
        await self._data(b"data: [DONE]\n\n")
        return True

    async def _until_gone(self) -> None:
        while await self.stream.receive_some(READ_BYTES):
            pass

    async def _send_json(self, answer: Answer) -> None:
        data = json.dumps({"error": answer.error}).encode()
        headers = {"content-type": "application/json", "content-length": str(len(data)), **answer.headers}
        await self._send_head(answer.status, headers)
        await self._data(data)
        await self._send(h11.EndOfMessage())

    async def _send_head(self, status: int, headers: Mapping[str, str]) -> None:
        named = {"x-model-server": NAME, **headers}
        await self._send(h11.Response(status_code=status, headers=list(named.items())))

    async def _data(self, data: bytes) -> None:
        await self._send(h11.Data(data=data))

    async def _send(self, event: h11.Event) -> None:
        data = self.wire.send(event)
        if data:
            await self.stream.send_all(data)


def _parsed(body: bytes) -> Json:
    try:
        return parse_json(body.decode("utf-8", "replace"))
    except FormatError:
        return None


def _event_line(body: Json, choice: Json) -> bytes:
    value = {
        "id": "stand-in",
        "object": "chat.completion.chunk",
        "model": body.get("model") if isinstance(body, dict) else None,
        "choices": [{"index": 0, "finish_reason": None, **choice}],
    }
    return f"data: {json.dumps(value, ensure_ascii=False)}\n\n".encode("utf-8", "replace")


def _usage_line(body: Json, pieces: Sequence[Json]) -> bytes:
    prompt = len(json.dumps(body)) // 4
    usage = {"prompt_tokens": prompt, "completion_tokens": len(pieces), "total_tokens": prompt + len(pieces)}
    return f"data: {json.dumps({'id': 'stand-in', 'choices': [], 'usage': usage})}\n\n".encode()


def named_answer(body: Json) -> Answer:
    """The answer that a request's model name asks for."""
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list):
        error = {"message": "the request isn't a chat completion", "type": "invalid_request_error", "code": None}
        return Answer(status=400, error=error)
    model, _, mode = str(body.get("model", "")).partition(":")
    del model
    kind, _, detail = mode.partition(":")
    plain = Answer(text_deltas(reply_text(body["messages"])))
    match kind:
        case "reasoning":
            thought = {"reasoning_content": "The stand-in repeats what it was given."}
            return attrs.evolve(plain, deltas=(thought, *plain.deltas))
        case "slow":
            return attrs.evolve(plain, pause_s=SLOW_S)
        case "hang":
            return attrs.evolve(plain, hang_after=1)
        case "silent":
            return Answer(silent=True)
        case "half":
            return attrs.evolve(plain, cut_after=1)
        case "length":
            return attrs.evolve(plain, deltas=plain.deltas[:2], finish="length")
        case "empty":
            return Answer()
        case "error":
            return error_answer(int(detail) if detail.isdecimal() else 500)
        case "tool":
            return _tool_answer(body["messages"], detail) or plain
        case _:
            return plain


def error_answer(status: int, message: str = "the stand-in was asked to fail", **headers: str) -> Answer:
    """A refusal with an OpenAI error body."""
    return Answer(status=status, error={"message": message, "type": "stand_in_error", "code": None}, headers=headers)


def _tool_answer(messages: Sequence[Json], name: str) -> Answer | None:
    if messages and messages[-1].get("role") == "tool":
        return None
    call = {"index": 0, "id": f"call-{len(messages)}", "type": "function", "function": {"name": name, "arguments": ""}}
    rest = {"index": 0, "function": {"arguments": "{}"}}
    return Answer(({"tool_calls": [call]}, {"tool_calls": [rest]}), finish="tool_calls")


def reply_text(messages: Sequence[Json]) -> str:
    """The reply to a conversation: what was last said, and how much came before it."""
    said = [_plain(message.get("content")) for message in messages if message.get("role") in ("user", "tool")]
    last = next((text for text in reversed(said) if text and not text.startswith("Runtime context")), "")
    system = sum(len(_plain(message.get("content"))) for message in messages if message.get("role") == "system")
    turns = sum(message.get("role") == "assistant" for message in messages)
    if not last.isascii():
        return f"〔离线替身〕你说：“{last}”。系统提示共 {system} 个字符，此前已有 {turns} 次回复。"
    return f'(offline stand-in) You said: "{last}". The system prompt has {system} characters; {turns} replies before.'


def _plain(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part.get("text", "") for part in parts if isinstance(part, dict))


def text_deltas(text: str, size: int = 12) -> tuple[Json, ...]:
    """A text in pieces of so many characters."""
    count = math.ceil(len(text) / size)
    return tuple({"content": text[index * size : (index + 1) * size]} for index in range(count))
