"""Resources as the contract's documents, one file each; their imported bytes and kept revisions beside them."""

import stat
from pathlib import Path
from typing import final
from urllib.parse import unquote

from tapster.actors.store.codec import encode_pretty, epoch_ms, sha256
from tapster.actors.store.errors import ReadFailed
from tapster.actors.store.values import ResourceHead, ResourceKind, ResourceUse, StoredResource
from tapster.engine.ecma import Json, is_record

from .layout import FOLDERS, Layout
from .staging import Staging


@final
class FileResources:
    """The ``Resources`` of a data folder."""

    def __init__(self, staging: Staging, layout: Layout) -> None:
        self._staging = staging
        self._layout = layout

    def get(self, kind: ResourceKind, resource_id: str) -> StoredResource | None:
        path = self._layout.resource(kind, resource_id)
        data = self._staging.read(path)
        if data is None:
            return None
        document = self._staging.load(path)
        return StoredResource(self._head(kind, resource_id, path, data, document), document)

    def head(self, kind: ResourceKind, resource_id: str) -> ResourceHead | None:
        found = self.get(kind, resource_id)
        return None if found is None else found.head

    def heads(self, kind: ResourceKind) -> tuple[ResourceHead, ...]:
        heads = []
        for path in sorted((self._layout.root / FOLDERS[kind]).glob("*.json")):
            try:
                if stat.S_ISREG(path.lstat().st_mode):
                    head = self.head(kind, unquote(path.stem))
                    heads += [] if head is None else [head]
            except (ReadFailed, OSError):
                continue  # a list leaves out what can't be read (spec/resources §1)
        return tuple(heads)

    def revision(self, kind: ResourceKind, resource_id: str, revision: str) -> Json | None:
        present = self.get(kind, resource_id)
        if present is not None and present.head.revision == revision:
            return present.document
        return self._staging.load(self._layout.revision(kind, resource_id, revision))

    def put(
        self,
        kind: ResourceKind,
        resource_id: str,
        document: Json,
        *,
        now: int,
        original: bytes | None = None,
        cover: bytes | None = None,
    ) -> ResourceHead:
        path = self._layout.resource(kind, resource_id)
        if cover is not None:
            self._staging.put(self._layout.cover(kind, resource_id), cover)
        if original is not None:
            self._staging.put(self._layout.original(kind, resource_id), original)
        data = encode_pretty(document)
        self._staging.put(path, data)
        return self._head(kind, resource_id, path, data, document, now)

    def delete(self, kind: ResourceKind, resource_id: str) -> bool:
        found = self._staging.exists(self._layout.resource(kind, resource_id))
        for path in (
            self._layout.resource(kind, resource_id),
            self._layout.cover(kind, resource_id),
            self._layout.original(kind, resource_id),
        ):
            if self._staging.exists(path):
                self._staging.put(path, None)
        return found

    def original(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        return self._staging.read(self._layout.original(kind, resource_id))

    def cover(self, kind: ResourceKind, resource_id: str) -> bytes | None:
        return self._staging.read(self._layout.cover(kind, resource_id))

    def drop_cover(self, kind: ResourceKind, resource_id: str) -> None:
        path = self._layout.cover(kind, resource_id)
        if self._staging.exists(path):
            self._staging.put(path, None)

    def keep(self, use: ResourceUse) -> bool:
        """Copy a present revision aside for a trace; whether it exists."""
        path = self._layout.revision(use.kind, use.id, use.revision)
        if self._staging.exists(path):
            return True
        present = self.get(use.kind, use.id)
        if present is None or present.head.revision != use.revision:
            return False
        self._staging.store(path, present.document)
        return True

    def release(self, use: ResourceUse) -> None:
        """Let a revision go that no trace names any more."""
        path = self._layout.revision(use.kind, use.id, use.revision)
        if self._staging.exists(path):
            self._staging.put(path, None)

    def _head(
        self, kind: ResourceKind, resource_id: str, path: Path, data: bytes, document: Json, now: int | None = None
    ) -> ResourceHead:
        record = document if is_record(document) else {}
        signature = self._staging.disk.signature(path)
        written = now if now is not None else signature[0] // 1_000_000 if signature else 0
        original = self._staging.read(self._layout.original(kind, resource_id))
        name = record.get("name")
        return ResourceHead(
            kind,
            resource_id,
            name if isinstance(name, str) else "",
            sha256(data),
            len(data),
            epoch_ms(record.get("createdAt"), written),
            epoch_ms(record.get("updatedAt"), written),
            None if original is None else sha256(original),
            self._staging.exists(self._layout.cover(kind, resource_id)),
        )
