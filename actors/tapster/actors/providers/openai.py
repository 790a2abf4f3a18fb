"""A provider for OpenAI-compatible servers: streamed chat completions over HTTP.

Deadlines are set here, at the border: connecting, the first token, a pause between tokens, and the whole answer.
Cancelling a request closes its connection at once.

Source: spec/dsh_host §8, §13.3.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Final, final
from urllib.parse import urlsplit

import attrs
import httpx2
import trio

from tapster.engine.ecma import Json, is_number, is_safe_integer, parse_json, stringify
from tapster.engine.errors import FormatError, SourceError

from .chunks import Chunk, Failure, Finish
from .port import CallConfig, ModelRequest, PreparedCall, ProviderError, Sink
from .sse import SseDecoder
from .wire import ChunkParser, failure_of, request_body

MAX_ERROR_BYTES: Final = 64 * 1024
"""How much of an error answer is read; the message of a sane provider fits many times."""
DRAIN_S: Final = 0.5
"""How long the end of a finished stream is awaited, so that its connection can serve again. The loop is never left
by ``break``: the client's inner generators unwind in order only when the body ends or a cancellation passes through."""
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


@attrs.frozen
class Deadlines:
    """How long each phase of a request may take, in seconds."""

    connect_s: float = 15.0
    first_token_s: float = 180.0
    idle_s: float = 120.0
    total_s: float = 1800.0


@attrs.frozen
class OpenAiSettings:
    """Where the server is and what it can do.

    Attributes:
        url: the base, without ``/chat/completions``.
        key: the bearer token, or None.
        needs_key: whether a missing key is refused before any network.
        efforts: reasoning efforts the models know, or None for no check.
        defaults: call-config members filled in when a request leaves them out.
        context_window: tokens the models can take, if known.
        max_tokens_member: how this server calls the limit of a reply.
    """

    url: str
    key: str | None = attrs.field(default=None, repr=False)
    needs_key: bool = False
    efforts: frozenset[str] | None = None
    defaults: Mapping[str, Json] = attrs.field(factory=dict)
    context_window: int | None = None
    deadlines: Deadlines = attrs.field(factory=Deadlines)
    max_tokens_member: str = "max_tokens"


@asynccontextmanager
async def open_openai_provider(settings: OpenAiSettings) -> AsyncIterator["OpenAiProvider"]:
    """A provider for the length of a block, with a connection pool of its own."""
    timeout = httpx2.Timeout(None, connect=settings.deadlines.connect_s)
    is_local = urlsplit(settings.url).hostname in _LOOPBACK
    async with httpx2.AsyncClient(timeout=timeout, trust_env=not is_local, follow_redirects=False) as client:
        yield OpenAiProvider(settings, client)


@final
@attrs.define(eq=False)
class OpenAiProvider:
    """Streams chat completions; made by ``open_openai_provider``."""

    settings: OpenAiSettings
    _client: httpx2.AsyncClient

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """As ``Provider.prepare``.

        Raises:
            ProviderError: ``UNSUPPORTED_REASONING_EFFORT`` or ``INVALID_REQUEST``.
        """
        check_config(config, self.settings.efforts)
        missing = {name: value for name, value in self.settings.defaults.items() if config.get(name) is None}
        return PreparedCall({**config, **missing}, frozenset(missing), self.settings.context_window)

    async def stream(self, request: ModelRequest, sink: Sink) -> None:
        """As ``Provider.stream``."""
        if self.settings.needs_key and not self.settings.key:
            sink(_failed("MISSING_CREDENTIAL", f"no key is set for provider {request.provider!r}"))
            return
        exchange = _Exchange(self.settings.deadlines)
        with exchange.scope:
            await self._exchange(request, sink, exchange)
        if exchange.scope.cancelled_caught:
            sink(_failed("TIMEOUT", exchange.late))

    async def _exchange(self, request: ModelRequest, sink: Sink, exchange: "_Exchange") -> None:
        body = request_body(request, self.settings.max_tokens_member)
        try:
            async with self._client.stream(
                "POST",
                f"{self.settings.url.rstrip('/')}/chat/completions",
                content=stringify(body).encode(),
                headers=self._headers(request),
            ) as response:
                if response.status_code != 200:
                    sink(Finish("error", await _refusal(response)))
                    return
                await _pump(response, sink, exchange)
        except httpx2.TimeoutException as error:
            sink(_failed("TIMEOUT", f"connecting to the provider took too long ({type(error).__name__})"))
        except httpx2.RequestError as error:
            code = "STREAM_CLOSED" if exchange.has_output else "TRANSPORT"
            sink(_failed(code, f"the connection to the provider failed: {type(error).__name__} {error}".rstrip()))
        except httpx2.InvalidURL as error:
            sink(_failed("INVALID_REQUEST", f"the provider's URL can't be used: {error}"))

    def _headers(self, request: ModelRequest) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            "x-deepseek-harness-session-id": request.session_id,
        }
        if self.settings.key:
            headers["authorization"] = f"Bearer {self.settings.key}"
        return headers


