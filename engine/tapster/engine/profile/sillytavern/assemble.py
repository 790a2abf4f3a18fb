"""The whole way from a preset, card, chat and books to the messages of a request, with a record of why.

Source: issue "Every format and every world-book rule"; docs/renderers.md.
"""

from collections.abc import Iterable, Mapping, Sequence

import attrs

from tapster.engine.activation.sillytavern import (
    DrawPort,
    ScanInput,
    ScanMessage,
    ScanPorts,
    ScanResult,
    ScanVariables,
    macro_port,
    scan_books,
)
from tapster.engine.activation.sillytavern import Injection as ScanInjection
from tapster.engine.ecma import Json
from tapster.engine.profile.parts import Diagnostic
from tapster.engine.profile.tokens import TokenCounter
from tapster.engine.text.js_regex import per_request
from tapster.engine.text.macros import MacroContext
from tapster.engine.text.ports import RegexEngine
from tapster.engine.text.regex_scripts import RegexScript

from .build import Built, build
from .content import CHAT
from .group import witnessed
from .history import HISTORY, visible_messages
from .itemise import Itemisation, itemise
from .lore import lore_without_slot, place_lore
from .macros import MacroSession
from .model import AssemblyInput, ChatMessage, Message
from .rewriting import Fact, Rewriter, message_label
from .slots import MandatoryPromptsExceedContext


@attrs.frozen(eq=False)
class AssemblyPorts:
    """What an assembly is given from outside; without a regex engine no script runs and regex keys don't match."""

    counter: TokenCounter
    draw: DrawPort
    regex: RegexEngine | None = None


@attrs.frozen(eq=False)
class AssemblyRequest:
    """One request to assemble.

    Attributes:
        given: preset, card, chat and settings; its lore is filled in from the scan.
        scan: books, settings and timed effects; messages, variables, injections and context come from the rest.
        macros: what macros may see; ``variables`` are those before the request.
        names_in_scan: whether speakers' names stand before the scanned messages.
        present_only: the speaker is sent only what it has witnessed.
        system_only_first: system messages behind the first other message are sent as the user's.
        warnings: what reading the inputs already found.
    """

    given: AssemblyInput
    scan: ScanInput
    macros: MacroContext
    scripts: tuple[RegexScript, ...] = ()
    names_in_scan: bool = True
    present_only: bool = False
    system_only_first: bool = False
    warnings: tuple[Diagnostic, ...] = ()


@attrs.frozen(eq=False)
class Assembly:
    """A finished request and its record; ``given`` is the input with its lore and rewritten chat."""

    given: AssemblyInput
    messages: tuple[Message, ...]
    itemisation: Itemisation
    facts: tuple[Fact, ...]
    scan: ScanResult
    built: Built
    variables: Mapping[str, Json]
    global_variables: Mapping[str, Json]
    warnings: tuple[Diagnostic, ...] = ()

    def facts_about(self, label: str) -> tuple[Fact, ...]:
        """The facts recorded about an entry, a message or a script."""
        return tuple(fact for fact in self.facts if fact.label == label)


def assemble(request: AssemblyRequest, ports: AssemblyPorts) -> Assembly:
    """Assemble a request as SillyTavern does.

    Raises:
        MandatoryPromptsExceedContext: with repaired quirks, when fixed prompts don't fit; with exact ones the messages
            are what was placed until then and ``built.error`` tells.
    """
    session = MacroSession(request.macros)
    if ports.regex is not None:
        ports = attrs.evolve(ports, regex=per_request(ports.regex))
    rewriter = Rewriter(request.scripts, ports.regex, session)
    given, facts = _prepared_chat(request, rewriter)
    result = _scan(request, given, session, ports)
    session.context = attrs.evolve(
        session.context, variables=result.variables.chat, global_variables=result.variables.shared
    )
    lore = place_lore(result, rewriter)
    session.context = attrs.evolve(session.context, outlets=lore.outlets)
    given = attrs.evolve(given, lore=lore.placed)
    built = build(given, session, ports.counter)
    if built.error is not None and given.repaired:
        raise _named_error(built, given)
    messages, role_facts = _for_target(built.messages, system_only_first=request.system_only_first)
    return Assembly(
        given,
        messages,
        itemise(messages, ports.counter),
        (*facts, *rewriter.facts, *lore_without_slot(given, built.prompts), *_dropped(given, built), *role_facts),
        result,
        built,
        session.context.variables,
        session.context.global_variables,
        request.warnings,
    )


