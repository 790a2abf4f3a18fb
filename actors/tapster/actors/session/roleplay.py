"""RP mode of one session: what is stored, what is queued, and what holds.

Source: spec/loader §12.1.
"""

from typing import final

import attrs

from tapster.actors.store import CommitFailed
from tapster.actors.store.values import SessionKey
from tapster.engine.policy import (
    RequestResult,
    RpIntent,
    RpSession,
    RpState,
    SandboxMode,
    SessionStart,
    commit_rp,
    intent_of,
    request_rp,
    rp_effective,
    start_rp,
)
from tapster.engine.projection import SessionHeader

from .ports import SessionLibrary
from .state import Followed


@attrs.frozen
class RpAnswer:
    """What a request came to; ``sandbox`` is the mode that the host is to append to its log, None for none."""

    outcome: RequestResult
    stored: RpState
    pending: RpIntent | None = None
    sandbox: SandboxMode | None = None


@final
class Roleplay:
    """Belongs to one session actor; a state is published only after it was stored."""

    def __init__(self, key: SessionKey, library: SessionLibrary) -> None:
        self._key = key
        self._library = library
        self._ancestors: tuple[RpState, ...] = ()
        self.stored = RpState()
        self.pending: RpIntent | None = None
        self.is_in_doubt = False
        """Whether a change may have been stored without an answer: then only what is stored tells."""

    @property
    def holds(self) -> bool:
        """Whether RP rules are in force."""
        return rp_effective(self.pending, self.stored, self._ancestors)

    async def start(
        self, stored: RpState, header: SessionHeader, sandbox: SandboxMode, *, card_bound: bool
    ) -> SandboxMode | None:
        """Do what the start of a session asks for; the sandbox mode to pin, None for no change."""
        self.stored = stored
        self._ancestors = await self._library.ancestors_rp(self._key)
        bound = await self._library.bound(self._key)
        start = SessionStart(
            stored,
            card_bound=card_bound,
            has_parent=header.parent_session is not None,
            delegated=header.delegation_depth > 0,
            ancestor_active=any(state.active for state in self._ancestors),
            follow=bound.follow_character,
        )
        commit = start_rp(start, sandbox)
        if commit is None:
            return None
        await self._library.save_rp(self._key, commit.state)
        self.stored = commit.state
        return commit.sandbox

    async def request(self, wanted: RpIntent, followed: Followed) -> RpAnswer:
        """Switch now, queue while a turn is open, or drop what was queued."""
        is_open = followed.open_turn is not None
        decision = request_rp(RpSession(self.stored, self.pending, live=True, turn_open=is_open), wanted)
        sandbox = None if decision.commit is None else await self._commit(decision.commit, followed.sandbox)
        self.pending = decision.pending
        return RpAnswer(decision.result, self.stored, self.pending, sandbox)

    async def commit_queued(self, followed: Followed) -> RpAnswer:
        """Carry out what was queued, at a step boundary."""
        if self.pending is None:
            return RpAnswer("noop", self.stored)
        sandbox = await self._commit(self.pending, followed.sandbox)
        self.pending = None
        return RpAnswer("committed", self.stored, None, sandbox)

    async def learn(self) -> None:
        """End a doubt by what is stored; what was queued stays so until it is.

        Raises:
            StoreError: it can't be read.
        """
        self.stored = await self._library.stored_rp(self._key)
        self.is_in_doubt = False
        if self.pending is not None and intent_of(self.stored) == self.pending:
            self.pending = None

    async def _commit(self, wanted: RpIntent, sandbox: SandboxMode) -> SandboxMode | None:
        commit = commit_rp(self.stored, wanted, sandbox)
        self.is_in_doubt = True
        try:
            await self._library.save_rp(self._key, commit.state)
            self.stored, self.is_in_doubt = commit.state, False
        except CommitFailed:
            self.is_in_doubt = False
            raise
        return commit.sandbox