@attrs.define(eq=False)
class _Exchange:
    deadlines: Deadlines
    scope: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    has_output: bool = False
    late: str = ""
    _end: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._end = trio.current_time() + self.deadlines.total_s
        self._until(self.deadlines.connect_s + self.deadlines.first_token_s, "no first token came within the deadline")

    def saw_output(self) -> None:
        self.has_output = True
        self._until(self.deadlines.idle_s, "the stream stood still for too long")

    def _until(self, seconds: float, late: str) -> None:
        deadline = trio.current_time() + seconds
        self.late = late if deadline < self._end else "the answer took longer than a whole request may"
        self.scope.deadline = min(deadline, self._end)


async def _pump(response: httpx2.Response, sink: Sink, exchange: _Exchange) -> None:
    kind = response.headers.get("content-type", "")
    if "json" in kind and "event-stream" not in kind:
        sink(Finish("error", await _no_stream(response)))
        return
    decoder, parser = SseDecoder(), ChunkParser()
    with trio.CancelScope() as reading:
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                for chunk in _chunks(decoder, parser, piece):
                    exchange.saw_output()
                    sink(chunk)
                if parser.is_done or parser.failure is not None:
                    reading.deadline = trio.current_time() + (DRAIN_S if parser.is_done else 0)
    for chunk in parser.close():
        sink(chunk)


def _chunks(decoder: SseDecoder, parser: ChunkParser, piece: bytes) -> Iterator[Chunk]:
    try:
        for event in decoder.feed(piece):
            yield from parser.feed(event)
    except SourceError as error:
        parser.failure = Failure("MALFORMED_RESPONSE", error.message)


async def _refusal(response: httpx2.Response) -> Failure:
    return failure_of(
        response.status_code,
        await _error_body(response),
        retry_after_ms=retry_after_ms(response.headers),
        request_id=response.headers.get("x-request-id"),
    )


async def _no_stream(response: httpx2.Response) -> Failure:
    body = await _error_body(response)
    if isinstance(body, dict) and body.get("error"):
        return failure_of(None, body)
    return Failure("MALFORMED_RESPONSE", "the provider answered with plain JSON instead of an event stream")


async def _error_body(response: httpx2.Response) -> Json:
    read = bytearray()
    with trio.CancelScope() as reading:
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                read += piece
                if len(read) > MAX_ERROR_BYTES:
                    reading.cancel(reason="the error answer is long enough")
    try:
        return parse_json(read[:MAX_ERROR_BYTES].decode("utf-8", "replace"))
    except FormatError:
        return None


def check_config(config: CallConfig, efforts: frozenset[str] | None) -> None:
    """Refuse values no server takes.

    Raises:
        ProviderError: ``UNSUPPORTED_REASONING_EFFORT`` or ``INVALID_REQUEST``.
    """
    effort = config.get("reasoningEffort")
    if effort is not None and efforts is not None and effort not in efforts:
        raise ProviderError(
            f"provider {config.get('provider')!r} model {config.get('model')!r} does not support reasoning effort "
            f"{json.dumps(effort)}",
            code="UNSUPPORTED_REASONING_EFFORT",
        )
    if not config.get("model"):
        raise ProviderError("the call config names no model")
    temperature = config.get("temperature")
    if temperature is not None and not is_number(temperature):
        raise ProviderError("temperature must be a number")
    tokens = config.get("maxTokens")
    if tokens is not None and not (is_safe_integer(tokens) and tokens > 0):
        raise ProviderError("max tokens must be a positive integer")


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """How long the provider asks to wait, from ``retry-after-ms`` or ``retry-after`` in seconds."""
    for name, factor in (("retry-after-ms", 1.0), ("retry-after", 1000.0)):
        text = headers.get(name, "").strip()
        if text.replace(".", "", 1).isdecimal():
            return round(float(text) * factor)
    return None


def _failed(code: str, message: str) -> Finish:
    return Finish("error", Failure(code, message))
