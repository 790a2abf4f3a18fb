"""A model server that fails, over HTTP and on the page: the session says what happened and goes on afterwards."""

import html
from pathlib import Path
from typing import Any

import pytest
import trio

from tapster.actors.testing.model_server import Answer, error_answer
from tests.support.stage import CONTRACT, OWN, Stage, open_stage

Json = Any
PIECES = ({"content": "The bell "}, {"content": "rings."})
FINE = Answer(({"content": "All is well."},))


async def ended(stage: Stage) -> Json:
    """The reason of the last turn's end, once the session is idle."""
    with trio.fail_after(10):
        await stage.when_idle("s")
    events = (await stage.running.tapster.history("s")).events
    return next(event.data["reason"] for event in reversed(events) if event.type == "turn/end")


async def goes_on(stage: Stage) -> None:
    """The session is as usable as ever."""
    stage.model.answers.append(FINE)
    await stage.say("s", "again")
    assert await ended(stage) == {"kind": "completed"}
    session = (await stage.call("GET", f"{OWN}/sessions/s"))["session"]
    assert session["messages"][-1]["content"][0]["text"] == "All is well."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (error_answer(401, "no such key"), "AUTH"),
        (error_answer(400, "the model is unknown"), None),
        (Answer(PIECES, cut_after=1), "STREAM_CLOSED"),
        (Answer(raw=b"data: not json\n\n"), None),
    ],
    ids=["401", "400", "half a stream", "no protocol"],
)
async def test_a_failed_answer_is_shown_and_recorded_once(tmp_path: Path, answer: Answer, code: str | None) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.new_session("s")
        stage.model.answers.append(answer)
        await stage.say("s", "hello")
        reason = await ended(stage)
        assert reason["kind"] == "error"
        assert reason["error"]["message"]
        if code is not None:
            assert reason["error"]["code"].startswith(code)
        page = await stage.client.get("/sessions/s")
        assert page.status_code == 200
        assert html.escape(reason["error"]["message"][:40]).replace("&#x27;", "&#39;") in page.text
        rows = (await stage.call("GET", f"{CONTRACT}/v3/sessions/s/assemblies"))["records"]
        assert [row["status"] for row in rows] == ["request-observed"], "one request, one record"
        await goes_on(stage)


@pytest.mark.slow
@pytest.mark.parametrize("answer", [Answer(PIECES, hang_after=1), Answer(silent=True)], ids=["hang", "silent"])
@pytest.mark.parametrize("over", ["api", "page"])
async def test_a_hanging_answer_is_cancelled_and_what_was_said_stays(tmp_path: Path, answer: Answer, over: str) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.new_session("s")
        stage.model.answers.append(answer)
        await stage.say("s", "hello")
        await until_asked(stage, answer)
        busy = await stage.client.post(f"{CONTRACT}/v1/select", json={"sessionId": "s", "id": None})
        assert busy.status_code == 409
        if over == "api":
            await stage.call("POST", f"{OWN}/sessions/s/cancel")
        else:
            answered = await stage.client.post("/sessions/s/cancel")
            assert answered.status_code in (200, 303)
        reason = await ended(stage)
        assert reason["kind"] == "aborted"
        session = (await stage.call("GET", f"{OWN}/sessions/s"))["session"]
        texts = [block["text"] for block in session["messages"][-1]["content"]]
        assert texts == (["The bell "] if answer.hang_after else ["hello"])
        await goes_on(stage)


async def until_asked(stage: Stage, answer: Answer) -> None:
    """Wait until the model server has the request, and the first piece of its answer has come."""
    subscription = await (await stage.running.tapster.open_session("s")).subscribe()
    with trio.fail_after(10):
        while not stage.model.requests:  # noqa: ASYNC110 - the other side is a server
            await trio.sleep(0.002)
        if answer.hang_after:
            while "The bell" not in str(await subscription.receive()):
                pass
    subscription.close()
