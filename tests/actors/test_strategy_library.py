"""The strategies: durable, applied as copies, inherited once, offered and withdrawn by plug-ins."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from tapster.actors.library.counters import Counters
from tapster.actors.store import HOME_HOST, SessionKey, StoreConfig, open_store
from tapster.actors.strategies import Strategies, open_strategies
from tapster.engine.assembly import AssemblyRefused, InvalidAssembly, read_store
from tests.support.assembly import HEAD
from tests.support.hosts import CountingIds, TrioClock

S1, S2 = SessionKey(HOME_HOST, "s1"), SessionKey(HOME_HOST, "s2")
ELSEWHERE = SessionKey("other", "s1")
RULES = [{"id": "history", "kind": "history"}, {"id": "input", "kind": "input"}]
OWN: dict[str, Any] = {**HEAD, "backend": "native", "rules": RULES}
POLICY = {
    "version": 1,
    "enabled": True,
    "sources": [{"kind": "tool", "include": False}],
    "contentTypes": {"text": True, "image": True, "reasoning": False},
    "fragments": [],
}
Kind = Literal["sqlite", "files"]


@asynccontextmanager
async def opened(folder: Path, engine: Kind = "sqlite", counters: Counters | None = None) -> AsyncIterator[Strategies]:
    config = StoreConfig(folder, engine=engine)
    async with (
        open_store(config, clock=TrioClock()) as store,
        open_strategies(store, CountingIds(), counters or Counters()) as strategies,
    ):
        yield strategies


@pytest.mark.parametrize("engine", ["sqlite", "files"])
async def test_what_is_saved_and_applied_outlives_a_restart(tmp_path: Path, engine: Kind) -> None:
    async with opened(tmp_path, engine) as strategies:
        saved = await strategies.save(OWN)
        await strategies.apply(S1, saved.id)
        await strategies.apply(S2, None)
        await strategies.apply(ELSEWHERE, "builtin-st")
        await strategies.save({**OWN, "name": "Renamed"}, saved.id)
    async with opened(tmp_path, engine) as strategies:
        applied = strategies.selection(S1)
        assert applied is not None
        assert (applied.id, applied.name) == (saved.id, "Test")
        assert strategies.get(saved.id).preset.name == "Renamed"
        assert strategies.has_selection(S2)
        assert strategies.selection(S2) is None
        assert not strategies.has_selection(SessionKey(HOME_HOST, "s3"))
        elsewhere = strategies.selection(ELSEWHERE)
        assert elsewhere is not None
        assert elsewhere.backend == "core"


async def test_the_files_engine_keeps_the_contracts_file(tmp_path: Path) -> None:
    async with opened(tmp_path, "files") as strategies:
        saved = await strategies.save(OWN)
        await strategies.apply(S1, saved.id)
        await strategies.apply(S2, None)
    document = json.loads((tmp_path / "assembly-presets.json").read_text())
    assert document["version"] == 1
    assert list(document["presets"]) == [saved.id]
    assert document["selections"]["s1"]["id"] == saved.id
    assert document["selections"]["s2"] is None


async def test_a_fork_inherits_once_and_what_it_decided_stays(tmp_path: Path) -> None:
    async with opened(tmp_path) as strategies:
        await strategies.apply(S1, "builtin-native")
        await strategies.inherit(S1, S2)
        copied = strategies.selection(S2)
        assert copied is not None
        assert copied.id == "builtin-native"
        await strategies.apply(S1, "builtin-st")
        await strategies.inherit(S1, S2)
        assert strategies.selection(S2) == copied
        orphan, child = SessionKey(HOME_HOST, "o"), SessionKey(HOME_HOST, "c")
        await strategies.inherit(orphan, child)
        assert strategies.has_selection(child)
        assert strategies.selection(child) is None


async def test_refusals_change_nothing(tmp_path: Path) -> None:
    async with opened(tmp_path) as strategies:
        saved = await strategies.save(OWN)
        await strategies.apply(ELSEWHERE, saved.id)
        before = [listed.to_json() for listed in strategies.catalogue()]
        with pytest.raises(AssemblyRefused, match="applied"):
            await strategies.remove(saved.id)
        with pytest.raises(InvalidAssembly):
            await strategies.remove("builtin-native")
        with pytest.raises(InvalidAssembly):
            await strategies.save({**OWN, "name": " "})
        with pytest.raises(AssemblyRefused):
            await strategies.apply(S1, "nobody")
        assert [listed.to_json() for listed in strategies.catalogue()] == before
        assert not strategies.has_selection(S1)
        await strategies.apply(ELSEWHERE, None)
        await strategies.remove(saved.id)
        with pytest.raises(AssemblyRefused):
            strategies.get(saved.id)


async def test_a_catalogue_goes_with_its_plugin_and_applied_copies_stay(tmp_path: Path) -> None:
    counters = Counters()
    counters.look(S1)
    async with opened(tmp_path, counters=counters) as strategies:
        with strategies.offered("example.plugin", [{**OWN, "id": "example-1"}]):
            assert strategies.get("example-1").plugin_id == "example.plugin"
            await strategies.apply(S1, "example-1")
        with pytest.raises(AssemblyRefused):
            strategies.get("example-1")
        applied = strategies.selection(S1)
        assert applied is not None
        assert applied.id == "example-1"
        assert counters.selection(S1) == 1


async def test_a_policy_is_kept_with_the_snapshot_or_for_the_session(tmp_path: Path) -> None:
    async with opened(tmp_path) as strategies:
        present = strategies.policy(S1)
        assert present.revision == 0
        await strategies.save_policy(S1, POLICY, 0, "standard")
        await strategies.apply_snapshot(S2, {**OWN, "id": "p", "historyPolicy": POLICY})
        carried = strategies.policy(S2)
        await strategies.save_policy(S2, {**POLICY, "enabled": False}, carried.revision, "standard")
        with pytest.raises(AssemblyRefused):
            await strategies.save_policy(S1, POLICY, 0, "standard")
    async with opened(tmp_path) as strategies:
        assert strategies.policy(S1).revision == 1
        assert strategies.policy(S1).policy.enabled
        assert not strategies.policy(S2).policy.enabled


async def test_an_older_store_only_adds_what_is_missing(tmp_path: Path) -> None:
    async with opened(tmp_path) as strategies:
        await strategies.apply(S1, None)
        old = {"version": 1, "presets": {"p1": OWN}, "selections": {"s1": {"id": "p1", **OWN}, "play:s9": None}}
        assert await strategies.migrate(read_store(old))
        assert not await strategies.migrate(read_store(old))
        assert strategies.selection(S1) is None
        assert strategies.get("p1").preset.name == "Test"
