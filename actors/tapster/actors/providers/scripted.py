"""A provider that plays a script: the test double of the port, kept beside it.

Each request takes the next script; a script is a list of chunks and pauses.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias, final

import attrs
import trio

from tapster.engine.ecma import Json

from .chunks import BlockEnd, BlockStart, Chunk, Failure, Finish, TextDelta, ToolCallDelta, UsageChunk
from .port import CallConfig, ModelRequest, PreparedCall, ProviderError, Sink


@attrs.frozen
class Pause:
    """Wait so many seconds of the trio clock; ``math.inf`` never ends by itself."""

    seconds: float


@attrs.frozen
class Crash:
    """Raise, as a broken provider would."""

    error: Exception


Item: TypeAlias = Chunk | Pause | Crash
USAGE = UsageChunk({"inputTokens": 36, "outputTokens": 20})


def says(text: str, *, kind: Finish | None = None) -> list[Item]:
    """A plain text answer, streamed word by word."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    deltas: list[Item] = [TextDelta(0, word) for word in words]
    block = {"type": "text", "text": text}
    return [BlockStart(0, "text"), *deltas, BlockEnd(0, block), USAGE, kind or Finish("stop")]


def calls(*tools: tuple[str, str, str], text: str = "") -> list[Item]:
    """An answer with tool calls, each ``(id, name, raw arguments)``, after an optional text."""
    items: list[Item] = []
    ends: list[Item] = []
    if text:
        items += [BlockStart(0, "text"), TextDelta(0, text)]
        ends.append(BlockEnd(0, {"type": "text", "text": text}))
    for index, (call_id, name, arguments) in enumerate(tools, len(ends)):
        items += [BlockStart(index, "tool-call"), ToolCallDelta(index, call_id, name, arguments)]
        block = {"type": "tool-call", "id": call_id, "name": name, "arguments": arguments}
        ends.append(BlockEnd(index, block))
    return [*items, *ends, USAGE, Finish("tool-calls")]


def fails(
    code: str, message: str = "the provider failed", *, status: int | None = None, retry_after_ms: int | None = None
) -> list[Item]:
    """A failed attempt."""
    return [Finish("error", Failure(code, message, status, None, retry_after_ms))]


@final
@attrs.define(eq=False)
class ScriptedProvider:
    """Plays scripts in order; when none is left it says ``fallback``."""

    scripts: deque[Sequence[Item]] = attrs.field(converter=deque, factory=deque)
    fallback: str = "All is well."
    defaults: dict[str, Json] = attrs.field(factory=dict)
    context_window: int | None = None
    efforts: frozenset[str] = frozenset({"low", "medium", "high"})
    requests: list[ModelRequest] = attrs.field(factory=list)
    active: int = 0

    def add(self, *scripts: Iterable[Item]) -> None:
        """Queue more scripts."""
        self.scripts.extend(list(script) for script in scripts)

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """As ``Provider.prepare``."""
        effort = config.get("reasoningEffort")
        if effort is not None and effort not in self.efforts:
            message = f"model {config.get('model')!r} does not support reasoning effort {effort!r}"
            raise ProviderError(message, code="UNSUPPORTED_REASONING_EFFORT")
        missing = {name: value for name, value in self.defaults.items() if name not in config}
        return PreparedCall({**config, **missing}, frozenset(missing), self.context_window)

    async def stream(self, request: ModelRequest, sink: Sink) -> None:
        """As ``Provider.stream``; pauses are cancellable."""
        self.requests.append(request)
        script = self.scripts.popleft() if self.scripts else says(self.fallback)
        self.active += 1
        try:
            for item in script:
                await self._play(item, sink)
        finally:
            self.active -= 1

    async def _play(self, item: Item, sink: Sink) -> None:
        match item:
            case Pause(seconds):
                await trio.sleep(seconds)
            case Crash(error):
                raise error
            case _:
                await trio.lowlevel.checkpoint()
                sink(item)
