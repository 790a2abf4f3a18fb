"""Which file holds what: the contract's names where it has one, a folder of our own for the rest.

Source: spec/resources §1, spec/loader §2, §5, §13, §16, spec/assembler §10.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, final
from urllib.parse import quote, unquote

import attrs

from tapster.actors.store.errors import unstorable
from tapster.actors.store.values import DocumentKey, ResourceKind
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError

FOLDERS: Final[dict[ResourceKind, str]] = {
    "preset": "presets",
    "character": "characters",
    "user": "users",
    "world-book": "world-books",
}
MAX_NAME_BYTES: Final = 200
"""Leaves room for extensions and the marks of temporary files below the 255 bytes of common file systems."""
SETTINGS_NAMES: Final = ("ui-settings", "conversation-settings", "rp-policy", "chrome", "settings")
"""Settings documents: one that can't be read doesn't stop the start."""
COMPACT_NAMES: Final = frozenset({"prompt-template-ownership"})
"""Documents that the contract writes without indents (spec/resources §1)."""
NOT_DOCUMENTS: Final = frozenset(
    {
        "session-selections.json",
        "assembly-presets.json",
        "tavern-trace-records.json",
        "tavern-assemblies.json",
        "tavern-traces.json",
    }
)
"""Files beside the documents that hold something else."""
OWN_DOCUMENTS: Final = "tapster/documents"
SETTINGS: Final = "settings"
STATE: Final = "state"
CHATS: Final = "chats"
SELECTIONS: Final = "selections"
STRATEGIES_FILE: Final = "assembly-presets.json"
_SHARED: Final[dict[str, tuple[str, str]]] = {
    SELECTIONS: ("session-selections.json", "sessions"),
    "strategies": (STRATEGIES_FILE, "presets"),
    "strategy-selections": (STRATEGIES_FILE, "selections"),
}
_EMPTY: Final[dict[str, dict[str, Json]]] = {
    "session-selections.json": {"schemaVersion": 2, "sessions": {}},
    STRATEGIES_FILE: {"version": 1, "presets": {}, "selections": {}},
}
"""What a shared file holds before its first member; its readers want every section."""


@final
@attrs.frozen
class Member:
    """A document that is one member of a shared file; ``empty`` is the file without any."""

    path: Path
    section: str
    name: str
    empty: Mapping[str, Json]


@final
@attrs.frozen
class Layout:
    """The paths of one data folder.

    Attributes:
        home_host: the host whose sessions the contract's files hold.
        assembler: the folder of that host's ``assembly-presets.json``, when it isn't ``root``.
    """

    root: Path
    home_host: str
    assembler: Path | None = None

    def document(self, key: DocumentKey) -> Path | Member:
        """Where a document is."""
        if key.collection in _SHARED:
            file, section = _SHARED[key.collection]
            return Member(self._shared_file(key.scope or self.home_host, file), section, key.name, _EMPTY[file])
        file = f"{file_name(key.name)}.json"
        if not key.scope and key.collection == CHATS:
            return self.root / "chats" / file
        if not key.scope and key.collection == _root_collection(key.name):
            return self.root / file
        return self.root / OWN_DOCUMENTS / file_name(key.collection) / file_name(key.scope or "-") / file

    def shared_files(self, collection: str) -> tuple[str, str] | None:
        """File name and section of a collection that shares a file, None for one with a file for each document."""
        return _SHARED.get(collection)

    def collections(self) -> tuple[str, ...]:
        """Every collection that may have documents."""
        own = self.root / OWN_DOCUMENTS
        others = [unquote(path.name) for path in own.iterdir()] if own.is_dir() else []
        return tuple(sorted({*_SHARED, SETTINGS, STATE, CHATS, *others}))

    def documents(self, collection: str) -> Iterator[DocumentKey]:
        """The documents of a collection that has a file for each, of every host."""
        for name in _names_in(self.root):
            if collection == _root_collection(name):
                yield DocumentKey(collection, name)
        if collection == CHATS:
            for name in _names_in(self.root / "chats"):
                yield DocumentKey(collection, name)
        own = self.root / OWN_DOCUMENTS / file_name(collection)
        for folder in sorted(own.iterdir()) if own.is_dir() else ():
            for name in _names_in(folder):
                yield DocumentKey(collection, name, "" if folder.name == "-" else unquote(folder.name))

    def host_folder(self, host: str) -> Path:
        """The folder with the contract's files of a host."""
        return self.root if host == self.home_host else self.root / "hosts" / file_name(host)

    def _shared_file(self, host: str, file: str) -> Path:
        if file == STRATEGIES_FILE and host == self.home_host and self.assembler is not None:
            return self.assembler / file
        return self.host_folder(host) / file

    def host_folders(self) -> list[tuple[str, Path]]:
        """Every host that has files, with its folder."""
        others = sorted((self.root / "hosts").glob("*")) if (self.root / "hosts").is_dir() else []
        return [(self.home_host, self.root), *((unquote(folder.name), folder) for folder in others)]

    def resource(self, kind: ResourceKind, resource_id: str) -> Path:
        """The document of a resource."""
        return self.root / FOLDERS[kind] / f"{file_name(resource_id)}.json"

    def cover(self, kind: ResourceKind, resource_id: str) -> Path:
        """The cover image of a card."""
        folder = "character-artifacts" if kind == "character" else f"tapster/covers/{kind}"
        return self.root / folder / f"{file_name(resource_id)}.bin"

    def original(self, kind: ResourceKind, resource_id: str) -> Path:
        """The imported bytes of a resource."""
        return self.root / "tapster" / "originals" / kind / f"{file_name(resource_id)}.bin"

    def revision(self, kind: ResourceKind, resource_id: str, revision: str) -> Path:
        """An earlier document that a trace names."""
        return self.root / "tapster" / "revisions" / kind / file_name(resource_id) / f"{revision}.json"

    def session_log(self, host: str, session: str) -> Path:
        """The event log of a session."""
        return self.root / "tapster" / "sessions" / file_name(host) / f"{file_name(session)}.jsonl"


def _names_in(folder: Path) -> list[str]:
    return [unquote(path.stem) for path in sorted(folder.glob("*.json"))] if folder.is_dir() else []


def _root_collection(name: str) -> str | None:
    """The collection whose document of that name stands in the root of the folder, as the contract has it."""
    if name in SETTINGS_NAMES:
        return SETTINGS
    return None if f"{name}.json" in NOT_DOCUMENTS else STATE


def file_name(name: str) -> str:
    """A name as part of a path: everything but letters, digits and ``_.-~`` is escaped, so it can't leave its folder.

    Raises:
        RequestError: it's too long for a file, or has half a character.
    """
    try:
        quoted = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise unstorable(error) from error
    if len(quoted) > MAX_NAME_BYTES:
        raise RequestError(f"the name {name!r:.60} is too long for a file: {len(quoted)} of {MAX_NAME_BYTES} bytes")
    return f"%2E{quoted[1:]}" if quoted.startswith(".") else quoted
