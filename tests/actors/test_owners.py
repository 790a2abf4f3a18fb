"""Crashes of what all sessions share: a bug costs the change that met it, and what is in memory is what is stored."""

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from tapster.actors.hosts.port import SessionExists
from tapster.actors.owners import READS, RESTART, Owner, StateInDoubt, open_owner
from tapster.actors.session.embedded import embedded_key
from tapster.actors.store import (
    CommitFailed,
    Document,
    DocumentKey,
    ReadFailed,
    SessionKey,
    StoreConfig,
    WriteUnknown,
    open_store,
)
from tapster.actors.store.interface import Keyed, Outcome
from tapster.actors.strategies.variables import open_variables
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.api.cli.main import only_failure
from tapster.engine.errors import FormatError
from tapster.engine.profile import ProfileCharacter
from tapster.runtime import ActorGone, Child, RestartLimit, silent
from tests.simulation.faults import Disk, Mount
from tests.support.cancel import task_count
from tests.support.hosts import TrioClock
from tests.support.owners import owner_of
from tests.support.waiting import until


@attrs.define(eq=False)
class GatedMount(Mount):
    """A disk with bugs, whose commits wait for a gate."""

    gate: threading.Event = attrs.field(factory=threading.Event)
    waiting: int = 0
    sound_commits: int = 0
    """So many come before one of the bugs."""

    def commit(self, batch: Sequence[Keyed], now: int) -> list[Outcome]:
        self.waiting += 1
        self.gate.wait(10)
        self.waiting -= 1
        if self.sound_commits:
            self.sound_commits -= 1
            return self.disk.kept.commit(batch, now)
        return Mount.commit(self, batch, now)


@attrs.frozen
class Machine:
    tapster: Tapster
    mount: GatedMount
    lines: list[tuple[str, str]]

    def crashes(self, name: str) -> int:
        """How often an actor crashed."""
        return self.lines.count(("actor.crashed", name))

    def owner(self, name: str) -> Owner:
        return owner_of(self.tapster, name)

    async def crash(self, name: str) -> None:
        """Send an owner what it doesn't understand, and wait until it runs again."""
        child = self.owner(name).child
        (await child.ref()).tell("a message that nobody understands")
        await child.state.wait_transition()
        await child.state.wait_value(lambda state: state in ("running", "ended"))


@asynccontextmanager
async def open_machine(folder: Path) -> AsyncIterator[Machine]:
    mount, lines = GatedMount(Disk()), list[tuple[str, str]]()

    def log(level: str, event: str, **fields: object) -> None:
        lines.append((event, str(fields.get("actor", fields.get("owner", "")))))

    mount.gate.set()
    config = TapsterConfig(StoreConfig(folder, "memory"))
    async with open_tapster(config, clock=TrioClock(), log=log, engine=lambda: mount) as tapster:
        yield Machine(tapster, mount, lines)


CARD = ProfileCharacter("card", "Iris", {"name": "Iris"}, revision="1")
OWNERS = ("library", "strategies", "variables", "templates")


@pytest.mark.parametrize("name", OWNERS)
async def test_an_owner_that_crashes_starts_again(tmp_path: Path, name: str) -> None:
    async with open_machine(tmp_path) as machine:
        made = await machine.tapster.library.presets.create("kept")
        for _ in range(RESTART.intensity):
            await machine.crash(name)
        assert machine.crashes(name) == RESTART.intensity
        assert (await machine.tapster.library.presets.get(made["id"]))["name"] == "kept"
        assert (await machine.tapster.library.presets.create("more"))["name"] == "more"
        assert machine.owner(name).child.restarts == RESTART.intensity


async def test_crashing_too_often_ends_the_process_with_a_line(tmp_path: Path) -> None:
    tasks = task_count()
    with pytest.RaisesGroup(RestartLimit, flatten_subgroups=True) as caught:
        async with open_machine(tmp_path) as machine:
            for _ in range(RESTART.intensity + 1):
                await machine.crash("library")
            await trio.sleep_forever()
    assert isinstance(only_failure(caught.value), RestartLimit)
    assert task_count() == tasks


async def test_a_file_that_meets_a_bug_costs_its_own_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = b'{"spec":"chara_card_v2","spec_version":"2.0","data":{"name":"Iris"}}'
    async with open_machine(tmp_path) as machine:

        async def compute(*arguments: object) -> None:
            await trio.lowlevel.checkpoint()
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr(machine.tapster.library.presets._core, "compute", compute)
            with pytest.raises(ActorGone):
                await machine.tapster.library.characters.import_file(card)
        imported = await machine.tapster.library.characters.import_file(card)
        assert imported["character"]["name"] == "Iris"
        assert machine.crashes("library") == 1


