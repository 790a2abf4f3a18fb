"""The contract's ``session-selections.json``: selections in memory, written through on each change.

Blocking: run it in the store's thread. Memory changes only after the file has been replaced.

Source: spec/loader §2.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

import attrs

from tapster.engine.ecma import Json, utf8
from tapster.engine.limits import SELECTION_FILE_BYTES
from tapster.engine.policy import (
    Selection,
    SelectionLimits,
    SelectionState,
    clear_resource,
    delete_selection,
    document_text,
    ensure_selection,
    read_selections,
    set_selections,
)

from .atomic import AtomicWriter, read_if_present

FILE_NAME: Final = "session-selections.json"


@attrs.frozen
class FilePorts:
    """What the file engine takes from outside: the writer, the clock, the global default preset."""

    writer: AtomicWriter
    now: Callable[[], str]
    default_preset: Callable[[], str | None]


@attrs.define(eq=False)
class SelectionFile:
    """The selections of one data folder."""

    path: Path
    limits: SelectionLimits
    ports: FilePorts
    _state: SelectionState = attrs.field(factory=SelectionState)

    @classmethod
    def open(cls, directory: Path, limits: SelectionLimits, ports: FilePorts) -> Self:
        """Read the folder's document; one in an older or untidy form is written again.

        Raises:
            SessionSelectionLimitError: too large, or too many sessions.
            FormatError: not JSON; the file stays as it is.
            OSError: it can't be read or written.
        """
        path = directory / FILE_NAME
        data = read_if_present(path, SELECTION_FILE_BYTES)
        opened = read_selections(data, limits=limits, now=ports.now())
        store = cls(path, limits, ports, opened.state)
        if opened.rewrite:
            store._replace(opened.state)
        return store

    @property
    def state(self) -> SelectionState:
        """The selections as they are on disk."""
        return self._state

    def defaults(self) -> Selection:
        """The selection of a session that has none."""
        return Selection(preset_id=self.ports.default_preset())

    def get(self, session: Json) -> Selection:
        """The session's selection, else the defaults. Raises ``FormatError`` for a bad id."""
        return self._state.get(session, self.defaults())

    def has(self, session: Json) -> bool:
        """Whether the session has a stored selection."""
        return self._state.has(session)

    def set(self, session: Json, patch: Json) -> Selection:
        """Merge a patch into one session's selection and store it."""
        self.set_many([session], patch)
        return self.get(session)

    def set_many(self, sessions: Json, patch: Json) -> dict[str, Selection]:
        """Merge a patch into several sessions' selections and store them, all or none."""
        after = set_selections(
            self._state, sessions, patch, defaults=self.defaults(), limits=self.limits, now=self.ports.now()
        )
        self._replace(after)
        return {session: self.get(session) for session in sessions}

    def ensure(self, session: Json, parent: Json = None) -> Selection:
        """Freeze the selection of a starting session."""
        after = ensure_selection(
            self._state, session, parent, defaults=self.defaults(), limits=self.limits, now=self.ports.now()
        )
        if after is not self._state:
            self._replace(after)
        return self.get(session)

    def clear(self, kind: str, resource: str) -> bool:
        """Take a deleted resource out of every selection; the file is written in any case."""
        after, changed = clear_resource(self._state, kind, resource, now=self.ports.now())
        self._replace(after)
        return changed

    def delete(self, session: Json) -> bool:
        """Forget a session's selection."""
        after, changed = delete_selection(self._state, session)
        if changed:
            self._replace(after)
        return changed

    def _replace(self, state: SelectionState) -> None:
        self.ports.writer.write(self.path, utf8(document_text(state)))
        self._state = state
