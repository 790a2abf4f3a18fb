"""Variables and templates in live sessions: begun by a strategy, changed by replies, never by a preview."""

from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.actors.providers import Pause
from tapster.actors.providers.scripted import calls, fails, says
from tapster.engine.errors import TapsterError
from tests.support.strategies import INPUT, RULES, Stage, open_stage, shown
from tests.support.waiting import until

Json = Any
STATE = {"id": "state", "kind": "tavern.mvu/state", "role": "system"}
STORED = {"id": "stored", "kind": "pmp-dsh-tavern/prompt-template", "role": "system"}
LORE = {"id": "worldbook", "kind": "worldbook"}


def ejs(text: str) -> Json:
    return {"id": "ejs", "kind": "tavern.text", "inputMode": "text", "role": "system", "text": text}


async def allow(stage: Stage, session_id: str = "s") -> None:
    """Let the session's variables be used."""
    resource = await stage.tapster.requests.variables(session_id)
    assert resource is not None
    seq = len((await stage.tapster.history(session_id)).events)
    await stage.tapster.variables.set_mode(stage.key(session_id), "native", resource.config_revision, seq)


async def hp(stage: Stage, session_id: str = "s") -> Json:
    """What the session's next request would say."""
    made = await stage.tapster.preview_request(session_id)
    [text] = [text for _, text in shown(made.result.messages) if text.startswith('{"hp"')]
    return text.partition(",")[0].removeprefix('{"hp":')


@pytest.mark.parametrize("engine", ["sqlite", "files"])
async def test_a_finished_reply_changes_the_variables_of_the_next_request(tmp_path: Path, engine: str) -> None:
    async with open_stage(tmp_path, engine=engine) as stage:
        await stage.begin()
        await stage.use("native", STATE, *RULES, INPUT)
        await allow(stage)
        stage.provider.add(says("Ouch. _.set('hp', 10, 7);"), says("_.add('hp', -2);"))
        assert '{"hp":10,"mood":"calm"}' in (await stage.say("one"))[0][1]
        assert '{"hp":7,"mood":"calm"}' in (await stage.say("two"))[0][1]
        assert await hp(stage) == "5"
    async with open_stage(tmp_path, engine=engine) as stage:
        assert '{"hp":5,' in (await stage.say("three"))[0][1]


