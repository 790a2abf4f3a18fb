"""What must hold whatever happens: the answers that clients got, and what the disk has to say to them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import attrs

from tapster.actors.store import SelectionTable, SessionKey, Tables
from tapster.engine.ecma import Json, stringify
from tapster.engine.projection import Event, derive_messages, fork_cut, open_turn

ANYTHING: Final = "anything"


class Violation(AssertionError):
    """Something that must hold doesn't."""


def must(holds: object, what: str) -> None:
    """Go on only if it holds.

    Raises:
        Violation: it doesn't.
    """
    if not holds:
        raise Violation(what)


@attrs.define
class Register:
    """A value with one writer at a time: the values that a reader may find."""

    possible: set[str | None] = attrs.field(factory=lambda: {None})
    is_busy: bool = False

    def could_be(self, value: str | None) -> bool:
        """Whether a reader may find this."""
        return ANYTHING in self.possible or value in self.possible


@attrs.define
class Model:
    """The clients' side of the story.

    Attributes:
        accepted: ids of acknowledged messages by session.
        durable: the next seq up to which a session's log was promised, by session.
        presets, books: acknowledged resources by slot.
        gone: ids whose deletion was acknowledged.
        doomed: ids whose deletion was asked for.
        presets_of: the preset that each session has bound.
    """

    accepted: dict[str, set[str]] = attrs.field(factory=dict)
    logs: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    created: set[str] = attrs.field(factory=set)
    presets: dict[int, str] = attrs.field(factory=dict)
    books: dict[int, str] = attrs.field(factory=dict)
    names: dict[str, Register] = attrs.field(factory=dict)
    gone: set[str] = attrs.field(factory=set)
    doomed: set[str] = attrs.field(factory=set)
    presets_of: dict[str, Register] = attrs.field(factory=dict)
    open_asks: int = 0

    def register(self, session: str) -> Register:
        """What a session may have bound."""
        return self.presets_of.setdefault(session, Register())

    def doom(self, preset: str) -> None:
        """A preset is being deleted: whoever has it bound may have none from now on."""
        self.doomed.add(preset)
        for register in self.presets_of.values():
            if preset in register.possible:
                register.possible.add(None)

    # The disk's side --------------------------------------------------------------------------------------------

    def check_disk(self, tables: Tables) -> None:
        """Between two lives of the machine: what was acknowledged is there.

        Raises:
            Violation: it isn't.
        """
        logs = {head.key.session: tables.sessions.read(head.key) for head in tables.sessions.heads(None)}
        for session in self.created:
            must(session in logs, f"the acknowledged session {session} is gone")
        for session, events in logs.items():
            self._check_growth(session, tuple(map(stringify, events)))
        for session, messages in self.accepted.items():
            inserted = _inserted(Event.from_json(line) for line in logs.get(session, ()))
            must(messages <= set(inserted), f"acknowledged messages of {session} are gone: {messages - set(inserted)}")
        self._check_library(tables)
        self._check_selections(tables)

    def _check_growth(self, session: str, lines: tuple[str, ...]) -> None:
        before = self.logs.get(session, ())
        must(lines[: len(before)] == before, f"the log of {session} was changed behind its end")
        self.logs[session] = lines

    def _check_library(self, tables: Tables) -> None:
        for kind, slots in (("preset", self.presets), ("world-book", self.books)):
            there = {head.id: head for head in tables.resources.heads(kind)}  # type: ignore[arg-type]
            for identity in slots.values():
                must(identity in there or identity in self.doomed, f"the acknowledged {kind} {identity} is gone")
            for identity in there:
                must(identity not in self.gone, f"the deleted {kind} {identity} is back")
            for identity, head in there.items():
                register = self.names.get(identity)
                must(register is None or register.could_be(head.name), f"{kind} {identity} is named {head.name!r}")

    def _check_selections(self, tables: Tables) -> None:
        presets = {head.id for head in tables.resources.heads("preset")}
        books = {head.id for head in tables.resources.heads("world-book")}
        for key, selection in SelectionTable(tables).all():
            must(
                selection.preset_id is None or selection.preset_id in presets,
                f"{key.session} has the preset {selection.preset_id} bound, which doesn't exist",
            )
            must(set(selection.world_book_ids) <= books, f"{key.session} has a book bound that doesn't exist")
            register = self.presets_of.get(key.session)
            must(
                register is None or register.could_be(selection.preset_id),
                f"{key.session} has {selection.preset_id} bound, not one of {register and register.possible}",
            )

    def check_logs(self, logs: Mapping[str, Sequence[Event]]) -> None:
        """When everything has come to rest: each log is in order, and no message was taken twice.

        Raises:
            Violation: one isn't.
        """
        for session, events in logs.items():
            check_order(session, events)
            check_claims(session, events)
            check_calls(session, events)


def _inserted(events: Iterable[Event]) -> Counter[str]:
    splices = [event.data for event in events if event.type == "agent/inbox/spliced"]
    return Counter(message["id"] for data in splices for message in data["inserted"])


def check_order(session: str, events: Sequence[Event]) -> None:
    """Events are numbered without a gap; turns and steps are nested and closed."""
    must([event.seq for event in events] == list(range(len(events))), f"{session}: events are out of order")
    must(open_turn(events) is None, f"{session}: a turn is open")
    depth: list[str] = []
    for event in events:
        if event.type in ("turn/start", "step/start"):
            depth.append(event.type)
            must(depth in (["turn/start"], ["turn/start", "step/start"]), f"{session}: {event.seq} opens inside")
        elif event.type in ("turn/end", "step/end"):
            must(depth and depth.pop() == event.type.replace("end", "start"), f"{session}: {event.seq} closes another")
        elif event.type in ("assistant/message", "tool/call", "tool/result"):
            must(len(depth) == 2, f"{session}: {event.type} {event.seq} outside of a step")
    must(not depth, f"{session}: {depth} stays open")
    must(fork_cut(events) == len(events) - 1, f"{session}: can't be forked at its end")


def check_claims(session: str, events: Sequence[Event]) -> None:
    """Every message went in once and was taken at most once."""
    twice = [message for message, count in _inserted(events).items() if count > 1]
    must(not twice, f"{session}: {twice} went in twice")
    said = Counter(message["id"] for message in derive_messages(events) if str(message["id"]).startswith("u-"))
    must(max(said.values(), default=1) == 1, f"{session}: a message was taken twice: {said}")


def check_calls(session: str, events: Sequence[Event]) -> None:
    """Every tool call has exactly one result."""
    called = [event.seq for event in events if event.type == "tool/call"]
    answered = [event.source_event_seqs for event in events if event.type == "tool/result"]
    must(answered == [(seq,) for seq in called], f"{session}: calls {called} have the results {answered}")


def stored_logs(tables: Tables) -> dict[str, list[Event]]:
    """Every session's events."""
    return {
        head.key.session: [Event.from_json(line) for line in tables.sessions.read(head.key)]
        for head in tables.sessions.heads(None)
    }


def seed_of(tables: Tables, key: SessionKey) -> Json:
    """A session's header."""
    head = tables.sessions.head(key)
    return None if head is None else head.header
