"""Documents in the contract's files: a file each, or members of a shared one."""

from collections.abc import Iterator
from pathlib import Path
from typing import final

from tapster.actors.store.checks import conflict
from tapster.actors.store.codec import copy, encode, encode_pretty, epoch_ms, sha256
from tapster.actors.store.errors import ReadFailed, anew
from tapster.actors.store.values import AnyBase, Base, Document, DocumentKey
from tapster.engine.ecma import Json, is_record, stringify, utf8

from .disk import Signature
from .layout import COMPACT_NAMES, SELECTIONS, Layout, Member
from .staging import Staging


@final
class FileDocuments:
    """The ``Documents`` of a data folder."""

    def __init__(self, staging: Staging, layout: Layout) -> None:
        self._staging = staging
        self._layout = layout
        self._revisions: dict[Path, tuple[Signature, str]] = {}
        self.broken: dict[Path, ReadFailed] = {}
        """Shared files that can't be used, with the error that whoever needs them gets."""

    def get(self, key: DocumentKey) -> Document | None:
        place = self._layout.document(key)
        if isinstance(place, Member):
            members = self._members(place)
            return _member_document(key, members[key.name]) if key.name in members else None
        data = self._read(key, place)
        if data is None:
            return None
        value = self._staging.load(place)
        self._note_revision(place, sha256(data))
        signature = self._staging.disk.signature(place)
        return Document(key, value, sha256(data), signature[0] // 1_000_000 if signature else 0)

    def put(self, key: DocumentKey, value: Json, *, base: Base, now: int) -> Document:
        place = self._layout.document(key)
        if not isinstance(base, AnyBase):
            self._check(key, place, base)
        if isinstance(place, Member):
            # A copy each way: the parsed file is shared, and callers may change what they gave or got.
            self._store_members(place, {**self._members(place), key.name: copy(value)})
            return Document(key, value, sha256(encode(value)), now)
        is_compact = place.parent == self._layout.root and key.name in COMPACT_NAMES
        data = utf8(stringify(value)) if is_compact else encode_pretty(value)
        self._staging.put(place, data)
        return Document(key, value, sha256(data), now)

    def delete(self, key: DocumentKey) -> bool:
        place = self._layout.document(key)
        if isinstance(place, Member):
            members = self._members(place)
            if key.name not in members:
                return False
            self._store_members(place, {name: item for name, item in members.items() if name != key.name})
            return True
        found = self._staging.exists(place)
        if found:
            self._staging.put(place, None)
        return found

    def items(self, collection: str, scope: str | None = "") -> Iterator[Document]:
        if self._layout.shared_files(collection) is not None:
            yield from self._shared_items(collection, scope)
            return
        for place in self._layout.documents(collection):
            if scope in (None, place.scope):
                try:
                    found = self.get(place)
                except ReadFailed:
                    continue  # a list leaves out what can't be read (spec/resources §1)
                if found is not None:
                    yield found

    def collections(self) -> tuple[str, ...]:
        return tuple(name for name in self._layout.collections() if next(self.items(name, None), None) is not None)

    def count(self, collection: str) -> tuple[int, int]:
        documents = list(self.items(collection, None))
        return len(documents), sum(len(encode(document.value)) for document in documents)

    def _shared_items(self, collection: str, scope: str | None) -> Iterator[Document]:
        home = self._layout.home_host
        for host, _ in self._layout.host_folders():
            if scope is not None and (scope or home) != host:
                continue
            # Only selections name the home host; everything else of it belongs to all hosts.
            unnamed = "" if host == home and collection != SELECTIONS else host
            key_scope = unnamed if scope is None else scope
            place = self._layout.document(DocumentKey(collection, "", host))
            assert isinstance(place, Member), "a collection with a shared file"
            for name, value in self._members(place).items():
                yield _member_document(DocumentKey(collection, name, key_scope), value)

    def _members(self, place: Member) -> dict[str, Json]:
        if place.path in self.broken:
            raise anew(self.broken[place.path])
        document = self._staging.load(place.path, keep=True)
        members = document.get(place.section) if isinstance(document, dict) else None
        return members if isinstance(members, dict) else {}

    def _store_members(self, place: Member, members: dict[str, Json]) -> None:
        document = self._staging.load(place.path, keep=True)
        kept = document if isinstance(document, dict) else {}
        self._staging.store(place.path, {**place.empty, **kept, place.section: members})

    def _check(self, key: DocumentKey, place: Path | Member, base: str | None) -> None:
        if isinstance(place, Member):
            members = self._members(place)
            present = sha256(encode(members[key.name])) if key.name in members else None
        else:
            present = self._present_revision(key, place, base)
        if present != base:
            raise conflict(key, base, present)

    def _present_revision(self, key: DocumentKey, path: Path, base: str | None) -> str | None:
        """The revision on disk, without reading the file when that isn't needed to compare."""
        if not self._staging.exists(path):
            return None
        known = self._revisions.get(path)
        if known is not None and known[0] == self._staging.disk.signature(path):
            return known[1]
        if base is None:
            return "another"
        data = self._read(key, path)
        return None if data is None else sha256(data)

    def _read(self, key: DocumentKey, path: Path) -> bytes | None:
        try:
            return self._staging.read(path)
        except ReadFailed as error:
            raise ReadFailed(
                f"the stored document {key} can't be read: {error.message}", details=error.details
            ) from error

    def _note_revision(self, path: Path, revision: str) -> None:
        signature = self._staging.disk.signature(path)
        if signature is not None:
            self._revisions[path] = signature, revision


def _member_document(key: DocumentKey, value: Json) -> Document:
    updated = value.get("updatedAt") if is_record(value) else None
    return Document(key, copy(value), sha256(encode(value)), epoch_ms(updated))
