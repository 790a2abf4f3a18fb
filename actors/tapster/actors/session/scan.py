"""Activation in mode ``sillytavern`` inside an assembly: the session's chat as a scan, its draws from one seed.

Source: design §8 "Reproducible rolls".
"""

from collections.abc import Iterator
from datetime import UTC, datetime

import attrs

from tapster.engine.activation import SessionState
from tapster.engine.activation.sillytavern import DrawFor, ScanResult
from tapster.engine.profile import ESTIMATE, ActivatedLore
from tapster.engine.profile.sillytavern import (
    GenerationType,
    SaidMessage,
    ScanResources,
    SessionPorts,
    SessionScan,
    deliver,
    scan_session,
)
from tapster.engine.projection import HistoryMessage, PendingInput
from tapster.engine.text.ports import Checkpoint, RegexEngine

from .ports import Bound
from .rolls import Rolls, RollSeed

SPEAKERS = (None, "user", "model")
"""Sources of what is said in the chat; what plug-ins and the host itself put in nobody says."""


@attrs.define(eq=False)
class ScanDraws:
    """The draws of one scan: each chance and each group has a stream of its own, macros have one together.

    So an entry that comes or goes doesn't change what another one rolls.
    """

    seed: RollSeed
    macros: Rolls = attrs.field(init=False)
    streams: dict[DrawFor, Rolls] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self.macros = Rolls(self.seed, "scan")

    def __call__(self, purpose: DrawFor) -> float:
        return self.streams.setdefault(purpose, Rolls(self.seed, f"{purpose.kind}:{purpose.name}"))()

    @property
    def taken(self) -> int:
        """How many draws were used."""
        return self.macros.taken + sum(stream.taken for stream in self.streams.values())


@attrs.frozen(eq=False)
class ScanMoment:
    """What a scan depends on besides the bindings; ``names`` are those of user and character."""

    session_id: str
    state: SessionState
    said: tuple[SaidMessage, ...]
    names: tuple[str, str]
    seed: RollSeed
    trigger: GenerationType


@attrs.frozen(eq=False)
class Scanned:
    """The lore of a scan, the session's state after it (rolls not counted yet), and how many draws it took."""

    lore: ActivatedLore
    state: SessionState
    draws: int
    result: ScanResult


def scan(
    moment: ScanMoment, bound: Bound, resources: ScanResources, regex: RegexEngine, checkpoint: Checkpoint
) -> Scanned:
    """Activate the bound books as SillyTavern does."""
    draws = ScanDraws(moment.seed)
    given = SessionScan(
        moment.session_id,
        resources,
        bound.settings,
        moment.state,
        moment.said,
        *moment.names,
        now=datetime.fromtimestamp(moment.seed.now_ms / 1000, UTC).astimezone(),
        trigger=moment.trigger,
    )
    found = scan_session(given, SessionPorts(draws, draws.macros, ESTIMATE, regex, checkpoint))
    lore = deliver(found, ESTIMATE, regex)
    after = attrs.evolve(moment.state, timed=found.result.timed, variables=found.variables)
    return Scanned(lore, after, draws.taken, found.result)


def said(pending: PendingInput, history: tuple[HistoryMessage, ...]) -> tuple[SaidMessage, ...]:
    """The visible chat, oldest first, with the input that is about to be answered."""
    return tuple(_said(pending, history))


def _said(pending: PendingInput, history: tuple[HistoryMessage, ...]) -> Iterator[SaidMessage]:
    known = {message.id for message in history if message.id is not None}
    for message in history:
        if message.role in ("user", "assistant") and message.source_kind in SPEAKERS and message.text:
            yield SaidMessage(message.text, message.role == "user")
    for item in pending.claimed:
        if (item.id is None or item.id not in known) and item.text:
            yield SaidMessage(item.text, item.role == "user")
