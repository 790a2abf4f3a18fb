"""The bounded, metadata-only audit of one step that v1 ``/traces`` shows.

Every string is clipped and every list cut here, so an audit can be stored and shown as it is.

Source: spec/trace §9.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import attrs

from tapster.engine.ecma import Json, is_number, is_safe_integer, utf16_length, utf16_slice
from tapster.engine.limits import (
    AUDIT_DIAGNOSTIC_CODE_UNITS,
    AUDIT_DIAGNOSTIC_MESSAGE_UNITS,
    AUDIT_DIAGNOSTIC_SEVERITY_UNITS,
    AUDIT_ENTRY_ID_UNITS,
    AUDIT_ENTRY_NAME_UNITS,
    AUDIT_ID_UNITS,
    AUDIT_LIST_ITEM_UNITS,
    AUDIT_MAX_CLAIMS,
    AUDIT_MAX_DECISIONS,
    AUDIT_MAX_DIAGNOSTICS,
    AUDIT_MAX_IDS,
    AUDIT_MAX_KEYS,
    AUDIT_MAX_WORLD_BOOK_RESOURCES,
    AUDIT_MAX_WORLD_BOOKS,
    AUDIT_REASON_UNITS,
)

from .digest import digest
from .host import member

PROFILE_SECTION = "pmp-dsh-tavern:profile"
PROFILE_ORDER = 10
CALL_CONFIG_KEYS = ("temperature", "maxTokens", "reasoningEffort", "stop")
_ID_LISTS = ("explicitIds", "userBoundIds", "presetBoundIds", "characterBoundIds", "effectiveIds", "duplicateIds")
_ADDITIVE_ID_LISTS = frozenset({"presetBoundIds", "characterBoundIds"})
_ACTIVATION_COUNTS = (
    "durableMessageCount",
    "pendingMessageCount",
    "includedPendingMessageCount",
    "duplicatePendingMessageCount",
    "scannedMessageCount",
    "scannedCharacters",
)


@attrs.frozen(eq=False)
class BoundedBooks:
    """What an audit keeps of the books that took part: cut to its bounds, where there was time for it."""

    rows: tuple[Mapping[str, Json], ...] = ()


@attrs.frozen
class AuditFacts:
    """What an audit is made from, in the contract's member names and, but for ``BoundedBooks``, not yet bounded.

    Attributes:
        profile_text: the rendered profile; only its length and hash are kept.
        world_books: ``{resource, budget, decisions}`` of each book that took part.
    """

    session_id: str
    capture_id: str
    turn: int
    step: int
    attempt: int
    now: int
    profile_text: str = ""
    fingerprint: Json = None
    system_prompt_mode: Literal["append", "replace"] = "append"
    call_config: Mapping[str, Json] = attrs.Factory(dict)
    selection: Mapping[str, Json] = attrs.Factory(dict)
    world_book_selection: Mapping[str, Json] = attrs.Factory(dict)
    resources: Mapping[str, Json] = attrs.Factory(dict)
    world_books: Sequence[Mapping[str, Json]] | BoundedBooks = ()
    activation: Mapping[str, Json] = attrs.Factory(dict)
    diagnostics: Sequence[Mapping[str, Json]] = ()


def begin_audit(facts: AuditFacts) -> dict[str, Json]:
    """The audit of a step that has just begun; it waits for the host's request header."""
    return {
        "schemaVersion": 1,
        "id": f"{facts.turn}:{facts.step}:{facts.attempt}",
        "captureId": facts.capture_id,
        "sessionId": facts.session_id,
        "turn": facts.turn,
        "step": facts.step,
        "attempt": facts.attempt,
        "recordedAt": facts.now,
        "updatedAt": facts.now,
        "status": "awaiting-header",
        "assembly": _assembly(facts),
        "selection": _selection(facts.selection),
        "worldBookSelection": _world_book_selection(facts.world_book_selection),
        "resources": _resources(facts.resources),
        "worldBooks": list(bounded_books(facts.world_books).rows),
        "activation": _activation(facts.activation),
        "diagnostics": [_diagnostic(item) for item in facts.diagnostics[:AUDIT_MAX_DIAGNOSTICS]],
        "authority": None,
        "sensitiveContentStored": False,
        "entersModelHistory": False,
    }


def clip(value: Json, units: int) -> str | None:
    """A string cut to so many UTF-16 units, with an ellipsis when something was cut; None for anything else."""
    if not isinstance(value, str):
        return None
    return value if utf16_length(value) <= units else utf16_slice(value, 0, units) + "…"


def _clipped_list(values: Json, limit: int, units: int) -> list[str]:
    items = values if isinstance(values, list | tuple) else ()
    return [text for item in items[:limit] if (text := clip(item, units)) is not None]


def _number(value: Json) -> Json:
    return value if is_number(value) else None


def _assembly(facts: AuditFacts) -> dict[str, Json]:
    return {
        "fingerprint": clip(facts.fingerprint, AUDIT_ID_UNITS),
        "profileSection": PROFILE_SECTION,
        "profileOrder": PROFILE_ORDER,
        "systemPromptMode": facts.system_prompt_mode,
        "systemCharacters": utf16_length(facts.profile_text),
        "systemFingerprint": digest(facts.profile_text),
        "callConfig": {key: facts.call_config[key] for key in CALL_CONFIG_KEYS if key in facts.call_config},
    }


