"""Adapters for profiles, macros, call parameters and the pure rules of selections and RP mode."""

import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.selections import FILE_NAME, FilePorts, SelectionFile
from tapster.engine.ecma import parse_json, stringify
from tapster.engine.errors import FormatError, TapsterError
from tapster.engine.formats.presets import Preset, parse_preset
from tapster.engine.policy import (
    Selection,
    SessionSelectionLimitError,
    guard_tool,
    is_secret_name,
    normalize_rp,
    normalize_selection,
    rp_json,
    selection_json,
    selection_limits,
)
from tapster.engine.profile import (
    ActivatedLore,
    CallFailure,
    CompileRequest,
    LoreEntry,
    ProfileCharacter,
    ProfileSnapshot,
    ProfileTooLarge,
    ProfileUser,
    ResolvedResources,
    compile_profile,
    profile_byte_limit,
    rejected_parameters,
)
from tapster.engine.text.tavern_macros import Draw, MacroContext, expand_macros
from tests.conformance.registry import adapter, error_value

Json = Any
NOW = "2026-01-01T00:00:00.000Z"
_ERROR_TYPES: dict[type[TapsterError], str] = {
    SessionSelectionLimitError: "SessionSelectionLimitError",
    ProfileTooLarge: "TavernProfileLimitError",
}


def draws(values: Json) -> Draw:
    return itertools.cycle(values or [0.5]).__next__


def preset_of(raw: Json) -> Preset | None:
    return None if raw is None else parse_preset(raw, id="p", now=NOW)


def snapshot(given: Json, preset: Json) -> ProfileSnapshot:
    character, user = given.get("character"), given.get("user")
    selection = normalize_selection({"character": given.get("characterSelection")})
    lore = tuple(
        LoreEntry(entry.get("content") or "", entry.get("position") or "", entry.get("id"), entry.get("uid"))
        for entry in given.get("lore") or ()
    )
    return compile_profile(
        CompileRequest(
            None,
            selection,
            selection,
            ResolvedResources(
                preset_of(preset),
                ProfileCharacter.from_document(character) if character else None,
                ProfileUser(user.get("id"), user.get("name") or "", user.get("description") or "") if user else None,
            ),
            ActivatedLore(lore),
            given.get("context") or {},
            given.get("includeGreeting", True),
            profile_byte_limit(given.get("maxProfileBytes")),
        ),
        draws(given.get("random")),
    )


def sections(found: ProfileSnapshot) -> Json:
    return [{"name": section.name, "text": section.text} for section in found.sections]


@adapter("tavern_loader", "preset.compile")
def run_preset_compile(given: Json) -> Json:
    found = snapshot(given, given["raw"])
    return {"text": found.system_text, "sections": sections(found), "callConfig": found.call_config.to_json()}


@adapter("tavern_loader", "profile")
def run_profile(given: Json) -> Json:
    try:
        found = snapshot(given, given.get("preset"))
    except ProfileTooLarge as error:
        return error_json(error)
    kept = {"code", "severity", "retainedLoreEntries", "omittedLoreEntries"}
    return {
        "text": found.system_text,
        "sections": sections(found),
        "diagnostics": [
            {key: value for key, value in item.to_json().items() if key in kept} for item in found.diagnostics
        ],
        "activeLoreEntries": list(found.active_lore),
        "callConfig": found.call_config.to_json(),
        "systemPromptMode": found.system_prompt_mode,
        "userInjection": found.user_injection.to_json(),
    }


@adapter("tavern_loader", "macros")
def run_macros(given: Json) -> Json:
    context = given.get("context") or {}
    names = {
        "user": context.get("user"),
        "character": context.get("character"),
        "last_user_message": context.get("lastUserMessage"),
        "last_character_message": context.get("lastAssistantMessage"),
    }
    expansion = expand_macros(
        given["content"],
        MacroContext(**{key: value for key, value in names.items() if value is not None}),
        draw=draws(given.get("random")),
        variables=given.get("variables"),
    )
    return {"text": expansion.text, "variables": dict(expansion.variables)}


