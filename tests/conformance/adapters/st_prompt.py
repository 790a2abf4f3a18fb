"""st_prompt.jsonl: ``Generate`` of SillyTavern up to its messages, and the server's post-processing."""

import math
from typing import Any

from tapster.actors.scripts import open_regex_engine
from tapster.engine.activation.sillytavern import (
    BookUse,
    ScanInput,
    ScanSettings,
    compile_scan_book,
    read_entry,
)
from tapster.engine.profile.sillytavern import (
    AssemblyInput,
    AssemblyPorts,
    AssemblyRequest,
    AuthorsNote,
    CardFields,
    ChatMessage,
    Group,
    Injection,
    PersonaSettings,
    PlacedLore,
    Preferences,
    Role,
    SpeakerNames,
    assemble,
    post_process,
    read_prompt_preset,
)
from tapster.engine.profile.tokens import NamedCounter
from tapster.engine.text.regex_scripts import parse_regex_script
from tests.conformance.adapters.st_macros import context_of, group_of
from tests.conformance.registry import adapter

Json = Any
ROLES: tuple[Role, ...] = ("system", "user", "assistant")
REGEX = open_regex_engine()
STUB = NamedCounter("stub", lambda text: math.ceil(len(text) / 4))
ERRORS = {
    "MANDATORY_PROMPTS_EXCEED_CONTEXT": (
        "Not enough free tokens for mandatory prompts. Raise your token limit or disable custom prompts."
    )
}


def role(value: Json) -> Role:
    return value if value in ROLES else ROLES[value or 0]


def message(given: Json) -> ChatMessage:
    narrated = (given.get("extra") or {}).get("type") == "narrator"
    return ChatMessage(
        given["name"],
        given["mes"],
        "system" if narrated else "user" if given["is_user"] else "assistant",
        hidden=bool(given.get("is_system")),
        forced_avatar=bool(given.get("force_avatar")),
    )


def card(given: Json) -> CardFields:
    depth = given.get("depth_prompt") or {}
    return CardFields(
        given.get("name") or "",
        given.get("description") or "",
        given.get("personality") or "",
        given.get("scenario") or "",
        given.get("mes_example") or "",
        given.get("system_prompt") or "",
        given.get("post_history_instructions") or "",
        depth.get("prompt") or "",
        depth.get("depth", 4),
        role(depth.get("role")),
    )


PLACES = {"before": 0, "after": 1, "an_top": 2, "an_bottom": 3, "em_top": 5, "em_bottom": 6}


def books(given: Json) -> tuple[BookUse, ...]:
    """The recorded world info as a book of constant entries: SillyTavern got it so."""
    entries: list[Json] = []
    for name, position in PLACES.items():
        texts = enumerate(given.get(name) or [])
        entries += [{"content": text, "position": position, "order": 100 + index} for index, text in texts]
    for entry in given.get("depth") or []:
        entries.append({**entry, "position": 4, "order": entry.get("order", 100)})
    for name, texts in (given.get("outlets") or {}).items():
        size = len(texts)
        entries += [
            {"content": text, "position": 7, "outletName": name, "order": 100 + size - index}
            for index, text in enumerate(texts)
        ]
    scanned = [read_entry("w", {**entry, "uid": uid, "key": [], "constant": True}) for uid, entry in enumerate(entries)]
    return (BookUse("global", compile_scan_book("w", scanned)),)


def assembly_input(given: Json) -> AssemblyInput:
    person, note = given["power_user"], given.get("authors_note") or {}
    speaker, group = group_of(given)
    return AssemblyInput(
        read_prompt_preset(given["preset"]).preset,
        card(speaker),
        given["user"],
        tuple(message(item) for item in given["chat"]),
        PersonaSettings(
            given.get("persona_description") or "",
            person["persona_description_position"],
            person["persona_description_depth"],
            role(person["persona_description_role"]),
        ),
        PlacedLore(),
        AuthorsNote(
            note.get("prompt") or "",
            note.get("position", 1),
            note.get("depth", 4),
            role(note.get("role")),
            note.get("interval", 1),
        ),
        tuple(
            Injection(item["id"], item["value"], item["position"], item.get("depth", 0), role(item.get("role")))
            for item in given.get("extension_prompts") or []
        ),
        Group(group.members) if group else None,
        Preferences(
            person["pin_examples"],
            person["strip_examples"],
            person["prefer_character_prompt"],
            person["prefer_character_jailbreak"],
        ),
        given["type"],
        given.get("quiet_prompt") or "",
    )


def processed(given: Json) -> Json:
    names = given["names"]
    speakers = SpeakerNames(names["charName"], names["userName"], tuple(names["groupNames"]))
    return {"messages": post_process(given["messages"], given["post_processing"], speakers)}


@adapter("st_prompt")
def run(given: Json) -> Json:
    if given.get("op") == "post_process":
        return processed(given)
    macros = context_of({**given, "outlets": {}})
    assembly = assemble(
        AssemblyRequest(
            assembly_input(given),
            ScanInput(books(given.get("world_info") or {}), settings=ScanSettings(budget_percent=100, quirks="exact")),
            macros,
            tuple(parse_regex_script(script) for script in given.get("regex_scripts") or ()),
        ),
        AssemblyPorts(STUB, lambda purpose: macros.random(), REGEX),
    )
    built = assembly.built
    items = [
        {
            "collection": item.collection,
            "role": item.message.role,
            "tokens": item.tokens,
            **({"identifier": item.message.identifier} if item.message.identifier else {}),
        }
        for item in built.items
    ]
    return {
        "messages": [message.to_json() for message in assembly.messages],
        "items_before_squash": items,
        "overridden_prompts": list(built.prompts.overridden),
        "token_budget_left": built.budget_left,
        "pm_error": ERRORS[built.error.code] if built.error else None,
    }
