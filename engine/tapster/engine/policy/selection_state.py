"""All sessions' selections as one value: reading the document, every operation, its capacity.

Each operation returns a new state and leaves the old one alone, so a failed write changes nothing.

Source: spec/loader §2, §3.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

import attrs

from tapster.engine.ecma import Json, is_record, parse_json, stringify, utf8
from tapster.engine.errors import FormatError, StoreError
from tapster.engine.limits import (
    SELECTION_BYTES_DEFAULT,
    SELECTION_BYTES_HARD,
    SELECTION_FILE_BYTES,
    SELECTION_SESSIONS_DEFAULT,
    SELECTION_SESSIONS_HARD,
)

from .bounds import configured_limit
from .selection import (
    CharacterOptions,
    Selection,
    normalize_selection,
    required_session_id,
    selection_json,
    session_id,
)

ResourceKind: TypeAlias = Literal["preset", "character-card", "user", "world-book"]
SCHEMA_VERSION = 2
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


class SessionSelectionLimitError(StoreError):
    """The selections don't fit their capacity; ``details`` has the limit and what was asked for."""

    code = "SESSION_SELECTION_LIMIT_REACHED"


@attrs.frozen
class SelectionLimits:
    """Capacity of the selections: sessions, and bytes of the document with its last newline."""

    max_sessions: int = SELECTION_SESSIONS_DEFAULT
    max_state_bytes: int = SELECTION_BYTES_DEFAULT


def selection_limits(max_sessions: Json = None, max_state_bytes: Json = None) -> SelectionLimits:
    """Limits from configuration: an unusable value gives the default, a larger one the hard limit."""
    return SelectionLimits(
        configured_limit(max_sessions, SELECTION_SESSIONS_DEFAULT, SELECTION_SESSIONS_HARD),
        configured_limit(max_state_bytes, SELECTION_BYTES_DEFAULT, SELECTION_BYTES_HARD),
    )


@attrs.frozen
class StoredSelection:
    """One session's selection and when it was written (ISO 8601, UTC, milliseconds)."""

    selection: Selection
    updated_at: str


@attrs.frozen
class SelectionState:
    """The selections of all sessions, in the order they were first written."""

    sessions: Mapping[str, StoredSelection] = attrs.field(factory=dict)
    revisions: Mapping[str, int] = attrs.field(factory=dict)
    """How often a session's selection text changed in this process; leases compare it."""

    def has(self, session: Json) -> bool:
        """Whether the session has a stored selection.

        Raises:
            FormatError: slug ``bad-session-id``.
        """
        return session_id(session) in self.sessions

    def get(self, session: Json, defaults: Selection) -> Selection:
        """The stored selection, else the defaults.

        Raises:
            FormatError: slug ``bad-session-id``.
        """
        found = session_id(session)
        stored = self.sessions.get(found) if found is not None else None
        return defaults if stored is None else stored.selection

    def revision(self, session: str) -> int:
        """The session's change counter, 0 before any change."""
        return self.revisions.get(session, 0)


@attrs.frozen
class OpenedSelections:
    """A read document; ``rewrite`` says that the file must be written again in canonical form."""

    state: SelectionState
    rewrite: bool = False


def read_selections(data: bytes | None, *, limits: SelectionLimits, now: str) -> OpenedSelections:
    """The state a stored document holds; ``data`` None is a missing file.

    Raises:
        SessionSelectionLimitError: the file is over 8 MiB, or holds too many sessions.
        FormatError: slug ``bad-json``; the document must then stay as it is.

    Source: spec/loader §2 "Read behaviour".
    """
    if data is None:
        return OpenedSelections(SelectionState())
    if len(data) > SELECTION_FILE_BYTES:
        raise SessionSelectionLimitError(
            f"the selections file has {len(data)} bytes, more than {SELECTION_FILE_BYTES}: remove sessions from it",
            code="SESSION_SELECTION_FILE_TOO_LARGE",
            details={"bytes": len(data), "maxBytes": SELECTION_FILE_BYTES},
        )
    document = parse_json(data.decode("utf-8", "replace"))
    sessions = document.get("sessions") if is_record(document) else None
    version = document.get("schemaVersion") if is_record(document) else None
    if not isinstance(sessions, dict) or isinstance(version, bool) or version not in (1, SCHEMA_VERSION):
        return OpenedSelections(SelectionState())
    kept = {key: _read_session(value, version, now) for key, value in sessions.items() if _is_session_id(key)}
    state = SelectionState(kept)
    _check_count(state, limits)
    rewrite = stringify(document) != stringify(document_json(state))
    return OpenedSelections(state, rewrite)


def _is_session_id(key: str) -> bool:
    try:
        return session_id(key) is not None
    except FormatError:
        return False


def _read_session(value: Json, version: int, now: str) -> StoredSelection:
    if version == 1:
        return StoredSelection(normalize_selection(value), now)
    record = value if is_record(value) else {}
    updated = record.get("updatedAt")
    canonical = updated if isinstance(updated, str) and _is_timestamp(updated) else now
    return StoredSelection(normalize_selection(record.get("selection")), canonical)


def _is_timestamp(text: str) -> bool:
    if not _TIMESTAMP.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def document_json(state: SelectionState) -> Json:
    """The document of a state, schema 2."""
    sessions = {
        key: {"selection": selection_json(stored.selection), "updatedAt": stored.updated_at}
        for key, stored in state.sessions.items()
    }
    return {"schemaVersion": SCHEMA_VERSION, "sessions": sessions}