@adapter("tavern_loader", "selection.normalize")
@adapter("tavern_loader", "template.selection")
def run_selection(given: Json) -> Json:
    return selection_json(normalize_selection(given["value"]))


@adapter("tavern_api", "selection.normalize")
def run_api_selection(given: Json) -> Json:
    return {"selection": selection_json(normalize_selection(given["selection"]))}


@adapter("tavern_loader", "rp.normalize")
def run_rp(given: Json) -> Json:
    return rp_json(normalize_rp(given["value"]))


@adapter("tavern_loader", "rp.guard")
def run_guard(given: Json) -> Json:
    return {"blocked": guard_tool(given["tool"], given.get("arguments"), given.get("workspace")).blocked}


@adapter("tavern_api", "rp.guard")
def run_api_guard(given: Json) -> Json:
    call = given["execution"]
    return {"blocked": guard_tool(call["name"], call.get("arguments"), given.get("workspaceRoot")).blocked}


@adapter("tavern_loader", "rp.secret")
def run_secret(given: Json) -> Json:
    return {"secret": is_secret_name(given["name"])}


@adapter("tavern_loader", "params.rejected")
def run_rejected(given: Json) -> Json:
    failure = given["failure"]
    told = CallFailure(failure.get("code"), failure.get("status"), failure.get("message") or "")
    return {"fields": list(rejected_parameters(told, given["supplied"]))}


def error_json(error: TapsterError) -> Json:
    value = error_value(error)
    if type(error) in _ERROR_TYPES:
        value["error"] = {"type": _ERROR_TYPES[type(error)], "code": error.code}
    if isinstance(error, FormatError) and error.slug == "bad-json":
        value["error"] = {"type": "SyntaxError", "code": None}
    return value


def selection_value(value: Json) -> Json:
    if isinstance(value, Selection):
        return selection_json(value)
    if isinstance(value, dict):
        return {key: selection_json(item) for key, item in value.items()}
    return value


@attrs.define
class StoreRun:
    """One data folder and the selections opened on it."""

    directory: Path
    given: Json
    store: SelectionFile = attrs.field(init=False)

    def open(self) -> None:
        options = self.given.get("options") or {}
        names = map(str, itertools.count())
        default = (self.given.get("default") or {}).get("presetId")
        ports = FilePorts(AtomicWriter(os.getpid(), names.__next__), lambda: NOW, lambda: default)
        limits = selection_limits(options.get("maxSessions"), options.get("maxStateBytes"))
        self.store = SelectionFile.open(self.directory, limits, ports)

    def run(self, operation: Json) -> Json:
        name, *arguments = operation
        calls: dict[str, Callable[..., Json]] = {
            "reopen": self.open,
            "get": self.store.get,
            "has": self.store.has,
            "set": self.store.set,
            "setMany": self.store.set_many,
            "ensure": lambda session, parent=None, depth=0: self.store.ensure(session, parent),
            "clear": self.store.clear,
            "delete": self.store.delete,
        }
        try:
            return selection_value(calls[name](*arguments))
        except TapsterError as error:
            return error_json(error)


def sessions_of(document: Json) -> Json:
    """Schema and session ids of the stored document."""
    if document is None:
        return None
    members = document if isinstance(document, dict) else {}
    sessions = members.get("sessions")
    ids = list(sessions) if isinstance(sessions, dict) else []
    return {"schemaVersion": members.get("schemaVersion"), "ids": ids}


@adapter("tavern_loader", "selection.store")
def run_store(given: Json) -> Json:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE_NAME
        initial = given.get("file")
        if initial is not None:
            path.write_text(initial if isinstance(initial, str) else stringify(initial), encoding="utf-8")
        run = StoreRun(Path(folder), given)
        try:
            run.open()
        except TapsterError as error:
            return {"open": error_json(error)}
        results = [run.run(operation) for operation in given["ops"]]
        document = parse_json(path.read_text(encoding="utf-8")) if path.exists() else None
        new = initial is None and document is not None
        return {
            "results": results,
            "fileExists": document is not None,
            "sessions": sessions_of(document),
            "mode": f"{path.stat().st_mode & 0o777:o}" if new else None,
        }
