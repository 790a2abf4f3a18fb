"""Activation in mode ``sillytavern`` for a session: what its bindings and its chat are, as a scan.

What comes out is delivered by the compatibility renderer (``delivery``), since the host owns the messages. Nothing here
keeps anything: timed effects and variables go in and come out as values, so a preview is an assembly nobody kept.

Source: docs/activation.md; issue "Every format and every world-book rule".
"""

from collections.abc import Callable
from datetime import datetime

import attrs

from tapster.engine.activation.session_settings import ActivationSettings
from tapster.engine.activation.session_state import SessionState
from tapster.engine.activation.sillytavern import (
    BookUse,
    DrawPort,
    ScanInput,
    ScanMessage,
    ScanPorts,
    ScanResult,
    ScanVariables,
    macro_port,
    scan_books,
)
from tapster.engine.activation.tavern.projector import ActivationDiagnostic
from tapster.engine.ecma import Json
from tapster.engine.formats.cards import Card
from tapster.engine.formats.personas import Persona
from tapster.engine.profile.tokens import TokenCounter
from tapster.engine.text.macros import MacroContext, MacroMessage, expand
from tapster.engine.text.ports import Checkpoint, RegexEngine, RegexMatch, ScriptBudgetExceeded, go_on
from tapster.engine.text.regex_scripts import RegexScript

from .library import macro_card, match_sources
from .macros import MacroSession
from .model import GenerationType


@attrs.frozen(eq=False)
class ScanBook:
    """A book as a session's scan uses it; ``summary`` holds the members of its resource that no scan changes."""

    id: str
    use: BookUse
    summary: dict[str, Json]
    revision: str | None = None


@attrs.frozen(eq=False)
class ScanResources:
    """What a session has bound, as mode ``sillytavern`` needs it.

    Attributes:
        scripts: the regex scripts in force, card-owned ones only with consent.
        outlets: the outlets that the preset's prompts name.
        max_context: tokens of the preset's context without the reply.
        diagnostics: about bound books that can't be used.
    """

    books: tuple[ScanBook, ...] = ()
    card: Card | None = None
    persona: Persona | None = None
    scripts: tuple[RegexScript, ...] = ()
    outlets: frozenset[str] = frozenset()
    context_tokens: int = 4095
    response_tokens: int = 300
    diagnostics: tuple[ActivationDiagnostic, ...] = ()

    @property
    def max_context(self) -> int:
        """Tokens that a prompt may have."""
        return self.context_tokens - self.response_tokens


@attrs.frozen
class SaidMessage:
    """One visible message of the chat, or one that is about to be in it."""

    text: str
    is_user: bool


@attrs.frozen(eq=False)
class SessionScan:
    """One activation of a session; ``now`` is an aware datetime in the person's time zone."""

    session_id: str
    resources: ScanResources
    settings: ActivationSettings
    state: SessionState
    messages: tuple[SaidMessage, ...]
    user: str
    character: str
    now: datetime
    trigger: GenerationType = "normal"


@attrs.frozen(eq=False)
class SessionPorts:
    """What an activation is given from outside; ``random`` serves macros, ``draw`` chances and groups."""

    draw: DrawPort
    random: Callable[[], float]
    counter: TokenCounter
    regex: RegexEngine
    checkpoint: Checkpoint = go_on


@attrs.frozen(eq=False)
class SessionResult:
    """What a scan found, with the macro state after it and the patterns that ran over their budget."""

    scan: SessionScan
    result: ScanResult
    macros: MacroSession
    over_budget: tuple[str, ...]

    @property
    def variables(self) -> ScanVariables:
        """The variables as the scan and the scripts after it left them."""
        return ScanVariables(self.macros.context.variables, self.macros.context.global_variables)


def scan_session(scan: SessionScan, ports: SessionPorts) -> SessionResult:
    """Which entries of a session's books activate now."""
    context = _macro_context(scan, ports.random)
    regex = _NotingRegex(ports.regex)
    settings = scan.settings.scan
    resources = scan.resources
    texts = match_sources(resources.card, resources.persona)
    names = {True: scan.user, False: scan.character}
    given = ScanInput(
        tuple(book.use for book in resources.books),
        tuple(ScanMessage(message.text, names[message.is_user]) for message in scan.messages),
        settings=settings,
        max_context=resources.max_context,
        sources={name: expand(text, context).text for name, text in texts.items()},
        trigger=scan.trigger,
        character_file=resources.card.source.file_name.rpartition(".")[0] if resources.card else "",
        timed=scan.state.timed,
        variables=scan.state.variables,
    )
    result = scan_books(given, ScanPorts(ports.draw, ports.counter.count, macro_port(context), regex, ports.checkpoint))
    after = attrs.evolve(context, variables=result.variables.chat, global_variables=result.variables.shared)
    return SessionResult(scan, result, MacroSession(after), tuple(regex.over_budget))


def _macro_context(scan: SessionScan, random: Callable[[], float]) -> MacroContext:
    resources, variables = scan.resources, scan.state.variables
    return MacroContext(
        now=scan.now,
        random=random,
        user=scan.user,
        char=scan.character,
        persona=resources.persona.description if resources.persona else "",
        card=macro_card(resources.card),
        chat=tuple(MacroMessage(message.text, message.is_user) for message in scan.messages),
        chat_id=scan.session_id,
        variables=variables.chat,
        global_variables=variables.shared,
        generation_type=scan.trigger,
        max_context_tokens=resources.context_tokens,
        max_response_tokens=resources.response_tokens,
    )


@attrs.define(eq=False)
class _NotingRegex:
    """A regex engine that keeps which patterns ran over their budget; a scan takes those as no match."""

    engine: RegexEngine
    over_budget: dict[str, None] = attrs.field(factory=dict)

    def check(self, pattern: str, flags: str) -> None:
        self.engine.check(pattern, flags)

    def find(self, pattern: str, flags: str, text: str, *, owner: str = "") -> RegexMatch | None:
        try:
            return self.engine.find(pattern, flags, text, owner=owner)
        except ScriptBudgetExceeded:
            self.over_budget[f"/{pattern}/{flags}"] = None
            raise

    def find_all(self, pattern: str, flags: str, text: str, *, owner: str = "") -> "list[RegexMatch]":
        return list(self.engine.find_all(pattern, flags, text, owner=owner))
