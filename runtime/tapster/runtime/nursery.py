"""A nursery whose helpers outlive the body that uses them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, final

import attrs
import trio


@final
@attrs.define(eq=False)
class ServiceNursery:
    """Starts helpers that are cancelled only after the body has ended."""

    _nursery: trio.Nursery
    _scopes: set[trio.CancelScope] = attrs.field(factory=set)
    _is_closing: bool = False

    def start_soon(self, helper: Callable[..., Awaitable[Any]], *arguments: Any, name: str | None = None) -> None:
        """Start a helper that runs until the body has ended."""
        self._nursery.start_soon(self._run, helper, arguments, name=name or getattr(helper, "__name__", None))

    async def _run(self, helper: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]) -> None:
        with trio.CancelScope(shield=True) as scope:
            self._scopes.add(scope)
            if self._is_closing:
                scope.cancel(reason="the service nursery is closing")
            try:
                await helper(*arguments)
            finally:
                self._scopes.discard(scope)

    def cancel_helpers(self) -> None:
        """Cancel every helper; the body has ended."""
        self._is_closing = True
        for scope in self._scopes:
            scope.cancel(reason="the service nursery is closing")


@asynccontextmanager
async def open_service_nursery() -> AsyncIterator[ServiceNursery]:
    """A nursery that cancels its body before its helpers, so cleanup can still talk to them."""
    async with trio.open_nursery(strict_exception_groups=True) as nursery:
        services = ServiceNursery(nursery)
        try:
            yield services
        finally:
            services.cancel_helpers()
