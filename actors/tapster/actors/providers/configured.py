"""The provider that a configuration asks for: the one given, a model server, or one that says there is none."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from tapster.engine.ecma import Json

from .chunks import Failure, Finish
from .openai import OpenAiSettings, open_openai_provider
from .port import ModelRequest, PreparedCall, Provider, Sink


class NoProvider:
    """Stands where a model server was not configured: every request says so."""

    async def prepare(self, config: Mapping[str, Json]) -> PreparedCall:
        """Nothing to fill in."""
        return PreparedCall(config)

    async def stream(self, request: ModelRequest, sink: Sink) -> None:
        """Fail with what to do."""
        message = "no model server is configured; set provider.url (TAPSTER_PROVIDER_URL) and provider.model"
        sink(Finish("error", Failure("NO_ADAPTER", message)))


@asynccontextmanager
async def open_configured_provider(
    settings: OpenAiSettings | None, given: Provider | None = None
) -> AsyncIterator[Provider]:
    """A provider for the length of a block.

    Args:
        settings: the configured model server; None means every request fails until one is set.
        given: takes the place of the configured one.
    """
    if given is not None:
        yield given
    elif settings is None:
        yield NoProvider()
    else:
        async with open_openai_provider(settings) as provider:
            yield provider