def _selection(value: Mapping[str, Json]) -> dict[str, Json]:
    return {
        **{key: clip(value.get(key), AUDIT_ID_UNITS) for key in ("presetId", "characterCardId", "userProfileId")},
        "worldBookIds": _clipped_list(value.get("worldBookIds"), AUDIT_MAX_IDS, AUDIT_ID_UNITS),
    }


def _world_book_selection(value: Mapping[str, Json]) -> dict[str, Json]:
    lists = {
        key: _clipped_list(value.get(key), AUDIT_MAX_IDS, AUDIT_ID_UNITS)
        for key in _ID_LISTS
        if key in value or key not in _ADDITIVE_ID_LISTS
    }
    return {**lists, "order": clip(value.get("order"), AUDIT_ID_UNITS)}


def _resource(value: Json) -> dict[str, Json] | None:
    if not isinstance(value, Mapping):
        return None
    return {
        "id": clip(value.get("id"), AUDIT_ID_UNITS),
        "name": clip(value.get("name"), AUDIT_LIST_ITEM_UNITS),
        "kind": clip(value.get("kind"), AUDIT_LIST_ITEM_UNITS),
        "format": clip(value.get("format"), AUDIT_LIST_ITEM_UNITS),
        "entryCount": _number(value.get("entryCount")),
        "matchedEntryCount": _number(value.get("matchedEntryCount")),
    }


def _resources(value: Mapping[str, Json]) -> dict[str, Json]:
    books = value.get("worldBooks") or []
    return {
        **{key: _resource(value.get(key)) for key in ("preset", "characterCard", "userProfile")},
        "worldBooks": [_resource(book) for book in books[:AUDIT_MAX_WORLD_BOOK_RESOURCES]],
    }


def bounded_books(books: Iterable[Mapping[str, Json]] | BoundedBooks) -> BoundedBooks:
    """The first books with their first decisions; what is bounded already stays as it is."""
    if isinstance(books, BoundedBooks):
        return books
    room = AUDIT_MAX_DECISIONS
    kept: list[Mapping[str, Json]] = []
    for book in list(books)[:AUDIT_MAX_WORLD_BOOKS]:
        decisions = [_decision(item) for item in (book.get("decisions") or [])[:room]]
        room -= len(decisions)
        budget = {key: _number(member(book, "budget", key)) for key in ("limit", "used", "remaining")}
        kept.append({"resource": _resource(book.get("resource")), "budget": budget, "decisions": decisions})
    return BoundedBooks(tuple(kept))


def _decision(value: Mapping[str, Json]) -> dict[str, Json]:
    def text(key: str, units: int) -> str | None:
        return clip(value.get(key), units)

    def keys(name: str) -> list[str]:
        return _clipped_list(value.get(name), AUDIT_MAX_KEYS, AUDIT_LIST_ITEM_UNITS)

    return {
        "resourceId": text("resourceId", AUDIT_ID_UNITS),
        "entryId": text("entryId", AUDIT_ENTRY_ID_UNITS),
        "entryName": text("entryName", AUDIT_ENTRY_NAME_UNITS),
        "decision": "included" if value.get("decision") == "included" else "rejected",
        "reason": text("reason", AUDIT_REASON_UNITS),
        "primaryKeys": keys("primaryKeys"),
        "secondaryKeys": keys("secondaryKeys"),
        "primaryMatches": keys("primaryMatches"),
        "secondaryMatches": keys("secondaryMatches"),
        "secondaryLogic": text("secondaryLogic", AUDIT_LIST_ITEM_UNITS),
        "groupName": text("groupName", AUDIT_LIST_ITEM_UNITS),
        "groupWeight": _number(value.get("groupWeight")),
        "groupOverride": value.get("groupOverride") is True,
        "probability": _number(value.get("probability")),
        "probabilityRoll": _number(value.get("probabilityRoll")),
        "tokenCost": _number(value.get("tokenCost")),
        "requestedPosition": text("requestedPosition", AUDIT_LIST_ITEM_UNITS),
        "appliedPosition": text("appliedPosition", AUDIT_LIST_ITEM_UNITS),
        "approximatePosition": value.get("approximatePosition") is True,
    }


def _activation(value: Mapping[str, Json]) -> dict[str, Json]:
    claims = [seq for seq in value.get("claimEventSeqs") or [] if is_safe_integer(seq)]
    counts = {key: value.get(key) if is_safe_integer(value.get(key)) else 0 for key in _ACTIVATION_COUNTS}
    invalid = value.get("invalidEventCount")
    return {
        "kind": clip(value.get("kind"), AUDIT_LIST_ITEM_UNITS),
        **counts,
        "truncated": value.get("truncated") is True,
        "claimEventSeqs": claims[-AUDIT_MAX_CLAIMS:],
        "invalidEventCount": invalid if is_safe_integer(invalid) else 0,
    }


def _diagnostic(value: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "code": clip(value.get("code"), AUDIT_DIAGNOSTIC_CODE_UNITS),
        "severity": clip(value.get("severity"), AUDIT_DIAGNOSTIC_SEVERITY_UNITS),
        "message": clip(value.get("message"), AUDIT_DIAGNOSTIC_MESSAGE_UNITS),
        "resourceId": clip(value.get("resourceId"), AUDIT_ID_UNITS),
        "entryId": clip(value.get("entryId"), AUDIT_ENTRY_ID_UNITS),
    }
