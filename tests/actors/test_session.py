"""Sessions inside the embedded host: one awaited start, one live assembly, previews beside it, captured requests."""

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tapster.actors.hosts.embedded import Assembly, Next, PromptContext
from tapster.actors.providers.scripted import says
from tapster.actors.session import Assemble, LeaseLost, Preview, Superseded
from tapster.actors.session.embedded import embedded_key
from tapster.engine.errors import StoreError, TapsterError
from tapster.engine.policy import RpState
from tests.support.tavern import MemoryLibrary, open_tavern_rig

KEY = embedded_key("s")


async def test_a_turn_carries_the_profile_and_is_captured(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        tavern.rig.provider.scripts.append(says("The bell rings."))
        handle = await tavern.rig.host.create("s")
        await handle.followup("I hear a bell, 钟声")
        await handle.when_idle()
        await tavern.sessions.ask(KEY, handle.session, Preview())
        system = next(event for event in tavern.rig.events() if event.type == "system/message")
        text = system.data["message"]["content"][0]["text"]
        assert "You are Mira." in text
        assert "Mira keeps the lamp." in text
        assert "A bell lies under the reef." in text
        assert "ferry" not in text
        (record,) = tavern.traces.records.values()
        assert record["status"] == "request-observed"
        assert record["delivery"]["assemblyVerified"] is True
        assert record["delivery"]["historyVerified"] is True
        decisions = record["audit"]["worldBooks"][0]["decisions"]
        assert {item["entryId"]: item["reason"] for item in decisions} == {
            "0": "primary-key-match",
            "1": "primary-key-miss",
        }
        header = next(event for event in tavern.rig.events() if event.type == "request/header")
        assert header.data["header"]["config"]["temperature"] == 0.5


@pytest.mark.parametrize("failing", ["ensure_selection", "ancestors_rp", "bound", "save_rp"])
@pytest.mark.parametrize("origin", ["new", "fork", "resume", "delegate"])
async def test_every_part_of_a_start_can_fail_the_open_call(
    autojump_clock: MockClock, failing: str, origin: str
) -> None:
    async with open_tavern_rig() as tavern:
        host = tavern.rig.host
        tavern.library.ancestors = (RpState(active=True),) if origin == "delegate" else ()
        parent = await host.create("parent")
        if origin == "resume":
            await parent.close()
        tavern.library.failing = failing
        with pytest.raises(StoreError):
            match origin:
                case "new":
                    await host.create("child")
                case "fork":
                    await host.fork("parent", "child")
                case "resume":
                    await host.open("parent")
                case _:
                    await host.delegate("parent", "child")
        assert all(handle.id == "parent" for handle in host.live)
        tavern.library.failing = None
        await host.open("parent")


async def test_a_newer_assembly_supersedes_and_waits_for_the_older(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        handle = await tavern.rig.host.create("s")
        tavern.library.delay_s = 5
        superseded: list[float] = []

        async def older() -> None:
            with pytest.raises(Superseded):
                await tavern.sessions.ask(KEY, handle.session, Assemble(1, 1))
            superseded.append(trio.current_time())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(older)
            await wait_all_tasks_blocked()
            await tavern.sessions.ask(KEY, handle.session, Assemble(1, 1))
        assert superseded
        assert tavern.library.most_resolving == 1


async def test_previews_run_beside_an_assembly_and_change_nothing(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        handle = await tavern.rig.host.create("s")
        tavern.library.delay_s = 3
        found: list[str] = []

        async def preview(draft: str) -> None:
            answer = await tavern.sessions.ask(KEY, handle.session, Preview(draft))
            found.append(answer.snapshot.system_text)

        before = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(preview, "the ferry?")
            nursery.start_soon(preview, "nothing")
            nursery.start_soon(tavern.sessions.ask, KEY, handle.session, Assemble(1, 1))
        assert trio.current_time() - before < 4
        assert sorted("ferry" in text for text in found) == [False, True]
        assert tavern.traces.records == {}


async def test_a_lost_lease_freezes_once_more_and_then_refuses(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        handle = await tavern.rig.host.create("s")
        tavern.library.changes_while_resolving = 1
        await tavern.sessions.ask(KEY, handle.session, Assemble(1, 1))
        tavern.library.changes_while_resolving = 2
        with pytest.raises(LeaseLost):
            await tavern.sessions.ask(KEY, handle.session, Assemble(1, 1))


async def test_a_refused_assembly_leaves_its_claims_to_the_next(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        tavern.rig.provider.scripts.append(says("later"))
        handle = await tavern.rig.host.create("s")
        refused: list[str] = []

        async def twice(assembly: Assembly, context: PromptContext, proceed: Next[Assembly, Assembly]) -> Assembly:
            tavern.library.failing = "bound"
            with pytest.raises(StoreError) as caught:
                await proceed()
            refused.append(caught.value.code)
            tavern.library.failing = None
            return await proceed()

        tavern.rig.host.hooks.assemble.add(twice, prepend=True)
        await handle.followup("the bell")
        await handle.when_idle()
        assert refused == ["STORE_FAILED"]
        assert "A bell lies" in tavern.rig.agent().derive_messages()[0]["content"][0]["text"]


async def test_a_crashed_session_comes_back_from_the_hosts_events(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        tavern.rig.provider.scripts += [says("one"), says("two")]
        handle = await tavern.rig.host.create("s")
        tavern.sessions.tell(KEY, "not a message")
        await wait_all_tasks_blocked()
        await handle.followup("the bell")
        await handle.when_idle()
        text = tavern.rig.agent().derive_messages()[0]["content"][0]["text"]
        assert "A bell lies" in text
        assert tavern.rig.last_end() == {"kind": "completed"}


async def test_rp_mode_locks_the_tools_of_a_delegated_session(autojump_clock: MockClock) -> None:
    library = MemoryLibrary(rp=RpState(active=True, source="command"))
    async with open_tavern_rig(library) as tavern:
        await tavern.rig.host.create("s")
        session = tavern.sessions.find(KEY)
        assert session is not None
        assert session.is_rp
        assert tavern.library.saved_rp[0].active
        modes = [event.data["mode"] for event in tavern.rig.events() if event.type == "sandbox/mode"]
        assert modes == ["read-only"]


async def test_fifty_sessions_at_once_get_their_own_answers(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        texts: dict[int, str] = {}

        async def live(number: int) -> None:
            handle = await tavern.rig.host.create(f"s{number}")
            word = "ferry" if number % 2 else "bell"
            key = embedded_key(f"s{number}")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(tavern.sessions.ask, key, handle.session, Preview("bell ferry"))
                nursery.start_soon(tavern.sessions.ask, key, handle.session, Preview("none"))
            answer = await tavern.sessions.ask(key, handle.session, Preview(word))
            texts[number] = answer.snapshot.system_text

        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(live, number)
        assert all(("ferry" in text) == bool(number % 2) for number, text in texts.items())
        assert len(texts) == 50


async def test_an_undeclared_session_error_is_a_refusal(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        handle = await tavern.rig.host.create("s")
        tavern.library.failing = "bound"
        with pytest.raises(TapsterError):
            await tavern.sessions.ask(KEY, handle.session, Preview())