def document_text(state: SelectionState) -> str:
    """The document as it's written: two-space indent, one newline at the end."""
    return stringify(document_json(state), indent=2) + "\n"


def set_selection(
    state: SelectionState, session: Json, patch: Json, *, defaults: Selection, limits: SelectionLimits, now: str
) -> SelectionState:
    """Merge a patch over the session's selection; ``character`` and ``rp`` are replaced whole.

    Raises:
        FormatError: slug ``bad-session-id`` or ``empty-session-id``.
        SessionSelectionLimitError: the new state has no room.
    """
    return set_selections(state, [session], patch, defaults=defaults, limits=limits, now=now)


def set_selections(
    state: SelectionState, sessions: Json, patch: Json, *, defaults: Selection, limits: SelectionLimits, now: str
) -> SelectionState:
    """Merge a patch over several sessions' selections, all or none.

    Raises:
        FormatError: slug ``not-array``, ``bad-session-id`` or ``empty-session-id``.
        SessionSelectionLimitError: the new state has no room.
    """
    if not isinstance(sessions, list):
        raise FormatError("not-array", "the sessions to change must be a list of session ids")
    written = {}
    for item in sessions:
        found = required_session_id(item)
        base = selection_json(state.get(found, defaults))
        written[found] = normalize_selection(base | (patch if is_record(patch) else {}))
    return _store(state, written, limits, now)


def ensure_selection(
    state: SelectionState,
    session: Json,
    parent: Json = None,
    *,
    defaults: Selection,
    limits: SelectionLimits,
    now: str,
) -> SelectionState:
    """Freeze a starting session's selection: kept when stored, else the parent's, else the defaults.

    Raises:
        FormatError: slug ``bad-session-id`` or ``empty-session-id``, for the session or its parent.
        SessionSelectionLimitError: the new state has no room.

    Source: spec/loader §3.
    """
    found = required_session_id(session)
    inherited = state.get(parent, defaults)
    if state.has(found):
        return state
    return _store(state, {found: inherited}, limits, now)


def clear_resource(state: SelectionState, kind: str, resource: str, *, now: str) -> tuple[SelectionState, bool]:
    """Take a deleted resource out of every selection; whether anything changed."""
    changed = {
        key: cleared
        for key, stored in state.sessions.items()
        if (cleared := _without(stored.selection, kind, resource)) != stored.selection
    }
    if not changed:
        return state, False
    return _replaced(state, changed, now), True


def _without(selection: Selection, kind: str, resource: str) -> Selection:
    if kind == "preset" and selection.preset_id == resource:
        return attrs.evolve(selection, preset_id=None)
    if kind == "character-card" and selection.character_card_id == resource:
        return attrs.evolve(selection, character_card_id=None, character=CharacterOptions())
    if kind == "user" and selection.user_id == resource:
        return attrs.evolve(selection, user_id=None)
    if kind == "world-book" and resource in selection.world_book_ids:
        kept = tuple(book for book in selection.world_book_ids if book != resource)
        return attrs.evolve(selection, world_book_ids=kept)
    return selection


def delete_selection(state: SelectionState, session: Json) -> tuple[SelectionState, bool]:
    """Forget a session's selection; whether there was one.

    Raises:
        FormatError: slug ``bad-session-id`` or ``empty-session-id``.
    """
    found = required_session_id(session)
    if found not in state.sessions:
        return state, False
    sessions = {key: stored for key, stored in state.sessions.items() if key != found}
    revisions = {**state.revisions, found: state.revision(found) + 1}
    return SelectionState(sessions, revisions), True


def _store(
    state: SelectionState, written: Mapping[str, Selection], limits: SelectionLimits, now: str
) -> SelectionState:
    after = _replaced(state, written, now)
    _check_count(after, limits)
    check_bytes(after, limits)
    return after


def _replaced(state: SelectionState, written: Mapping[str, Selection], now: str) -> SelectionState:
    changed = [key for key, value in written.items() if _selection_of(state, key) != value]
    sessions = {**state.sessions, **{key: StoredSelection(value, now) for key, value in written.items()}}
    return SelectionState(sessions, {**state.revisions, **{key: state.revision(key) + 1 for key in changed}})


def _selection_of(state: SelectionState, key: str) -> Selection | None:
    stored = state.sessions.get(key)
    return stored.selection if stored is not None else None


def _check_count(state: SelectionState, limits: SelectionLimits) -> None:
    count = len(state.sessions)
    if count > limits.max_sessions:
        raise SessionSelectionLimitError(
            f"{count} sessions have selections, at most {limits.max_sessions} may: delete a session's selection first",
            details={"sessions": count, "maxSessions": limits.max_sessions},
        )


def check_bytes(state: SelectionState, limits: SelectionLimits) -> None:
    """Refuse a state whose document is too large.

    Raises:
        SessionSelectionLimitError: code ``SESSION_SELECTION_STORAGE_LIMIT_REACHED``.
    """
    size = len(utf8(document_text(state)))
    if size > limits.max_state_bytes:
        raise SessionSelectionLimitError(
            f"the selections need {size} bytes, at most {limits.max_state_bytes} are allowed: "
            "delete a session's selection first",
            code="SESSION_SELECTION_STORAGE_LIMIT_REACHED",
            details={"bytes": size, "maxBytes": limits.max_state_bytes},
        )
