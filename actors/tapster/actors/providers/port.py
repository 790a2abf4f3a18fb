"""What the embedded host asks of a model provider.

Source: spec/dsh_host §3 (``llm/stream`` options), §10 (call config).
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError

from .chunks import Chunk, Failure

CallConfig: TypeAlias = Mapping[str, Json]
"""``{provider, model, reasoningEffort?, temperature?, maxTokens?, stop?}``; other members only reach the header."""

Sink: TypeAlias = Callable[[Chunk], None]
"""Takes each chunk the moment it arrives; never waits."""

WIRE_MEMBERS = ("provider", "model", "reasoningEffort", "temperature", "maxTokens", "stop")


class ProviderError(TapsterError):
    """A call can't be prepared; ``code`` is one of spec/dsh_host §8."""

    code = "INVALID_REQUEST"

    @property
    def failure(self) -> Failure:
        """The error as a failure of the log."""
        return Failure(self.code, self.message, self.status)


@attrs.frozen
class PreparedCall:
    """A call config as it will be sent.

    Attributes:
        adapter_defaults: members the provider filled in by itself.
        context_window: tokens the model can take, if known.
    """

    config: CallConfig
    adapter_defaults: frozenset[str] = frozenset()
    context_window: int | None = None


@attrs.frozen
class ModelRequest:
    """One request to a model: options of ``llm/stream``.

    ``messages`` are the session's derived messages, the system message among them.
    """

    config: CallConfig
    messages: tuple[Json, ...]
    tools: tuple[Json, ...]
    session_id: str
    turn: int = 0
    step: int = 0
    purpose: str | None = None

    @property
    def provider(self) -> str:
        """Which provider it goes to."""
        return str(self.config.get("provider", ""))

    @property
    def model(self) -> str:
        """Which model it asks for."""
        return str(self.config.get("model", ""))


class Provider(Protocol):
    """A model provider; both methods may be called by several sessions at once."""

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """Fill in defaults and refuse what the model can't do, without any network.

        Raises:
            ProviderError: the config isn't supported.
        """

    async def stream(self, request: ModelRequest, sink: Sink) -> None:
        """Send a request and hand each chunk to ``sink``; the last one is a ``Finish``.

        A failure of the provider is a ``Finish`` of kind ``error``, never an exception.

        Cancellation: the connection is dropped at once; no further chunk follows.
        """


@attrs.frozen
class Providers:
    """The providers of a host by name."""

    by_name: Mapping[str, Provider]

    async def prepare(self, config: CallConfig) -> PreparedCall:
        """As ``Provider.prepare``; a config for a provider that nobody serves passes unchanged."""
        provider = self.by_name.get(str(config.get("provider")))
        return PreparedCall(config) if provider is None else await provider.prepare(config)

    def find(self, name: str) -> Provider | None:
        """The provider of that name, or None."""
        return self.by_name.get(name)
