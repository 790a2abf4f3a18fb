"""Filled-in forms as edits of documents; only what a person changed is in them."""

from collections.abc import Mapping
from typing import Final

from werkzeug.datastructures import MultiDict

from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError

Form = MultiDict[str, str]
CARD_TEXTS: Final = (
    "name",
    "description",
    "personality",
    "scenario",
    "firstMessage",
    "messageExample",
    "systemPrompt",
    "postHistoryInstructions",
)


class EntryMoved(RequestError):
    """A book changed since its page was made, and the entry isn't where it was."""

    code = "ENTRY_MOVED"
    status = 409


def preset_patch(document: Mapping[str, Json], form: Form) -> dict[str, Json]:
    """The update of a preset; a member that it leaves out would be cleared, so it names them all."""
    sampling = {
        **document["sampling"],
        "temperature": _number(form, "temperature"),
        "maxTokens": _number(form, "maxTokens"),
    }
    patch: dict[str, Json] = {
        "name": form.get("name", ""),
        "systemPromptMode": document["systemPromptMode"],
        "sampling": sampling,
    }
    prompts = document["prompts"]
    if form.get("prompts") == str(len(prompts)):
        enabled = set(form.getlist("enabled"))
        patch["prompts"] = [{**prompt, "enabled": str(index) in enabled} for index, prompt in enumerate(prompts)]
    return patch


def card_patch(document: Mapping[str, Json], form: Form) -> dict[str, Json]:
    """The update of a card's texts."""
    data = document["data"]
    changed = {name: changed_text(form.get(name), data.get(name)) for name in CARD_TEXTS}
    return {name: text for name, text in changed.items() if text is not None}


def described_patch(form: Form) -> dict[str, Json]:
    """A name and a description, all that can be edited of a persona and of a book besides its entries."""
    return {"name": form.get("name", "").strip(), "description": with_newlines(form.get("description", ""))}


def entries_patch(document: Mapping[str, Json], position: int, key: str, changes: Json) -> dict[str, Json]:
    """The update of a book that changes one entry, or removes it when ``changes`` is None.

    Raises:
        EntryMoved: another entry is in its place.
    """
    entries = [named(entry) for entry in document["book"]["entries"]]
    if position >= len(entries) or entries[position]["sourceKey"] != key:
        raise EntryMoved("the book was changed meanwhile; open it again and repeat the change")
    if changes is None:
        del entries[position]
    else:
        entries[position] |= changes
    return {"entries": entries}


def added_entry_patch(document: Mapping[str, Json]) -> dict[str, Json]:
    """The update of a book that adds an empty entry at its end."""
    return {"entries": [*(named(entry) for entry in document["book"]["entries"]), {"keys": [], "content": ""}]}


def entry_changes(entry: Mapping[str, Json], form: Form) -> dict[str, Json]:
    """What a form changes of an entry; keys are one a line."""
    changes: dict[str, Json] = {"enabled": "enabled" in form, "constant": "constant" in form}
    for member in ("keys", "secondaryKeys"):
        keys = [line.strip() for line in with_newlines(form.get(member, "")).split("\n") if line.strip()]
        if keys != [key.strip() for key in entry[member] if key.strip()]:
            changes[member] = keys
    for member in ("comment", "content"):
        text = changed_text(form.get(member), entry[member])
        if text is not None:
            changes[member] = text
    return changes


def named(entry: Mapping[str, Json]) -> dict[str, Json]:
    """An entry as an update names it when nothing of it changes."""
    return {"uid": entry["uid"], "sourceKey": entry["source"]["key"]}


def changed_text(given: str | None, current: Json) -> str | None:
    """A text that was changed, None when it's the same; browsers send every line end as CR LF."""
    if given is None or with_newlines(given) == with_newlines(str(current or "")):
        return None
    return with_newlines(given)


def with_newlines(text: str) -> str:
    """A text with plain line ends."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _number(form: Form, name: str) -> float | int | None:
    text = form.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise RequestError(f"{name} must be a number, or be left empty") from None
    return int(value) if value.is_integer() else value
