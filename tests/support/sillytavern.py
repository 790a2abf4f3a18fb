"""Small requests for the SillyTavern renderer."""

import datetime
from collections.abc import Sequence
from typing import Any

from tapster.engine.activation.sillytavern import BookUse, ScanInput, ScanSettings, compile_scan_book, read_entry
from tapster.engine.profile.sillytavern import (
    Assembly,
    AssemblyInput,
    AssemblyPorts,
    AssemblyRequest,
    CardFields,
    ChatMessage,
    PromptPreset,
    assemble,
    read_prompt_preset,
)
from tapster.engine.profile.tokens import WORDS
from tapster.engine.text.macros import MacroContext

NOW = datetime.datetime(2024, 3, 9, 14, 5, 9, tzinfo=datetime.UTC)
MARKERS = ("worldInfoBefore", "charDescription", "worldInfoAfter", "dialogueExamples", "chatHistory")


def prompts(*identifiers: str, extra: Sequence[dict[str, Any]] = (), **members: Any) -> PromptPreset:
    """A preset with these prompts on, in this order; ``main`` says "Main."."""
    order = [{"identifier": name, "enabled": not name.startswith("-")} for name in identifiers]
    for entry in order:
        entry["identifier"] = str(entry["identifier"]).lstrip("-")
    raw = {
        "new_chat_prompt": "",
        "new_example_chat_prompt": "",
        "openai_max_context": 1000,
        "openai_max_tokens": 100,
        "prompts": [{"identifier": "main", "role": "system", "content": "Main."}, *extra],
        "prompt_order": [{"character_id": 100001, "order": order}],
        **members,
    }
    return read_prompt_preset(raw).preset


def book(*entries: dict[str, Any]) -> tuple[BookUse, ...]:
    """One book with these entries, always active unless they have keys."""
    usual = {"key": [], "constant": True, "position": 0, "order": 100, "content": ""}
    scanned = [read_entry("b", {**usual, "uid": uid, **entry}) for uid, entry in enumerate(entries)]
    return (BookUse("global", compile_scan_book("b", scanned)),)


def chat(*texts: str) -> tuple[ChatMessage, ...]:
    """A chat of user and character in turn."""
    return tuple(
        ChatMessage("Ann" if index % 2 == 0 else "Bo", text, "user" if index % 2 == 0 else "assistant")
        for index, text in enumerate(texts)
    )


def given(preset: PromptPreset, *texts: str, **members: Any) -> AssemblyInput:
    """An input with repaired quirks."""
    members = {"card": CardFields("Bo"), "quirks": "repaired", **members}
    return AssemblyInput(preset, user="Ann", chat=chat(*texts), **members)


def run(source: AssemblyInput, *entries: dict[str, Any], **members: Any) -> Assembly:
    """Assemble with the word counter."""
    variables = members.pop("variables", {})
    return assemble(
        AssemblyRequest(
            source,
            ScanInput(book(*entries) if entries else (), settings=ScanSettings(budget_tokens=1000)),
            MacroContext(now=NOW, random=lambda: 0.0, user="Ann", char=source.card.name, variables=variables),
            **members,
        ),
        AssemblyPorts(WORDS, lambda purpose: 0.0),
    )


def sent(assembly: Assembly) -> list[tuple[str, str]]:
    """Role and text of each message."""
    return [(message.role, message.content.text) for message in assembly.messages]