@pytest.mark.parametrize("is_durable", [True, False])
async def test_a_bug_in_a_commit_is_said_and_owners_learn_what_is_stored(tmp_path: Path, is_durable: bool) -> None:
    async with open_machine(tmp_path) as machine:
        presets = machine.tapster.library.presets
        await presets.create("first")
        machine.mount.disk.breaking_commits = [is_durable]
        with pytest.raises(WriteUnknown):
            await presets.create("second")
        await until(lambda: all(machine.crashes(name) == 1 for name in ("store", *OWNERS)))
        await presets.create("third")
        names = {head.name for head in presets._core.heads("preset")}
        assert names == ({"first", "second", "third"} if is_durable else {"first", "third"})
        assert machine.tapster.store.statistics().writes >= 2


async def test_a_change_whose_asker_left_is_learned_of_too(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        presets = machine.tapster.library.presets
        machine.mount.disk.breaking_commits = [True]
        machine.mount.gate.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(presets.create, "unheard")
            await until(lambda: machine.mount.waiting > 0)
            nursery.cancel_scope.cancel()
            await trio.testing.wait_all_tasks_blocked(0.01)
            machine.mount.gate.set()
        await until(lambda: machine.crashes("library") == 1)
        await machine.owner("library").child.state.wait_value(lambda state: state == "running")
        assert [head.name for head in presets._core.heads("preset")] == ["unheard"]


async def test_a_session_learns_which_rules_were_stored(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        await machine.tapster.create_session("s")
        assert not (await machine.tapster.roleplay("s")).stored.active
        machine.mount.disk.breaking_commits = [True]
        with pytest.raises(WriteUnknown):
            await machine.tapster.roleplay("s", True)
        await until(lambda: machine.crashes("library") == 1)
        assert (await machine.tapster.roleplay("s")).stored.active
        actor = machine.tapster.sessions.find(embedded_key("s"))
        assert actor is not None
        assert actor.is_rp


async def test_a_cancelled_switch_of_the_rules_costs_nothing_but_itself(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        tapster, key = machine.tapster, embedded_key("s")
        await tapster.create_session("s")
        actor = tapster.sessions.find(key)
        for is_in_batch in (False, True):
            machine.mount.gate.clear()
            async with trio.open_nursery() as nursery:
                if not is_in_batch:
                    nursery.start_soon(tapster.library.presets.create, "before it")
                    await until(lambda: machine.mount.waiting == 1)
                scope = trio.CancelScope()
                nursery.start_soon(switch_rules, tapster, scope)
                if is_in_batch:
                    await until(lambda: machine.mount.waiting == 1)
                else:
                    await until(lambda: tapster.store.statistics().queued == 1)
                scope.cancel()
                await trio.testing.wait_all_tasks_blocked(0.01)
                machine.mount.gate.set()
            # Queued it never happened, in a batch it did; either way the session goes on and knows.
            assert (await tapster.roleplay("s")).stored.active is is_in_batch
            assert (await tapster.library.selections.get(key)).rp.active is is_in_batch
            assert tapster.sessions.find(key) is actor
            assert tapster.sessions.is_rp(key) is is_in_batch


async def switch_rules(tapster: Tapster, scope: trio.CancelScope) -> None:
    with scope:
        await tapster.roleplay("s", True)


async def test_tools_stay_guarded_while_a_crashed_session_starts_again(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        tapster, key = machine.tapster, embedded_key("s")
        await tapster.create_session("s")
        await tapster.roleplay("s", True)
        crashed = tapster.sessions.find(key)
        tapster.sessions.tell(key, "a message that nobody understands")
        while tapster.sessions.find(key) is crashed:
            assert tapster.sessions.is_rp(key)
            await trio.lowlevel.checkpoint()
        for _ in range(3):
            assert tapster.sessions.is_rp(key)
            await trio.lowlevel.checkpoint()
        await tapster.roleplay("s", False)
        assert not tapster.sessions.is_rp(key)


@pytest.mark.parametrize("sound", range(4))
async def test_nothing_is_left_of_a_session_that_could_not_be_created(tmp_path: Path, sound: int) -> None:
    async with open_machine(tmp_path) as machine:
        machine.mount.sound_commits, machine.mount.disk.failing_commits = sound, 1
        try:
            await machine.tapster.create_session("s")
            assert sound == 3, "a start has three commits"
        except CommitFailed:
            assert sound < 3
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert nothing_is_kept(machine.tapster)
            assert await machine.tapster.store.documents("session-settings", None) == ()
        machine.mount.disk.heal()


async def test_a_refused_session_leaves_nothing(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        with pytest.raises(FormatError):
            await machine.tapster.create_session("no/id")
        assert nothing_is_kept(machine.tapster)
        assert await machine.tapster.store.documents("session-settings", None) == ()


async def test_a_start_that_is_cancelled_anywhere_leaves_nobody_behind(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        tapster = machine.tapster
        for steps in range(0, 300, 10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tapster.create_session, f"s{steps}")
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
            if tapster.host.agent(f"s{steps}") is not None:
                await tapster.host.close(f"s{steps}")
            await trio.testing.wait_all_tasks_blocked(0.005)
            assert nothing_is_kept(tapster), steps


def nothing_is_kept(tapster: Tapster) -> bool:
    """Whether no session is in memory."""
    counters = tapster.library.counters
    held = (counters._dependencies, counters._dependents, counters._used, counters._selections)
    variables = (tapster.variables._keepers, tapster.variables._shelves, tapster.variables._locks)
    return not any((*held, *variables, list(tapster.sessions.statuses())))


async def test_selecting_for_a_session_that_sleeps_keeps_nothing(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        preset = await machine.tapster.library.presets.create("any")
        await machine.tapster.select("somebody", {"presetId": preset["id"]})
        assert nothing_is_kept(machine.tapster)


@pytest.mark.parametrize("broken", range(4))
async def test_a_session_that_was_begun_without_an_answer_has_its_mode(tmp_path: Path, broken: int) -> None:
    async with open_machine(tmp_path) as machine:
        machine.mount.disk.breaking_commits = [True]
        machine.mount.sound_commits = broken
        try:
            await machine.tapster.create_session("s")
        except WriteUnknown:
            await until(lambda: machine.crashes("library") == 1)
        machine.mount.disk.heal()
        with suppress(SessionExists):
            await machine.tapster.create_session("s")
        mode = (await machine.tapster.activation_settings("s")).mode
        assert mode == machine.tapster.config.session_mode == "sillytavern"


async def test_every_incarnation_uses_the_same_threads(tmp_path: Path) -> None:
    async with open_machine(tmp_path) as machine:
        before = [pool.name for pool in machine.tapster.roster.pools]
        for number in (1, 2):
            machine.mount.disk.breaking_commits = [False]
            with pytest.raises(WriteUnknown):
                await machine.tapster.library.presets.create("lost")
            await until(lambda number=number: machine.crashes("library") == number)  # type: ignore[misc]
        scripts = machine.tapster.workshop.scripts
        assert isinstance(scripts.ref, Child)
        (await scripts.ref.ref()).tell("a message that nobody understands")
        assert await scripts.find_all("b", "", "ab")
        assert [pool.name for pool in machine.tapster.roster.pools] == before
        assert len(set(before)) == len(before)


async def test_what_sessions_do_while_variables_are_read_stays(tmp_path: Path) -> None:
    kept, gone = SessionKey("embedded", "kept"), SessionKey("embedded", "gone")
    async with (
        open_store(StoreConfig(tmp_path, "memory"), clock=TrioClock()) as store,
        open_variables(store) as variables,
    ):
        for key in (kept, gone):
            variables.keep(key)
            await variables.look(key, None)
        reading = store.document

        async def read_slowly(key: DocumentKey) -> Document | None:
            if key.name == "kept":
                variables.release(gone)
            await variables.look(kept, CARD)
            return await reading(key)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                type(store), "document", lambda _, key: read_slowly(key) if key.name == "kept" else reading(key)
            )
            await variables.read()
        assert variables.active(kept) is None
        assert list(variables._shelves) == [kept]
        assert variables._shelves[kept].active == CARD.id


async def test_what_cannot_be_read_after_a_crash_is_tried_again(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    reads, failing, lines = 0, 0, list[str]()

    async def read() -> None:
        nonlocal reads, failing
        await trio.lowlevel.checkpoint()
        if failing:
            failing -= 1
            raise ReadFailed("not now")
        reads += 1

    def log(level: str, event: str, **fields: object) -> None:
        lines.append(event)

    async def add(one: int, two: int) -> int:
        await trio.lowlevel.checkpoint()
        return one + two

    async with (
        open_store(StoreConfig(tmp_path, "memory"), clock=TrioClock()) as store,
        open_owner("sums", store, read, log) as owner,
    ):
        assert (reads, await owner.ask(add, 1, 2)) == (1, 3)
        failing = READS - 1
        (await owner.child.ref()).tell("a message that nobody understands")
        assert await owner.ask(add, 3, 4) == 7
        assert reads == 2
        assert lines == ["actor.crashed", *["owner.unread"] * (READS - 1)]
        failing = READS
        (await owner.child.ref()).tell("a message that nobody understands")
        assert await owner.ask(add, 5, 6) == 11
        assert lines.count("actor.crashed") == 3


async def test_nobody_is_told_of_a_doubt_that_is_none(tmp_path: Path) -> None:
    async def read() -> None:
        await trio.lowlevel.checkpoint()

    async with (
        open_store(StoreConfig(tmp_path, "memory"), clock=TrioClock()) as store,
        open_owner("sums", store, read, silent) as owner,
    ):
        await trio.testing.wait_all_tasks_blocked()
        assert owner.child.restarts == 0
    assert StateInDoubt("sums").code == "STATE_IN_DOUBT"
