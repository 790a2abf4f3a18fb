"""The library's pages: lists, import, export, and simple edits through the library's own methods."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, final

import attrs
from quart import Response, request

from tapster.api.answers import Attachment, attachment_response
from tapster.api.backing import Backing
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError, TapsterError

from .forms import (
    CARD_TEXTS,
    Form,
    added_entry_patch,
    card_patch,
    described_patch,
    entries_patch,
    entry_changes,
    preset_patch,
)
from .shell import KINDS, PER_PAGE, Shell, go_to, is_part, page_number, segment, slug_of

BAD_FILE: Final = "file"


class NotHere(RequestError):
    """A kind of resource, or something done to it, that the page doesn't have."""

    code = "NOT_FOUND"
    status = 404


@final
@attrs.frozen
class LibraryPages:
    """Views over the library."""

    shell: Shell
    backing: Backing

    async def library(self) -> Response:
        """Everything the library holds."""
        return await self.shell.page("library.html", lists=await self.lists(), tab="library")

    async def import_files(self) -> Response:
        """Take files of any kind; each is taken whole or refused whole."""
        files = (await request.files).getlist("files")
        reports = [await self._import(file.filename or BAD_FILE, file.read()) for file in files if file.filename]
        template = "_imported.html" if is_part() else "library.html"
        return await self.shell.page(template, reports=reports, lists=await self.lists(), tab="library")

    async def _import(self, name: str, data: bytes) -> Json:
        try:
            return await self.backing.imports.import_file(name, data)
        except TapsterError as error:
            return {"fileName": name, "error": error.message, "code": error.code, "slug": slug_of(error)}

    async def create(self, kind: str) -> Response:
        """A new resource, open for editing."""
        form = await request.form
        name = form.get("name", "").strip()
        match _kind(kind):
            case "users":
                created = await self.backing.users.create({"name": name, "description": ""})
            case "characters":
                created = await self.backing.characters.create(name)
            case "presets":
                created = await self.backing.presets.create(name)
            case _:
                created = await self.backing.world_books.create(name)
        return go_to(f"/library/{kind}/{segment(created['id'])}")

    async def resource(self, kind: str, resource_id: str) -> Response:
        """A resource with what can be edited of it."""
        document = await self._part(kind).get(resource_id)
        return await self._resource(kind, document)

    async def save(self, kind: str, resource_id: str) -> Response:
        """Keep the edits of a resource's form."""
        form: Form = await request.form
        part = self._part(kind)
        match kind:
            case "characters":
                patch = card_patch(await part.get(resource_id), form)
            case "presets":
                patch = preset_patch(await part.get(resource_id), form)
            case _:
                patch = described_patch(form)
        await part.update(resource_id, patch)
        return await self._saved(f"/library/{kind}/{segment(resource_id)}")

    async def delete(self, kind: str, resource_id: str) -> Response:
        """Remove a resource and every use of it."""
        await self._part(kind).delete(resource_id)
        if is_part():
            return await self.shell.page("_library.html", lists=await self.lists(), notice="deleted")
        return go_to("/")

    async def export(self, kind: str, resource_id: str) -> Response:
        """A resource as a file; a persona has no file of its own."""
        match _kind(kind):
            case "presets":
                download = await self.backing.presets.export(resource_id)
            case "characters":
                download = await self.backing.characters.export_png(resource_id)
            case "world_books":
                download = await self.backing.world_books.export(resource_id)
            case _:
                raise NotHere("a persona can't be exported as a file of its own")
        return attachment_response(Attachment(download))

    async def add_entry(self, resource_id: str) -> Response:
        """An empty entry at a book's end."""
        document = await self.backing.world_books.get(resource_id)
        document = await self.backing.world_books.update(resource_id, added_entry_patch(document))
        last = len(document["book"]["entries"]) - 1
        return go_to(f"{_book_page(resource_id, last)}&open={last}#entry-{last}")

    async def save_entry(self, resource_id: str, position: int) -> Response:
        """Keep the edits of one entry."""
        form: Form = await request.form
        document = await self.backing.world_books.get(resource_id)
        entries = document["book"]["entries"]
        changes = entry_changes(entries[position], form) if position < len(entries) else {}
        await self.backing.world_books.update(
            resource_id, entries_patch(document, position, form.get("key", ""), changes)
        )
        return await self._saved(_book_page(resource_id, position))

    async def delete_entry(self, resource_id: str, position: int) -> Response:
        """Remove one entry."""
        document = await self.backing.world_books.get(resource_id)
        key = (await request.form).get("key", "")
        await self.backing.world_books.update(resource_id, entries_patch(document, position, key, None))
        return go_to(_book_page(resource_id, max(0, position - 1)))

    async def lists(self) -> Mapping[str, Sequence[Json]]:
        """Summaries of each kind."""
        backing = self.backing
        return {
            "characters": (await backing.characters.list())["characters"],
            "presets": await backing.presets.list(),
            "world_books": await backing.world_books.list(),
            "users": await backing.users.list(),
        }

    async def _resource(self, kind: str, document: Json) -> Response:
        entries: Sequence[Json] = document["book"]["entries"] if kind == "world_books" else ()
        number = min(page_number(), pages(entries))
        start = (number - 1) * PER_PAGE
        return await self.shell.page(
            "resource.html",
            kind=kind,
            item=document,
            card_texts=CARD_TEXTS,
            entries=list(enumerate(entries))[start : start + PER_PAGE],
            number=number,
            pages=pages(entries),
            tab="library",
        )

    async def _saved(self, path: str) -> Response:
        if is_part():
            return await self.shell.page("_notice.html", notice="saved")
        return go_to(path)

    def _part(self, kind: str) -> Any:
        return getattr(self.backing, _kind(kind))


def pages(items: Sequence[Json]) -> int:
    """How many pages a list has, at least one."""
    return max(1, -(-len(items) // PER_PAGE))


def _book_page(resource_id: str, position: int) -> str:
    return f"/library/world_books/{segment(resource_id)}?page={position // PER_PAGE + 1}"


def _kind(kind: str) -> str:
    if kind not in KINDS:
        raise NotHere(f"there is no kind {kind[:40]!r}; the kinds are {', '.join(KINDS)}")
    return kind