async def test_what_is_managed_stays_out_and_is_not_changed(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", STATE, *RULES, INPUT)
        stage.provider.add(says("_.set('hp', 1);"))
        assert "hp" not in (await stage.say("one"))[0][1]
        await allow(stage)
        assert await hp(stage) == "10"
    async with open_stage(tmp_path) as stage:
        await stage.tapster.open_session("s")
        assert await hp(stage) == "10"


async def test_only_the_last_whole_reply_of_a_completed_turn_counts(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", STATE, *RULES, INPUT)
        await allow(stage)
        stage.provider.add(calls(("c1", "nothing", "{}"), text="_.set('hp', 1);"), says("No more."))
        await stage.say("one")
        assert await hp(stage) == "10"
        stage.provider.add([*says("_.set('hp', 2);")[:3], Pause(60)])
        handle = await stage.tapster.open_session("s")
        await handle.followup("two")
        await until(lambda: stage.provider.active == 1)
        await handle.cancel()
        await handle.when_idle()
        assert await hp(stage) == "10"
        stage.provider.add(fails("BAD_REQUEST", status=400))
        await stage.say("three")
        assert await hp(stage) == "10"
        stage.provider.add(says("_.set('nobody', 2); _.boom('x');"))
        await stage.say("four")
        assert await hp(stage) == "10"
        resource = stage.tapster.variables.active(stage.key("s"))
        assert resource is not None
        assert resource.history is not None
        assert resource.history.current.failure == "MVU_UNSUPPORTED"


async def test_a_fork_starts_from_the_branch_and_what_was_after_it_is_rolled_back(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", STATE, *RULES, INPUT)
        await allow(stage)
        stage.provider.add(says("_.set('hp', 7);"), says("_.set('hp', 3);"))
        await stage.say("one")
        branch = stage.agent().seq
        await stage.say("two")
        assert await hp(stage) == "3"
        await stage.tapster.host.fork("s", "branch", cut=branch)
        await stage.tapster.host.fork("s", "whole")
        assert (await hp(stage, "branch"), await hp(stage, "whole")) == ("7", "3")
        stage.provider.add(says("_.set('hp', 1);"))
        await stage.say("other", "branch")
        assert (await hp(stage, "branch"), await hp(stage)) == ("1", "3")


async def test_what_is_read_of_a_session_that_sleeps_is_not_kept(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", STATE, *RULES, INPUT)
        await allow(stage)
        stage.provider.add(says("_.set('hp', 7);"))
        await stage.say("one")
    async with open_stage(tmp_path) as stage:
        await stage.tapster.host.fork("s", "branch")
        assert await hp(stage, "branch") == "7"
        assert stage.tapster.variables.active(stage.key("s")) is None
        assert await hp(stage) == "7"
        assert stage.tapster.variables.active(stage.key("s")) is None
        resource = await stage.tapster.requests.variables("s")
        assert resource is not None
        requests, revision = stage.tapster.requests, resource.revision
        operation = [{"op": "replace", "path": "/hp", "value": 6}]
        await requests.patch_variables("s", operation, expected_revision=revision, operation_id="o")
        assert stage.tapster.variables.active(stage.key("s")) is None
        # Whoever reads at the same time takes nothing from the others.
        got: list[Json] = []

        async def ask() -> None:
            got.append(await hp(stage))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        assert got == ["6"] * 5
        assert stage.tapster.variables.active(stage.key("s")) is None
        assert stage.tapster.variables.active(stage.key("branch")) is not None
        assert await stage.say("two")
        assert stage.tapster.variables.active(stage.key("s")) is not None


async def test_a_preview_makes_no_variables(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", STATE, *RULES, INPUT)
        made = await stage.tapster.preview_request("s")
        assert not [node for node in made.result.nodes if node.module == "tavern.mvu/state"]
        assert await stage.tapster.store.documents("variables", None) == ()


async def test_variables_are_kept_by_card_and_come_back_with_it(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("native", STATE, *RULES, INPUT)
        await allow(stage)
        stage.provider.add(says("_.set('hp', 4);"))
        await stage.say("one")
        card = (await stage.tapster.library.selections.get(stage.key("s"))).character_card_id
        await stage.tapster.select("s", {"characterCardId": None})
        assert "hp" not in (await stage.say("two"))[0][1]
        await stage.tapster.select("s", {"characterCardId": card})
        assert '{"hp":4,' in (await stage.say("three"))[0][1]


async def test_a_template_reads_the_requests_own_resources(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        text = (
            "<% for (const n of [1, 2]) { %>[<%- n %>]<% } %> <%- await getwi('0') %> <%- await getchar() %> {{user}}"
        )
        await stage.use("native", ejs(text), *RULES, INPUT)
        preview = await stage.tapster.preview_request("s", "a bell")
        request = await stage.say("a bell")
        assert request[0][1].startswith("[1][2] A bell lies under the reef. Mira keeps the lamp. Lin")
        assert shown(preview.messages) == request
        [fact] = [each for each in preview.result.diagnostics if each["code"] == "TAVERN_MEMORY_DEPENDENCY_VERSION"]
        assert (fact["sourceId"], fact["consumerField"], fact["consumerId"]) == ("tavern.text", "ejs", None)
        assert fact["revision"]


async def test_a_bad_template_refuses_the_request_and_names_its_place(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.use("core", ejs("fine\n<% nobody.home(); %>"), *RULES, INPUT)
        assert await stage.say("hi") == []
        assert stage.ending()["error"]["code"] == "TEMPLATE_EXECUTION_FAILED"
        assert "ejs:2" in stage.ending()["error"]["message"]


async def test_an_endless_template_costs_its_budget_and_nobody_else(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.begin("other")
        await stage.use("native", ejs("<% while (true) {} %>"), *RULES, INPUT)
        await stage.use("native", LORE, *RULES, INPUT, session_id="other")
        for session_id in ("s", "other"):
            await stage.tapster.open_session(session_id)
        refused: list[str] = []
        previews = 0

        async def endless() -> None:
            with pytest.raises(TapsterError) as error:
                await stage.tapster.preview_request("s", "hi")
            refused.append(error.value.code)

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(endless)
            with trio.fail_after(60):  # noqa: ASYNC912 - each turn of the loop waits for a preview
                while len(refused) < 4:
                    made = await stage.tapster.preview_request("other", "a bell")
                    assert "A bell lies under the reef." in "\n".join(text for _, text in shown(made.messages))
                    previews += 1
        assert refused == ["TEMPLATE_EXECUTION_LIMIT"] * 4
        assert previews >= 2


async def test_stored_templates_are_rendered_for_their_sessions(tmp_path: Path) -> None:
    template = {
        "id": "prompt-template:weather",
        "name": "Weather",
        "content": "It is <%- getvar('sky') %>.",
        "enabled": True,
        "sessionIds": ["s"],
        "variables": {"sky": "grey"},
    }
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        await stage.begin("other")
        await stage.tapster.workshop.templates.put(template)
        for session_id in ("s", "other"):
            await stage.use("native", STORED, *RULES, INPUT, session_id=session_id)
        assert (await stage.say("hi"))[0][1].startswith("It is grey.")
        assert "grey" not in (await stage.say("hi", "other"))[0][1]
    async with open_stage(tmp_path) as stage:
        assert [kept.name for kept in stage.tapster.workshop.templates.list()] == ["Weather"]
        changed = {**template, "content": "<%- getvar('hp') %>", "variableResourceId": "mvu:nobody"}
        await stage.tapster.workshop.templates.put(changed)
        assert await stage.say("on") == []
        assert stage.ending()["error"]["code"] == "TEMPLATE_DEPENDENCY_UNAVAILABLE"
        resource = await stage.tapster.requests.variables("s")
        assert resource is not None
        await allow(stage)
        await stage.tapster.workshop.templates.put({**changed, "variableResourceId": resource.id})
        assert (await stage.say("again"))[0][1].startswith("10")
