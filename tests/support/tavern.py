"""A Tavern session over real parts, with a library in memory that can be slowed, failed and changed under way."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import attrs
import trio

from tapster.actors.scripts import open_regex_engine
from tapster.actors.session import Bound, EmbeddedTavern, Revisions, SessionPorts, Sessions
from tapster.actors.session.alerts import RpAlerts
from tapster.actors.store.values import ResourceUse, SessionKey
from tapster.engine.activation import SessionState
from tapster.engine.activation.tavern import LibraryBook, MatchDefaults, compile_book, compose_books
from tapster.engine.ecma import Json
from tapster.engine.errors import StoreError
from tapster.engine.formats.presets import parse_preset
from tapster.engine.formats.world_books import parse_world_book
from tapster.engine.policy import RpState, Selection
from tapster.engine.profile import ProfileCharacter, ProfileUser, ResolvedResources
from tapster.runtime import LogSink, Threads, open_supervisor
from tests.support.hosts import CountingIds, Rig, TrioClock, open_rig

PRESET = {
    "name": "P",
    "temperature": 0.5,
    "prompts": [
        {"identifier": "main", "role": "system", "content": "You are {{char}}."},
        {"identifier": "worldInfoBefore", "marker": True},
        {"identifier": "charDescription", "marker": True},
        {"identifier": "worldInfoAfter", "marker": True},
    ],
    "prompt_order": [
        {
            "character_id": 100001,
            "order": [
                {"identifier": name, "enabled": True}
                for name in ("main", "worldInfoBefore", "charDescription", "worldInfoAfter")
            ],
        }
    ],
}
CARD = {"id": "c1", "name": "Mira", "data": {"name": "Mira", "description": "{{char}} keeps the lamp."}}
BOOK = {
    "name": "Harbour",
    "entries": {
        "0": {"uid": 0, "key": ["bell", "钟"], "content": "A bell lies under the reef.", "position": 1},
        "1": {"uid": 1, "key": ["ferry"], "content": "The ferry has no lamp.", "position": 1},
    },
}


@attrs.define(eq=False)
class MemoryLibrary:
    """A ``SessionLibrary`` with one preset, card, persona and book.

    Attributes:
        delay_s: how long resolving takes.
        failing: name of the method that fails next, or None.
        on_bound: called while an assembly resolves, to change things under it.
    """

    delay_s: float = 0.0
    failing: str | None = None
    changes: int = 0
    changes_while_resolving: int = 0
    rp: RpState = attrs.field(factory=RpState)
    saved_rp: list[RpState] = attrs.field(factory=list)
    parents: list[SessionKey | None] = attrs.field(factory=list)
    ancestors: tuple[RpState, ...] = ()
    states: dict[tuple[SessionKey, int], SessionState] = attrs.field(factory=dict)
    resolving: int = 0
    most_resolving: int = 0
    _selection: Selection = attrs.field(init=False)
    _bound: Bound = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        preset = parse_preset(PRESET, id="p1", now="2026-01-01T00:00:00.000Z")
        compiled = compile_book(parse_world_book(BOOK), MatchDefaults())
        self._selection = Selection("p1", "c1", "u1", ("w1",), rp=self.rp)
        self._bound = Bound(
            self._selection,
            ResolvedResources(
                preset, ProfileCharacter.from_document(CARD), ProfileUser("u1", "Lin", "{{user}} is a journalist.")
            ),
            compose_books(["w1"], [], [], []),
            {"w1": LibraryBook("w1", "Harbour", compiled, revision="r1")},
            policy_section="locked",
        )

    async def ensure_selection(self, key: SessionKey, parent: SessionKey | None, cut: int = 0) -> Selection:
        await self._reach("ensure_selection")
        self.parents.append(parent)
        return self._selection

    async def state(self, key: SessionKey, seq: int) -> SessionState:
        await self._reach("state")
        seqs = [known for owner, known in self.states if owner == key and known <= seq]
        return self.states[key, max(seqs)] if seqs else SessionState()

    async def save_state(self, key: SessionKey, seq: int, state: SessionState) -> None:
        await self._reach("save_state")
        self.states[key, seq] = state

    async def save_rp(self, key: SessionKey, state: RpState) -> None:
        await self._reach("save_rp")
        self.saved_rp.append(state)

    async def stored_rp(self, key: SessionKey) -> RpState:
        await self._reach("stored_rp")
        return self.saved_rp[-1] if self.saved_rp else self.rp

    async def ancestors_rp(self, key: SessionKey) -> tuple[RpState, ...]:
        await self._reach("ancestors_rp")
        return self.ancestors

    async def bound(self, key: SessionKey) -> Bound:
        self.resolving += 1
        self.most_resolving = max(self.most_resolving, self.resolving)
        try:
            await trio.sleep(self.delay_s)
            await self._reach("bound")
        finally:
            self.resolving -= 1
        if self.changes_while_resolving:
            self.changes_while_resolving -= 1
            self.changes += 1
        return self._bound

    def forget(self, key: SessionKey) -> None:
        pass

    def revisions(self, key: SessionKey) -> Revisions:
        return Revisions(0, self.changes)

    async def _reach(self, name: str) -> None:
        await trio.lowlevel.checkpoint()
        if self.failing == name:
            raise StoreError(f"{name} failed")


@attrs.define(eq=False)
class KeptTraces:
    """A ``TraceSink`` that keeps the newest state of each capture."""

    records: dict[str, Json] = attrs.field(factory=dict)
    statuses: list[str] = attrs.field(factory=list)
    audits: list[Json] = attrs.field(factory=list)

    def put(self, key: SessionKey, record: Json, uses: Sequence[ResourceUse]) -> None:
        self.records[record["id"]] = record
        self.statuses.append(record["status"])

    def put_audits(self, key: SessionKey, audits: Sequence[Json]) -> None:
        self.audits += audits


@attrs.define(eq=False)
class TavernRig:
    """An embedded host with Tavern sessions in it."""

    rig: Rig
    library: MemoryLibrary
    traces: KeptTraces
    sessions: Sessions


@asynccontextmanager
async def open_tavern_rig(library: MemoryLibrary | None = None) -> AsyncIterator[TavernRig]:
    """Real host, real sessions, real engine; the library and the traces are in memory."""
    library = library or MemoryLibrary()
    traces = KeptTraces()
    async with open_rig() as opened, open_supervisor(_report(opened)) as supervisor:
        ports = SessionPorts(library, traces, open_regex_engine(), Threads("engine", 2), TrioClock(), CountingIds(900))
        sessions = Sessions(supervisor, ports)
        EmbeddedTavern(opened.host, sessions, RpAlerts(TrioClock(), CountingIds()), _report(opened)).attach()
        yield TavernRig(opened, library, traces, sessions)


def _report(rig: Rig) -> LogSink:
    def report(level: str, event: str, **fields: object) -> None:
        rig.reports.append((level, event, fields))

    return report
