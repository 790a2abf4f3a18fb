"""Durable selections as rows of ``documents``: one for each session, read and written alone.

The rules of a single selection are the policy's; here stand only those of the table, so that a write costs the same
with ten sessions as with ten thousand.

Source: spec/loader §2, §3; design §4 rule 14.
"""

from collections.abc import Mapping
from typing import Final, final

import attrs

from tapster.engine.ecma import Json, is_record
from tapster.engine.policy import Selection, SelectionLimits, normalize_selection, selection_json
from tapster.engine.policy.selection import required_session_id
from tapster.engine.policy.selection_state import SelectionState, SessionSelectionLimitError, StoredSelection
from tapster.engine.policy.selection_state import clear_resource as clear_in_state

from .codec import iso_ms
from .interface import Tables
from .values import ANY_BASE, Document, DocumentKey, SessionKey

COLLECTION: Final = "selections"


@final
@attrs.frozen
class SelectionTable:
    """The selections of one transaction."""

    tables: Tables
    limits: SelectionLimits | None = None

    def find(self, key: SessionKey) -> Selection | None:
        """The stored selection, None when the session has none."""
        found = self.tables.documents.get(_place(key))
        return None if found is None else _selection(found)

    def put(self, key: SessionKey, selection: Selection, now: int) -> bool:
        """Write one; whether it differs from what was there.

        Raises:
            FormatError: slug ``bad-session-id`` or ``empty-session-id``.
            SessionSelectionLimitError: there is no room for another; nothing was written.
        """
        required_session_id(key.session)
        present = self.find(key)
        value = {"selection": selection_json(selection), "updatedAt": iso_ms(now)}
        self.tables.documents.put(_place(key), value, base=ANY_BASE, now=now)
        self._check()
        return present != selection

    def merge(
        self, key: SessionKey, patch: Mapping[str, Json], defaults: Selection, now: int
    ) -> tuple[Selection, bool]:
        """Write a patch over the selection or the defaults: the result, and whether it changed.

        Raises:
            FormatError, SessionSelectionLimitError: as ``put``.
        """
        base = selection_json(self.find(key) or defaults)
        selection = normalize_selection({**base, **patch})
        return selection, self.put(key, selection, now)

    def ensure(
        self, key: SessionKey, parent: SessionKey | None, defaults: Selection, now: int
    ) -> tuple[Selection, bool]:
        """Freeze a starting session's selection: its own, else its parent's, else the defaults; whether it's new.

        Raises:
            FormatError, SessionSelectionLimitError: as ``put``.
        """
        stored = self.find(key)
        if stored is not None:
            return stored, False
        if parent is not None:
            required_session_id(parent.session)
        inherited = self.find(parent) if parent is not None else None
        selection = inherited or defaults
        self.put(key, selection, now)
        return selection, True

    def all(self) -> tuple[tuple[SessionKey, Selection], ...]:
        """Every stored selection, of all hosts."""
        return tuple(
            (SessionKey(document.key.scope, document.key.name), _selection(document))
            for document in self.tables.documents.items(COLLECTION, None)
        )

    def clear(self, kind: str, resource_id: str, now: int) -> tuple[SessionKey, ...]:
        """Take a deleted resource out of every selection; the sessions that changed."""
        changed = []
        for key, selection in self.all():
            before = SelectionState({key.session: StoredSelection(selection, "")})
            after, has_changed = clear_in_state(before, kind, resource_id, now=iso_ms(now))
            if has_changed:
                self.put(key, after.sessions[key.session].selection, now)
                changed.append(key)
        return tuple(changed)

    def delete(self, key: SessionKey) -> bool:
        """Forget one; whether there was one."""
        return self.tables.documents.delete(_place(key))

    def _check(self) -> None:
        if self.limits is None:
            return
        count, size = self.tables.documents.count(COLLECTION)
        if count > self.limits.max_sessions:
            raise SessionSelectionLimitError(
                f"{count} sessions have selections, at most {self.limits.max_sessions} may: delete one first",
                details={"sessions": count, "maxSessions": self.limits.max_sessions},
            )
        if size > self.limits.max_state_bytes:
            raise SessionSelectionLimitError(
                f"the selections need {size} bytes, at most {self.limits.max_state_bytes} are allowed",
                code="SESSION_SELECTION_STORAGE_LIMIT_REACHED",
                details={"bytes": size, "maxBytes": self.limits.max_state_bytes},
            )


def _place(key: SessionKey) -> DocumentKey:
    return DocumentKey(COLLECTION, key.session, key.host)


def _selection(document: Document) -> Selection:
    value = document.value
    return normalize_selection(value.get("selection") if is_record(value) else None)
