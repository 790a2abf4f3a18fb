"""The directory of live sessions: each is opened once for all who wait, supervised, and found by its key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar, final

import attrs
import trio

from tapster.actors.hosts.port import HostSession
from tapster.actors.store.values import SessionKey
from tapster.runtime import ActorGone, Child, Overloaded, Ref, Restart, Supervisor

from .actor import SessionActor, SessionPorts
from .messages import Leave

RESTART: Final = Restart(intensity=3, period_s=60.0, exceeded="quarantine")
DEFAULT_MAX_LIVE: Final = 2048
T = TypeVar("T")


@attrs.frozen
class SessionStatus:
    """One live session for introspection; times in seconds."""

    key: SessionKey
    state: str
    queued: int
    open: int
    oldest_s: float
    restarts: int


@attrs.define(eq=False)
class _Entry:
    opened: trio.Event = attrs.field(factory=trio.Event)
    child: Child | None = None
    actor: SessionActor | None = None
    error: Exception | None = None
    is_leaving: bool = False
    was_rp: bool = False
    """Whether RP mode held when the last incarnation ended."""


@final
class Sessions:
    """Live session actors by key; it belongs to the root and is only used from its tasks."""

    def __init__(self, supervisor: Supervisor, ports: SessionPorts, *, max_live: int = DEFAULT_MAX_LIVE) -> None:
        self._supervisor = supervisor
        self._ports = ports
        self._max_live = max_live
        self._entries: dict[SessionKey, _Entry] = {}

    async def open(self, key: SessionKey, host: HostSession, *, parent: SessionKey | None = None) -> Ref:
        """The session's actor, started if need be; whoever asks meanwhile waits for the same start.

        Raises:
            Overloaded: too many sessions are live.
            Quarantined: it crashed too often.
            TapsterError: a part of its start failed (spec/loader §1).
        """
        entry = self._entries.get(key)
        if entry is not None and entry.is_leaving and entry.child is not None:
            # Its successor starts only when it is gone: one owner at a time.
            await entry.child.wait_gone()
            entry = self._entries.get(key)
        if entry is not None and entry.child is not None and entry.child.state.value == "ended":
            entry = None
        if entry is None:
            return await self._start(key, host, parent)
        await entry.opened.wait()
        if entry.error is not None:
            raise entry.error.with_traceback(None)
        if entry.child is None or entry.is_leaving:
            return await self.open(key, host, parent=parent)
        return await entry.child.ref()

    async def ask(self, key: SessionKey, host: HostSession, body: Any) -> Any:
        """Ask a session; a message that was never taken is sent once more to its next incarnation.

        Raises:
            ActorGone: the session ended while it worked on this.
        """
        ref = await self.open(key, host)
        try:
            return await ref.ask(body)
        except ActorGone as gone:
            if gone.taken:
                raise
        return await (await self.open(key, host)).ask(body)

    def tell(self, key: SessionKey, body: Any) -> None:
        """Tell a session that is live; one that isn't reads its host's events when it next opens."""
        entry = self._entries.get(key)
        if entry is not None and entry.child is not None and entry.child.current is not None:
            entry.child.current.tell(body)

    def find(self, key: SessionKey) -> SessionActor | None:
        """The live session's published state, None when it isn't live."""
        entry = self._entries.get(key)
        return None if entry is None else entry.actor

    def knows(self, key: SessionKey) -> bool:
        """Whether the session lives, or is about to live or to end."""
        return key in self._entries

    def is_rp(self, key: SessionKey) -> bool:
        """Whether RP mode holds; while a crashed session starts again, whether it did."""
        entry = self._entries.get(key)
        if entry is None or entry.actor is None:
            return False
        return entry.actor.is_rp or (entry.was_rp and not entry.actor.is_open)

    def reset(self, key: SessionKey) -> bool:
        """End a quarantine; whether there was one."""
        entry = self._entries.get(key)
        if entry is None or entry.child is None or entry.child.state.value != "quarantined":
            return False
        entry.child.reset()
        return True

    def release(self, key: SessionKey) -> None:
        """As ``close``, without waiting: its host's session sleeps or is gone."""
        self._ports.library.forget(key)
        entry = self._entries.get(key)
        if entry is None:
            return
        # One that is still starting leaves as soon as it has.
        entry.is_leaving = True
        child = entry.child
        if child is not None and (child.current is None or not child.current.tell(Leave(), control=True)):
            child.leave()

    async def close(self, key: SessionKey) -> None:
        """End a session's actor; nothing is lost, the next message opens it again."""
        entry = self._entries.pop(key, None)
        if entry is not None and entry.child is not None:
            await entry.child.stop()
        else:
            await trio.lowlevel.checkpoint()

    def statuses(self) -> Iterable[SessionStatus]:
        """Every live session."""
        for key, entry in self._entries.items():
            if entry.child is None or entry.child.current is None:
                continue
            reading = entry.child.current.statistics()
            state, restarts = entry.child.state.value, entry.child.restarts
            yield SessionStatus(key, state, reading.queued, reading.open, reading.oldest_s, restarts)

    async def _start(self, key: SessionKey, host: HostSession, parent: SessionKey | None) -> Ref:
        if sum(not entry.is_leaving for entry in self._entries.values()) >= self._max_live:
            raise Overloaded("the session directory")
        entry = self._entries[key] = _Entry()
        make = self._maker(entry, key, host, parent)

        try:
            entry.child = await self._supervisor.start(
                f"session:{key}", make, RESTART, on_gone=lambda child: self._forget(key, entry)
            )
        except Exception as error:
            entry.error = error
            raise
        finally:
            if entry.child is None:
                self._forget(key, entry)
            elif entry.is_leaving:
                entry.child.leave()
            entry.opened.set()
        return await entry.child.ref()

    def _maker(
        self, entry: _Entry, key: SessionKey, host: HostSession, parent: SessionKey | None
    ) -> Callable[[], SessionActor]:
        def make() -> SessionActor:
            entry.was_rp = entry.actor is not None and (entry.actor.is_rp or (entry.was_rp and not entry.actor.is_open))
            entry.actor = SessionActor(key, host, self._ports, parent=parent)
            return entry.actor

        return make

    def _forget(self, key: SessionKey, entry: _Entry) -> None:
        # Another one may have been started for the key as soon as this one was gone.
        if self._entries.get(key) is entry:
            del self._entries[key]
            self._ports.library.forget(key)
