"""``tapster assemble --renderer sillytavern``: the request as SillyTavern would send it, from files."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final

from tapster.actors.scripts import open_regex_engine
from tapster.actors.session.rolls import Rolls, RollSeed
from tapster.engine.activation.sillytavern import DrawFor, Quirks
from tapster.engine.ecma import Json
from tapster.engine.formats.chats import Chat, parse_chat
from tapster.engine.formats.personas import Persona, create_persona
from tapster.engine.profile.explanations import explain_assembly
from tapster.engine.profile.sillytavern import Assembly, AssemblyPorts, Choices, Library, assemble, library_request
from tapster.engine.profile.tokens import ESTIMATE

from . import offline

_SHOWN: Final = 400


def read_library(files: offline.Files, *, message: str | None, user_name: str | None) -> Library:
    """The library that files hold.

    Raises:
        FileUnreadable: one of them can't be used; the message says which and why.
    """
    books = [offline.parsed(path, offline.read_book) for path in files.worlds]
    return Library(
        None if files.preset is None else offline.parsed(files.preset, offline.read_preset),
        None if files.card is None else offline.parsed(files.card, offline.read_card),
        None if files.persona is None else offline.parsed(files.persona, _persona),
        {document.name: document.book for document in books},
        None if files.chat is None else offline.parsed(files.chat, _chat),
        message,
        user_name,
    )


def assemble_library(library: Library, *, seed: str, now: datetime, quirks: Quirks = "repaired") -> Assembly:
    """Assemble with draws from a seed; scripts of a card don't run, nobody was asked.

    Raises:
        TapsterError: the fixed prompts don't fit the context.
    """
    start = RollSeed(seed, 0, 0)
    streams: dict[DrawFor, Rolls] = {}

    def draw(purpose: DrawFor) -> float:
        return streams.setdefault(purpose, Rolls(start, f"{purpose.kind}:{purpose.name}"))()

    request = library_request(library, Choices(quirks=quirks), now=now, random=Rolls(start, "macros"))
    return assemble(request, AssemblyPorts(ESTIMATE, draw, open_regex_engine()))


def result(assembly: Assembly) -> Json:
    """The assembly as JSON: messages, what each source costs, entries with reasons, facts, warnings."""
    facts: dict[str, list[Json]] = {}
    for fact in assembly.facts:
        facts.setdefault(fact.label, []).append(fact.to_json())
    return {
        "renderer": "sillytavern",
        "messages": [message.to_json() for message in assembly.messages],
        "tokens": {
            "counter": ESTIMATE.name,
            "total": assembly.itemisation.total,
            "bySource": dict(assembly.itemisation.by_source),
        },
        "prompts": [item.to_json() for item in explain_assembly(assembly)],
        "entries": [{**decision.to_json(), "name": decision.entry.comment} for decision in assembly.scan.decisions()],
        "facts": facts,
        "warnings": [warning.to_json() for warning in assembly.warnings],
    }


def describe(given: Json) -> Iterator[str]:
    """The same for a person."""
    for message in given["messages"]:
        name = f" ({message['name']})" if "name" in message else ""
        yield f"--- {message['role']}{name}"
        text = message["content"]
        yield text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
    yield ""
    tokens = given["tokens"]
    yield f"Tokens by source ({tokens['counter']}): {tokens['total']} in all"
    yield from (f"  {count:6} {source}" for source, count in tokens["bySource"].items())
    yield "Prompts:"
    yield from (f"  {'+' if item['sent'] else '-'} {item['prompt']}: {item['text']}" for item in given["prompts"])
    yield "World-book entries:"
    yield from (
        f"  {'+' if entry['active'] else '-'} {entry['name'] or entry['entry']}: {entry['reason']}"
        for entry in given["entries"]
    )
    for label, facts in given["facts"].items():
        yield from (f"{label}: {fact['reason']}" for fact in facts)
    yield from (f"{warning['severity']}: {warning['message']} [{warning['code']}]" for warning in given["warnings"])


def _persona(path: Path, data: bytes) -> Persona:
    return create_persona(offline.persona_members(data), generated_id="persona")


def _chat(path: Path, data: bytes) -> Chat:
    return parse_chat(data)
