"""The library over a real store: import, edit, delete with everything that goes, and the published revisions."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.actors.library import Library, ResourceExists, ResourceNotFound, TooLarge, open_library
from tapster.actors.store import SessionKey, Store, StoreConfig, open_store
from tapster.engine.errors import FormatError, RequestError, TapsterError
from tapster.engine.formats.png import strip
from tapster.engine.policy import RpState, Selection
from tests.support.hosts import CountingIds, TrioClock
from tests.support.pngs import card_chunk, png_with

S1 = SessionKey("embedded", "s1")
S2 = SessionKey("embedded", "s2")
PRESET = json.dumps(
    {"name": "灯", "prompts": [{"identifier": "main", "content": "Hi", "x": "\ud800"}], "odd": {"9": 1}}
)
BOOK = json.dumps({"entries": {"0": {"uid": 0, "key": ["lamp"], "content": "A lamp."}}, "name": "Harbour"}).encode()
CARD = {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": "Iris", "alternate_greetings": ["Hello."]}}
ENGINES = ("sqlite", "files", "memory")


@asynccontextmanager
async def opened(folder: Path, engine: Any = "sqlite") -> AsyncIterator[tuple[Library, Store]]:
    clock = TrioClock()
    async with (
        open_store(StoreConfig(folder, engine), clock=clock) as store,
        open_library(store, clock=clock, ids=CountingIds()) as library,
    ):
        yield library, store


async def fill(library: Library) -> dict[str, str]:
    """One of each, bound to s1 and related."""
    preset = (await library.presets.import_text(PRESET))["id"]
    card = (await library.characters.import_file(json.dumps(CARD).encode()))["character"]["id"]
    user = (await library.users.create({"name": "林夏"}))["id"]
    book = (await library.world_books.import_file(BOOK, "潮汐.v2.json"))["id"]
    for owner, owner_id in (("user", user), ("preset", preset), ("character", card)):
        await library.relations.set_books(owner, owner_id, [book])  # type: ignore[arg-type]
    patch = {"presetId": preset, "characterCardId": card, "userId": user, "worldBookIds": [book]}
    await library.selections.select(S1, patch)
    return {"preset": preset, "character": card, "user": user, "world-book": book}


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_is_imported_comes_back_after_a_restart(tmp_path: Path, engine: str) -> None:
    async with opened(tmp_path, engine) as (library, store):
        ids = await fill(library)
        documents = {
            "preset": await library.presets.get(ids["preset"]),
            "character": await library.characters.get(ids["character"]),
            "world-book": await library.world_books.get(ids["world-book"]),
        }
        assert documents["preset"]["source"]["raw"] == json.loads(PRESET)
        assert (await store.original("world-book", ids["world-book"])) == BOOK
        assert documents["world-book"]["name"] == "Harbour"
    if engine == "memory":
        return
    async with opened(tmp_path, engine) as (library, _):
        assert await library.presets.get(ids["preset"]) == documents["preset"]
        assert await library.characters.get(ids["character"]) == documents["character"]
        assert [item["entryCount"] for item in await library.world_books.list()] == [1]
        assert (await library.selections.get(S1)).user_id == ids["user"]
        assert await library.relations.books("user", ids["user"]) == (ids["world-book"],)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("kind", "left", "relations"),
    [
        ("preset", {"preset_id": None}, ("user", "character")),
        ("character", {"character_card_id": None}, ("user", "preset")),
        ("user", {"user_id": None}, ("preset", "character")),
        ("world-book", {"world_book_ids": ()}, ()),
    ],
)
async def test_deleting_clears_every_use(
    tmp_path: Path, engine: str, kind: str, left: dict[str, Any], relations: tuple[str, ...]
) -> None:
    async with opened(tmp_path, engine) as (library, _):
        ids = await fill(library)
        await library.presets.set_default(ids["preset"])
        library.counters.look(S1)
        before = library.counters.selection(S1)
        parts: dict[str, Any] = {
            "preset": library.presets,
            "character": library.characters,
            "user": library.users,
            "world-book": library.world_books,
        }
        part = parts[kind]
        await part.delete(ids[kind])
        selection = await library.selections.get(S1)
        assert {name: getattr(selection, name) for name in left} == left
        assert library.counters.selection(S1) == before + 1
        with pytest.raises(ResourceNotFound):
            await part.delete(ids[kind])
        for owner in {"user", "preset", "character"} - {kind}:
            books = await library.relations.books(owner, ids[owner])  # type: ignore[arg-type]
            assert bool(books) is (owner in relations)
        assert await library.presets.default_id() == (None if kind == "preset" else ids["preset"])
        listed = await library.characters.list()
        assert [item["id"] for item in listed["missingCharacters"]] == ([ids[kind]] if kind == "character" else [])


async def test_errors_have_their_codes_and_change_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        ids = await fill(library)
        total = library.counters.total.value
        cases: list[tuple[Any, type[TapsterError], str]] = [
            (library.presets.get("none"), ResourceNotFound, "PRESET_NOT_FOUND"),
            (library.characters.get("none"), ResourceNotFound, "CHARACTER_NOT_FOUND"),
            (library.users.update("none", {}), ResourceNotFound, "USER_NOT_FOUND"),
            (library.world_books.export("none"), ResourceNotFound, "WORLD_BOOK_NOT_FOUND"),
            (library.users.create({"id": ids["user"], "name": "x"}), ResourceExists, "USER_ID_EXISTS"),
            (library.relations.set_books("preset", ids["preset"], ["x"]), ResourceNotFound, "WORLD_BOOK_NOT_FOUND"),
            (library.selections.select(S2, {"presetId": "x"}), ResourceNotFound, "PRESET_NOT_FOUND"),
            (library.selections.select(S1, {"character": {"greetingIndex": 2}}), RequestError, "INVALID_REQUEST"),
            (library.presets.import_text("{"), FormatError, "FORMAT_INVALID"),
            (library.characters.import_file(b"\xff"), FormatError, "FORMAT_INVALID"),
            (library.characters.import_file(b"x" * (32 * 2**20 + 1)), TooLarge, "ARTIFACT_TOO_LARGE"),
            (
                library.characters.set_book(ids["character"], {"entries": [], "pad": "x" * 2**22}),
                TooLarge,
                "CHARACTER_WORLD_BOOK_TOO_LARGE",
            ),
            (library.characters.set_order("custom", ["x"]), RequestError, "INVALID_REQUEST"),
            (library.characters.set_order("unknown"), RequestError, "INVALID_REQUEST"),
        ]
        for call, kind, code in cases:
            with pytest.raises(kind) as caught:
                await call
            assert caught.value.code == code
        assert library.counters.total.value == total
        assert not await library.selections.has(S2)


async def test_a_png_card_keeps_file_and_cover(tmp_path: Path) -> None:
    data = png_with(card_chunk(json.dumps(CARD)))
    async with opened(tmp_path) as (library, store):
        answer = await library.characters.import_file(data, "image/png", "iris.png")
        card_id = answer["character"]["id"]
        assert await library.characters.original(card_id) == data
        assert await store.cover("character", card_id) == strip(data)
        exported = await library.characters.export_png(card_id)
        again = await library.characters.import_file(exported.data)
        assert again["character"]["name"] == "Iris"
        blank = await library.characters.create("Nobody")
        assert (await library.characters.export_png(blank["id"])).name == "Nobody.png"


async def test_edits_of_one_resource_follow_each_other(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        user = (await library.users.create({"name": "a"}))["id"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(library.users.update, user, {"name": "b"})
            nursery.start_soon(library.users.update, user, {"description": "c"})
        assert await library.users.get(user) == {"id": user, "name": "b", "description": "c"}


async def test_a_deleted_card_comes_back_in_its_place(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        ids = await fill(library)
        await library.characters.delete(ids["character"])
        answer = await library.characters.import_file(json.dumps(CARD).encode())
        assert answer["recovery"]["match"] == "sha256"
        assert answer["recovery"]["restored"] is True
        assert (await library.characters.list())["missingCharacters"] == []
        await library.characters.delete(answer["character"]["id"])
        other = {**CARD, "data": {"name": " IRIS ", "tags": ["x"]}}
        assert (await library.characters.import_file(json.dumps(other).encode()))["recovery"]["match"] == "name"


async def test_cards_are_sorted_as_chosen(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        ids = {name: (await library.characters.create(name))["id"] for name in ("b10", "B9", "á", "A")}

        async def names() -> list[str]:
            return [item["name"] for item in (await library.characters.list())["characters"]]

        await library.characters.set_order("name")
        assert await names() == ["á", "A", "B9", "b10"] or await names() == ["A", "á", "B9", "b10"]
        await library.characters.set_order("custom", [ids["A"], ids["b10"], ids["á"], ids["B9"]])
        assert await names() == ["A", "b10", "á", "B9"]
        await library.characters.create("new")
        assert await names() == ["A", "b10", "á", "B9", "new"]
        await library.characters.set_order("updated")
        assert len(await names()) == 5


async def test_a_session_is_told_only_of_what_it_uses(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        ids = await fill(library)
        side = library.sessions
        taken = side.revisions(S1)
        bound = await side.bound(S1)
        assert side.revisions(S1) == taken
        assert [use.kind for use in bound.uses] == ["preset", "character", "user", "world-book"]
        assert bound.books.effective_ids == (ids["world-book"],)
        assert bound.resources.character is not None
        await library.presets.create("unrelated")
        assert side.revisions(S1).changed_since(taken) == ()
        await library.world_books.update(ids["world-book"], {"description": "new"})
        assert side.revisions(S1).changed_since(taken) == ("the library",)
        taken = side.revisions(S1)
        await library.settings.put("rp-policy", {"schemaVersion": 1, "section": "Be kind."})
        assert side.revisions(S1).changed_since(taken) == ("the library",)
        assert (await side.bound(S1)).policy_section == "Be kind."
        await library.selections.select(S1, {"userId": None})
        assert "the selection" in side.revisions(S1).changed_since(taken)
        await library.presets.delete(ids["preset"])
        await library.selections.put(S1, Selection(preset_id="gone"))
        assert [item.code for item in (await side.bound(S1)).resources.diagnostics] == ["PRESET_NOT_FOUND"]


async def test_sessions_inherit_and_then_go_their_own_way(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, store):
        ids = await fill(library)
        await library.selections.save_rp(S1, RpState(active=True))
        await store.create_session(S1, {"id": "s1"})
        await store.create_session(S2, {"id": "s2", "parentSession": "s1"})
        assert await library.sessions.ensure_selection(S2, S1) == await library.selections.get(S1)
        await library.selections.select(S2, {"userId": None})
        assert (await library.selections.get(S1)).user_id == ids["user"]
        assert [state.active for state in await library.sessions.ancestors_rp(S2)] == [True]
        assert await library.sessions.ancestors_rp(S1) == ()


async def test_templates_keep_selections_and_apply_whole_or_not(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        ids = await fill(library)
        made = await library.templates.create(" T1 ", "s1")
        assert (made["name"], made["selection"]["presetId"]) == ("T1", ids["preset"])
        listed = await library.templates.list()
        assert listed["selectedId"] == made["id"]
        assert listed["templates"][0]["contents"]["worldBooks"][0]["missing"] is False
        source = {"mode": "template", "templateId": made["id"]}
        applied = await library.templates.apply("t1", source)
        assert applied["selection"] == made["selection"]
        assert (await library.selections.get(SessionKey("embedded", "t1"))).user_id == ids["user"]
        await library.users.delete(ids["user"])
        preview = await library.templates.preview(source)
        assert (preview["available"], preview["diagnostics"][0]["code"]) == (
            False,
            "SESSION_CONFIGURATION_USER_MISSING",
        )
        with pytest.raises(RequestError) as caught:
            await library.templates.apply("t2", source)
        assert caught.value.code == "SESSION_CONFIGURATION_UNAVAILABLE"
        assert not await library.selections.has(SessionKey("embedded", "t2"))
        renamed = await library.templates.update(made["id"], {"name": "T2"})
        assert renamed["template"]["name"] == "T2"
        assert await library.templates.select(None) == {"selectedId": None, "template": None}
        await library.templates.delete(made["id"])
        assert (await library.templates.list())["templates"] == []


async def test_nothing_is_kept_of_sessions_that_nobody_compares_for(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        ids = await fill(library)
        idle = [SessionKey("embedded", f"idle-{number}") for number in range(20)]
        for key in (*idle, S2):
            await library.selections.select(key, {"userId": ids["user"]})
        assert {library.counters.selection(key) for key in idle} == {0}
        before = library.sessions.revisions(S2)
        await library.sessions.bound(S2)
        await library.users.update(ids["user"], {"name": "Ann"})
        await library.selections.select(S2, {"userId": None})
        changed = library.sessions.revisions(S2).changed_since(before)
        assert changed == ("the selection", "the library")
        library.sessions.forget(S2)
        await library.selections.select(S2, {"userId": ids["user"]})
        assert library.counters.selection(S2) == 0


async def test_cancelled_changes_are_published_or_never_happened(tmp_path: Path) -> None:
    async with opened(tmp_path) as (library, _):
        ids = await fill(library)
        library.counters.look(S1)
        for delay in range(12):
            before = library.counters.selection(S1), (await library.selections.get(S1)).user_id
            wanted = None if before[1] is not None else ids["user"]
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:

                    async def cancel_later(steps: int, scope: trio.CancelScope) -> None:
                        for _ in range(steps):
                            await trio.lowlevel.checkpoint()
                        scope.cancel()

                    nursery.start_soon(cancel_later, delay, scope)
                    await library.selections.select(S1, {"userId": wanted})
            after = library.counters.selection(S1), (await library.selections.get(S1)).user_id
            assert (after[0] - before[0]) == (after[1] != before[1])
