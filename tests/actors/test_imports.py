"""Any file into the library: taken whole with its bytes, or refused whole."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

import pytest

from tapster.actors.library import Library, open_library
from tapster.actors.store import Store, StoreConfig, open_store
from tapster.engine.errors import FormatError, TapsterError
from tests.support.hosts import CountingIds, TrioClock

SAMPLE = files("tapster.api.sample")


@asynccontextmanager
async def open_both(directory: Path) -> AsyncIterator[tuple[Store, Library]]:
    config = StoreConfig(directory)
    async with (
        open_store(config, clock=TrioClock()) as store,
        open_library(store, clock=TrioClock(), ids=CountingIds()) as library,
    ):
        yield store, library


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("mira.card.png", "character"),
        ("evening.preset.json", "preset"),
        ("greywater.world.json", "world-book"),
        ("traveller.persona.json", "user"),
    ],
)
async def test_the_sample_library_comes_in(tmp_path: Path, name: str, kind: str) -> None:
    data = SAMPLE.joinpath(name).read_bytes()
    async with open_both(tmp_path) as (store, library):
        report = await library.imports.import_file(name, data)
        (resource,) = report.resources
        assert resource.kind == kind
        assert await store.original(resource.kind, resource.id) == (None if kind == "user" else data)
    async with open_both(tmp_path) as (store, library):
        assert await store.resource(resource.kind, resource.id) is not None


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("cut.png", SAMPLE.joinpath("mira.card.png").read_bytes()[:200]),
        ("empty.json", b""),
        ("list.json", b"[1, 2]"),
        ("deep.json", b"[" * 100_000),
        ("settings.json", json.dumps({"power_user": {}, "user_avatar": "x"}).encode()),
        ("photo.jpg", b"\xff\xd8\xff\xe0" + b"0" * 64),
        ("chat.jsonl", b'{"user_name":"a","chat_metadata":{}}\n{"name":"a","mes":"hi","is_user":true}\n'),
    ],
)
async def test_what_is_refused_leaves_no_trace(tmp_path: Path, name: str, data: bytes) -> None:
    async with open_both(tmp_path) as (store, library):
        with pytest.raises(TapsterError) as caught:
            await library.imports.import_file(name, data)
        assert isinstance(caught.value, FormatError)
        for kind in ("preset", "character", "user", "world-book"):
            assert await store.resource_heads(kind) == ()
