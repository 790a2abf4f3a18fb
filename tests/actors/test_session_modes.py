"""Sessions in mode ``sillytavern`` on the embedded host over a real store: over turns, forks and restarts."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tapster.actors.hosts.embedded import AgentHandle
from tapster.actors.providers import ScriptedProvider
from tapster.actors.session import Assemble, Assembled, Bound, Superseded
from tapster.actors.session.embedded import embedded_key
from tapster.actors.store import SessionKey, StoreConfig
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.engine.activation import ActivationSettings
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.formats.presets import Preset, parse_preset
from tapster.runtime import simulated_threads
from tests.support.tavern import PRESET, MemoryLibrary, open_tavern_rig

REGEX = {"scriptName": "calm", "findRegex": "/storm/g", "replaceString": "breeze", "placement": [5], "promptOnly": True}


def entry(uid: int, *keys: str, content: str = "", **members: Json) -> dict[str, Json]:
    """An entry of a world file as SillyTavern writes it."""
    usual = {"selective": True, "useProbability": True, "probability": 100, "order": 100, "position": 0, "comment": ""}
    return {**usual, "uid": uid, "key": list(keys), "content": content or f"Entry {uid}.", **members}


class StandingClock:
    """A wall clock that stands still."""

    def now_ms(self) -> int:
        return 1_700_000_000_000


@attrs.define(eq=False)
class Table:
    """A Tapster with one session ``s``, bound to one book."""

    tapster: Tapster
    handle: AgentHandle

    async def say(self, text: str) -> str:
        """One whole turn; the system text it was answered with."""
        await self.handle.followup(text)
        await self.handle.when_idle()
        agent = self.tapster.host.agent(self.handle.id)
        assert agent is not None
        return str(agent.derive_messages()[0]["content"][0]["text"])

    async def preview(self, draft: str | None = None) -> Assembled:
        return await self.tapster.preview(self.handle.id, draft)

    async def shows(self, draft: str) -> str:
        return (await self.preview(draft)).snapshot.system_text

    async def record(self) -> Json:
        """The newest record of the session."""
        records = await self.tapster.store.traces(embedded_key(self.handle.id))
        return records[-1]

    async def fork(self, name: str, at_seq: int) -> "Table":
        return Table(self.tapster, await self.handle.fork(name, at_seq=at_seq))

    def reasons(self, assembled: Assembled) -> dict[Any, str]:
        rows = assembled.snapshot.audit["worldBooks"]["resources"]
        return {item["entryId"]: item["reason"] for row in rows for item in row["decisions"]}


@asynccontextmanager
async def reopened(folder: Path) -> AsyncIterator[Tapster]:
    """A Tapster over a folder; its clock stands still, so that a preview has the seed of the request after it."""
    config = TapsterConfig(StoreConfig(folder))
    async with open_tapster(config, provider=ScriptedProvider(), clock=StandingClock()) as tapster:
        yield tapster


@asynccontextmanager
async def table(
    folder: Path, *entries: dict[str, Json], preset: Json = PRESET, **settings: Json
) -> AsyncIterator[Table]:
    """A session in mode ``sillytavern`` with these entries bound."""
    async with reopened(folder) as tapster:
        book = {"name": "Harbour", "entries": {str(item["uid"]): item for item in entries}}
        stored = await tapster.library.world_books.import_file(json.dumps(book).encode(), "harbour.json")
        kept = await tapster.library.presets.import_text(json.dumps(preset))
        handle = await tapster.create_session("s")
        await tapster.select("s", {"presetId": kept["id"], "worldBookIds": [stored["id"]]})
        if settings:
            await tapster.activation_settings("s", settings)
        yield Table(tapster, handle)


async def test_a_sticky_entry_holds_over_turns_and_is_undone_by_a_fork_before_it(tmp_path: Path) -> None:
    async with table(tmp_path, entry(1, "bell", content="The bell tolls.", sticky=6), scan={"depth": 1}) as at:
        assert "bell tolls" not in await at.say("Good evening")
        first = (await at.handle.flush()) - 1
        assert "bell tolls" in await at.say("I hear a bell")
        assert "bell tolls" in await at.say("Where is the ferry?")
        shown = await at.preview("And now?")
        assert at.reasons(shown) == {1: "sticky"}
        before = await at.fork("before", first)
        assert "bell tolls" not in await before.shows("Where is the ferry?")
        after = await at.fork("after", (await at.handle.flush()) - 1)
        assert at.reasons(await after.preview("And now?")) == {1: "sticky"}
        inner = await after.fork("inner", first)
        assert "bell tolls" not in await inner.shows("Where is the ferry?")


async def test_a_preview_leaves_no_effect_and_no_variable(tmp_path: Path) -> None:
    counting = entry(1, "bell", content="Toll {{incvar::tolls}}.", sticky=6)
    async with table(tmp_path, counting, scan={"depth": 1}) as at:
        for _ in range(3):
            assert "Toll 1." in await at.shows("I hear a bell")
        assert "Toll" not in await at.shows("Silence")
        assert "Toll 1." in await at.say("I hear a bell")
        assert "Toll 2." in await at.shows("the next")
        assert "Toll 2." in await at.say("the next")


async def test_state_is_back_after_a_restart(tmp_path: Path) -> None:
    counting = entry(1, "bell", content="Toll {{incvar::tolls}}.", sticky=9)
    async with table(tmp_path, counting, scan={"depth": 1}) as at:
        assert "Toll 1." in await at.say("I hear a bell")
    async with reopened(tmp_path) as tapster:
        asleep = await tapster.preview("s", "Silence")
        assert "Toll 2." in asleep.snapshot.system_text
        again = Table(tapster, await tapster.open_session("s"))
        assert "Toll 2." in await again.say("Silence")
        assert (await tapster.activation_settings("s")).scan.depth == 1


async def test_a_chance_and_a_group_fall_as_the_preview_showed(tmp_path: Path) -> None:
    entries = [entry(uid, "dice", content=f"Rolled {uid}.", probability=50) for uid in range(8)]
    entries += [entry(uid, "dice", content=f"Group {uid}.", group="winds") for uid in range(20, 26)]
    entries.append(entry(40, "dice", content="Macro {{roll:d1000}} {{random::a::b::c}}."))
    async with table(tmp_path, *entries) as at:
        seen = []
        for _ in range(4):
            shown = await at.preview("Throw the dice")
            sent = await at.say("Throw the dice")
            assert shown.snapshot.system_text in sent
            kept = await at.record()
            assert kept["rolls"] == {"seed": shown.seed, "draws": shown.draws}
            assert kept["activationRules"] == {
                "mode": "sillytavern",
                "quirks": "repaired",
                "tokenCounter": "estimate",
            }
            assert sum(f"Group {uid}." in sent for uid in range(20, 26)) == 1
            seen.append(sent)
        assert len(set(seen)) > 1


async def test_the_record_gives_the_modes_own_reasons(tmp_path: Path) -> None:
    async with table(tmp_path, entry(1, "bell"), entry(2, "ferry"), entry(3, constant=True)) as at:
        await at.say("I hear a bell")
        (book,) = (await at.record())["audit"]["worldBooks"]
        found = {item["entryId"]: (item["decision"], item["reason"]) for item in book["decisions"]}
        assert found == {
            "1": ("included", "primary_key"),
            "2": ("rejected", "no_key_match"),
            "3": ("included", "constant"),
        }


async def test_quirks_exact_and_repaired_differ_as_they_are_described(tmp_path: Path) -> None:
    async with table(tmp_path, entry(1, "   ", content="Blank key.")) as at:
        assert "Blank key." not in await at.shows("Hello")
        await at.tapster.activation_settings("s", {"quirks": "exact"})
        assert "Blank key." in await at.shows("Hello")
        await at.tapster.activation_settings("s", {"mode": "tavern"})
        assert "Blank key." not in await at.shows("Hello")


async def test_recursion_and_depth_are_settings_of_the_session(tmp_path: Path) -> None:
    chain = (entry(1, "bell", content="It calls the ferry."), entry(2, "ferry", content="The ferry has no lamp."))
    async with table(tmp_path, *chain) as at:
        assert "no lamp" not in await at.shows("I hear a bell")
        await at.tapster.activation_settings("s", {"scan": {"recursive": True}})
        assert "no lamp" in await at.shows("I hear a bell")
        await at.tapster.activation_settings("s", {"scan": {"depth": 0}})
        assert "ferry" not in await at.shows("I hear a bell")


async def test_positions_are_approximated_and_outlets_go_where_a_prompt_names_them(tmp_path: Path) -> None:
    prompts = [*PRESET["prompts"], {"identifier": "tail", "role": "system", "content": "Rumour: {{outlet::gossip}}"}]  # type: ignore[misc]
    order = [{"identifier": item["identifier"], "enabled": True} for item in prompts]
    preset = {**PRESET, "prompts": prompts, "prompt_order": [{"character_id": 100001, "order": order}]}
    entries = (
        entry(1, constant=True, position=4, depth=2, role=0, content="At depth."),
        entry(2, constant=True, position=7, outletName="gossip", content="The lamp is out."),
        entry(3, constant=True, position=7, outletName="nowhere", content="Unheard."),
        entry(4, constant=True, content="Plain {{user}}."),
    )
    async with table(tmp_path, *entries, preset=preset) as at:
        shown = await at.preview("Hello")
        text = shown.snapshot.system_text
        assert "Rumour: The lamp is out." in text
        assert text.count("The lamp is out.") == 1
        assert "Unheard." not in text
        assert "At depth." in text
        assert "Plain User." in text
        codes = {(item.code, dict(item.details).get("entryId")) for item in shown.snapshot.diagnostics}
        assert ("WORLD_BOOK_POSITION_APPROXIMATED", 1) in codes
        assert ("WORLD_BOOK_OUTLET_SKIPPED", 3) in codes
        assert at.reasons(shown)[3] == "outlet_unused"


async def test_scripts_of_a_preset_run_and_those_of_a_card_only_with_consent(tmp_path: Path) -> None:
    async with table(tmp_path, entry(1, constant=True, content="A storm of rain.")) as at:
        extensions = {"regex_scripts": [{**REGEX, "findRegex": "/rain/g", "replaceString": "stars"}]}
        data = {"name": "Mira", "description": "", "extensions": extensions}
        card = {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}
        kept = await at.tapster.library.characters.import_file(json.dumps(card).encode())
        await at.tapster.select("s", {"characterCardId": kept["character"]["id"]})
        selection = await at.tapster.library.selections.get(embedded_key("s"))
        await at.tapster.library.presets.set_regex_scripts(str(selection.preset_id), [REGEX])
        assert "A breeze of rain." in await at.shows("Hello")
        await at.tapster.activation_settings("s", {"cardScripts": True})
        assert "A breeze of stars." in await at.shows("Hello")


async def test_a_cards_copy_of_a_loaded_book_is_skipped(tmp_path: Path) -> None:
    async with table(tmp_path, entry(1, constant=True, content="From the file.")) as at:
        book = {
            "name": "Harbour",
            "entries": [{"keys": [], "constant": True, "enabled": True, "content": "From the card."}],
        }
        data = {"name": "Mira", "character_book": book, "extensions": {"world": "Harbour"}}
        card = {"spec": "chara_card_v2", "spec_version": "2.0", "data": data}
        kept = await at.tapster.library.characters.import_file(json.dumps(card).encode())
        await at.tapster.select("s", {"characterCardId": kept["character"]["id"]})
        shown = await at.preview("Hello")
        assert "From the file." in shown.snapshot.system_text
        assert "From the card." not in shown.snapshot.system_text
        assert "duplicate_book" in at.reasons(shown).values()


async def test_settings_are_inherited_by_forks_and_refuse_what_does_not_fit(tmp_path: Path) -> None:
    async with table(tmp_path, entry(1, "bell"), quirks="exact", scan={"depth": 7}) as at:
        await at.say("Hello")
        child = await at.fork("child", (await at.handle.flush()) - 1)
        inherited = await at.tapster.activation_settings(child.handle.id)
        assert (inherited.mode, inherited.scan.quirks, inherited.scan.depth) == ("sillytavern", "exact", 7)
        refused: tuple[Json, ...] = ({"mode": "other"}, {"scan": {"depth": -1}}, {"scan": {"deep": 1}}, {"size": 1}, [])
        for patch in refused:
            with pytest.raises(RequestError):
                await at.tapster.activation_settings("s", patch)
        assert await at.tapster.activation_settings("s") == inherited
        assert ActivationSettings.from_json(inherited.to_json()) == inherited


async def test_an_assembly_that_is_superseded_or_refused_leaves_nothing(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    counting = entry(1, "bell", content="Toll {{incvar::tolls}}.", sticky=6)
    # A real thread may be done before the newer assembly comes; a simulated one takes its second.
    with simulated_threads(lambda pool: (1.0, 0.0)):
        async with table(tmp_path, counting, scan={"depth": 1}) as at:
            await superseded_and_refused(at)


async def superseded_and_refused(at: Table) -> None:
    key, sessions = embedded_key("s"), at.tapster.sessions
    await at.handle.followup("I hear a bell")
    await at.handle.when_idle()
    agent = at.tapster.host.agent("s")
    assert agent is not None
    superseded: list[str] = []

    async def older() -> None:
        with pytest.raises(Superseded):
            await sessions.ask(key, agent.session, Assemble(9, 1))
        superseded.append("older")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(older)
        await wait_all_tasks_blocked()
        newer: Assembled = await sessions.ask(key, agent.session, Assemble(9, 1))
    assert superseded == ["older"]
    assert "Toll 2." in newer.snapshot.system_text
    with trio.CancelScope() as scope:
        scope.cancel()
        await sessions.ask(key, agent.session, Assemble(9, 2))
    assert "Toll 3." in await at.shows("Silence")


async def test_a_state_that_cannot_be_written_is_told_and_written_later(autojump_clock: MockClock) -> None:
    prompts = [{"identifier": "main", "role": "system", "content": "Dice: {{roll 1d6}}."}]
    order = [{"character_id": 100001, "order": [{"identifier": "main", "enabled": True}]}]
    raw = {"name": "P", "prompts": prompts, "prompt_order": order}
    preset = parse_preset(raw, id="p1", now="2026-01-01T00:00:00.000Z")
    async with open_tavern_rig(RollingLibrary(preset=preset)) as tavern:
        library, key = tavern.library, embedded_key("s")
        handle = await tavern.rig.host.create("s")
        library.failing = "save_state"
        await handle.followup("the bell")
        await handle.when_idle()
        assert tavern.rig.last_end()["kind"] == "completed"
        assert "STORE_FAILED" in {fields.get("code") for _, _, fields in tavern.rig.reports}
        assert library.states == {}
        library.failing = None
        await handle.followup("again")
        await handle.when_idle()
        assert max(library.states.items(), key=lambda item: item[0][1])[1].rolled == 2
        await handle.close()
        assert {owner for owner, _ in library.states} == {key}


@attrs.define(eq=False)
class RollingLibrary(MemoryLibrary):
    """The library in memory with another preset."""

    preset: Preset = attrs.field(kw_only=True)

    async def bound(self, key: SessionKey) -> Bound:
        bound = await MemoryLibrary.bound(self, key)
        return attrs.evolve(bound, resources=attrs.evolve(bound.resources, preset=self.preset))
