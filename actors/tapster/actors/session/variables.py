"""The variables of one session, as its actor keeps them: begun by a strategy, changed by finished replies.

Source: spec/text_and_mvu C7, C8; spec/loader §14.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import final

import trio

from tapster.actors.store.values import SessionKey
from tapster.actors.strategies import Workshop
from tapster.engine.assembly import AssemblyPreset
from tapster.engine.errors import TapsterError
from tapster.engine.mvu import MvuError, Reply
from tapster.engine.profile import ProfileCharacter
from tapster.engine.projection import Event, SessionHeader
from tapster.runtime import RuntimeFault

from .replies import TurnReplies, counted_replies
from .strategy import uses_variables


@final
class SessionVariables:
    """Belongs to one session actor."""

    def __init__(self, key: SessionKey, workshop: Workshop) -> None:
        self._key = key
        self._workshop = workshop
        self._created_at = 0
        self._counts = False
        self._replies = TurnReplies(key.session)
        self._uncounted: list[Reply] = []
        self._counting = trio.Lock()
        self._is_kept = False

    async def open(self, parent: SessionKey | None, header: SessionHeader, events: Sequence[Event]) -> None:
        """Have what the parent has, and count replies that a crash kept from being counted.

        Raises:
            StoreError: it can't be read or written; the session doesn't start.
        """
        variables = self._workshop.variables
        variables.keep(self._key)
        self._is_kept = True
        self._created_at, self._counts = header.created_at, not header.delegation_depth
        if parent is not None:
            await self._workshop.strategies.inherit(parent, self._key)
            # The parent may still be about to count its last reply; the copied events say what it will come to.
            copied = tuple(counted_replies(parent.session, events[: header.seed_length]))
            await variables.inherit(parent, self._key, header.seed_length, copied)
        await variables.trim(self._key, len(events))
        if self._counts and variables.active(self._key) is not None:
            own = tuple(counted_replies(self._key.session, events[header.seed_length :]))
            with suppress(MvuError):
                await variables.recover(self._key, own)

    async def ready(self, preset: AssemblyPreset, card: ProfileCharacter | None, *, is_preview: bool) -> None:
        """Begin the variables of the bound card once a strategy asks for them; a preview begins nothing.

        Raises:
            MvuError: the card declares some that can't be used.
        """
        if not uses_variables(preset):
            return
        # What was said so far counts for a preview as for a request; it would be committed without either.
        await self.count()
        if is_preview:
            await self._workshop.variables.look(self._key, card)
        else:
            await self._workshop.variables.activate(self._key, card, self._created_at)

    def note(self, event: Event) -> bool:
        """Take in an event; whether a reply is waiting to be counted. Delegated sessions count none."""
        reply = self._replies.take(event)
        if reply is None or not self._counts:
            return False
        self._uncounted.append(reply)
        return True

    async def count(self) -> None:
        """Commit what finished replies changed, in order.

        Raises:
            StoreError: one can't be stored now; it stays for the next time.
        """
        async with self._counting:
            while self._uncounted:
                # A reply that doesn't fit leaves the variables as they were.
                with suppress(MvuError):
                    await self._workshop.variables.count(self._key, self._uncounted[0])
                del self._uncounted[0]

    async def count_soon(self) -> None:
        """The same, with nobody waiting: what fails is tried again, and told, by the next request."""
        try:
            await self.count()
        except (TapsterError, RuntimeFault):
            await trio.lowlevel.checkpoint()

    def release(self) -> None:
        """Keep nothing in memory any more."""
        if self._is_kept:
            self._is_kept = False
            self._workshop.variables.release(self._key)