def _prepared_chat(request: AssemblyRequest, rewriter: Rewriter) -> tuple[AssemblyInput, tuple[Fact, ...]]:
    """The input with labelled, witnessed and rewritten messages."""
    given = request.given
    chat: Sequence[ChatMessage] = [
        message if message.label is not None else attrs.evolve(message, label=str(index))
        for index, message in enumerate(given.chat)
    ]
    facts: tuple[Fact, ...] = ()
    if request.present_only:
        chat, facts = witnessed(chat, given.card.name)
    return attrs.evolve(given, chat=rewriter.chat(chat, given.type)), facts


def _scan(request: AssemblyRequest, given: AssemblyInput, session: MacroSession, ports: AssemblyPorts) -> ScanResult:
    messages = tuple(
        ScanMessage(message.text, message.name if request.names_in_scan else None)
        for message in visible_messages(given)
    )
    searched = tuple(
        ScanInjection(item.source, item.text if item.literal else session.expand(item.text))
        for item in given.injections
        if item.scan
    )
    scan = attrs.evolve(
        request.scan,
        messages=messages,
        max_context=given.preset.context_tokens - given.preset.response_tokens,
        injections=(*request.scan.injections, *searched),
        trigger=given.type,
        variables=ScanVariables(session.context.variables, session.context.global_variables),
    )
    return scan_books(scan, ScanPorts(ports.draw, ports.counter.count, macro_port(session.context), ports.regex))


def _named_error(built: Built, given: AssemblyInput) -> MandatoryPromptsExceedContext:
    """The error with the largest prompt and the context size in it."""
    largest, tokens = built.largest_prompt
    size = given.preset.context_tokens
    return MandatoryPromptsExceedContext(
        f"the fixed prompts don't fit a context of {size} tokens with {given.preset.response_tokens} kept for the "
        f"reply; the largest is {largest!r} with {tokens} tokens: shorten it, switch it off or raise the context size",
        details={"prompt": largest, "tokens": tokens, "context": size},
    )


def _dropped(given: AssemblyInput, built: Built) -> Iterable[Fact]:
    """A fact for each message that is too old to fit: those before the oldest one that was sent."""
    if built.prompts.index(HISTORY) < 0:
        return
    spans = (span for item in built.items for span in item.message.content.spans)
    sent = {span.origin.item for span in spans if span.origin.source == CHAT}
    for index, message in enumerate(visible_messages(given)):
        if message.label in sent:
            return
        if message.text:
            yield Fact(message_label(message, index), "context_budget")


def _for_target(
    messages: Sequence[Message], *, system_only_first: bool
) -> tuple[tuple[Message, ...], tuple[Fact, ...]]:
    """The messages as the target takes them, and a fact for each entry whose role that changed."""
    first = next((i for i, message in enumerate(messages) if message.role != "system"), len(messages))
    if not system_only_first:
        return tuple(messages), ()
    late = {i for i, message in enumerate(messages) if i > first and message.role == "system"}
    items = dict.fromkeys(span.origin.label for i in sorted(late) for span in messages[i].content.spans)
    changed = tuple(Fact(item, "role_changed", (("from", "system"), ("to", "user"))) for item in items)
    return tuple(attrs.evolve(m, role="user") if i in late else m for i, m in enumerate(messages)), changed
