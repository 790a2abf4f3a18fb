"""What people do at awkward moments, over a real server and both durable engines."""

import html
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trio

from tapster.actors.testing.model_server import Answer
from tapster.api.config import StoreEngine
from tests.support.stage import CONTRACT, OWN, Stage, book, open_stage

Json = Any
ENGINES: list[StoreEngine] = ["sqlite", "files"]
TEXTS = {
    "Chinese": "雾里的钟声。龘𠮷",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈",
    "right to left": "שלום עולם مرحبا \u202e abc",
    "a lone high surrogate": "a\ud83d b",
    "a lone low surrogate": "a\ude00 b",
    "controls": "a\x01\x7f\u2028\u2029\ufeff\x85b",
    "markup": '<script>alert("x")</script>&amp;\'',
    "braces": "}}{{ ${x} {%  %} #{",
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
async def test_a_bound_resource_that_is_deleted_in_a_turn_is_missed_by_the_next_request_only(
    tmp_path: Path, engine: StoreEngine
) -> None:
    async with open_stage(tmp_path, engine=engine) as stage:
        kept = await stage.import_file("b.json", book("bell", "kept lore"))
        gone = await stage.import_file("b.json", book("bell", "deleted lore"))
        await stage.new_session("s", books=[kept, gone])
        stage.model.answers.append(Answer(({"content": "one "}, {"content": "two"}), hang_after=1))
        await stage.say("s", "the bell")
        with trio.fail_after(10):
            while not stage.model.requests:  # noqa: ASYNC110 - the other side is a server
                await trio.sleep(0.002)
        await stage.call("DELETE", f"{CONTRACT}/v1/world-books/{gone}")
        await stage.call("POST", f"{OWN}/sessions/s/cancel")
        await stage.when_idle("s")
        await stage.say("s", "the bell again")
        await stage.when_idle("s")
        first, second = (str(request.body["messages"]) for request in stage.model.requests)
        assert "kept lore" in first
        assert "deleted lore" in first
        assert "kept lore" in second
        assert "deleted lore" not in second


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
async def test_edits_at_once_leave_one_whole_document(tmp_path: Path, engine: StoreEngine) -> None:
    async with open_stage(tmp_path, engine=engine) as stage:
        user = (await stage.call("POST", f"{CONTRACT}/v1/users", {"name": "Lin", "description": "d"}))["user"]["id"]
        statuses: list[int] = []

        async def edit(number: int) -> None:
            body = {"name": f"n{number}", "description": f"d{number}"}
            statuses.append((await stage.client.patch(f"{CONTRACT}/v1/users/{user}", json=body)).status_code)

        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(edit, number)
        found = (await stage.call("GET", f"{CONTRACT}/v1/users/{user}"))["user"]
        assert found["name"][1:] == found["description"][1:]
        assert set(statuses) == {200}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
async def test_session_ids_of_every_allowed_shape(tmp_path: Path, engine: StoreEngine) -> None:
    async with open_stage(tmp_path, engine=engine) as stage:
        for name in ("tower:1", "a.b_c-d", "0", "CON", "a..b", "x" * 200, "S", "s"):
            await stage.new_session(name, books=[])
            encoded = "".join(f"%{byte:02X}" for byte in name.encode()) if len(name) < 50 else quote(name, safe="")
            for path in (quote(name, safe=""), encoded):
                await stage.call("POST", f"{OWN}/sessions/{path}/messages", {"text": f"hello {name}", "mode": "send"})
                await stage.when_idle(name)
            found = (await stage.call("GET", f"{OWN}/sessions/{encoded}"))["session"]
            assert found["id"] == name
            said = [item for item in found["messages"] if f"hello {name}" == item["content"][0].get("text")]
            assert len(said) == 2
            rows = (await stage.call("GET", f"{CONTRACT}/v3/sessions/{encoded}/assemblies"))["records"]
            assert len(rows) == 2
            assert (await stage.client.get(f"/sessions/{encoded}")).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", TEXTS)
async def test_any_text_comes_back_as_it_went_in(tmp_path: Path, engine: StoreEngine, name: str) -> None:
    text = TEXTS[name]
    async with open_stage(tmp_path, engine=engine) as stage:
        # A name has no control characters (spec/resources), a description may have any.
        person = {"name": f"n{text if name != 'controls' else ''}n", "description": f"d{text}d"}
        user = await stage.call("POST", f"{CONTRACT}/v1/users", person)
        found = (await stage.call("GET", f"{CONTRACT}/v1/users/{user['user']['id']}"))["user"]
        assert {member: found[member] for member in person} == person
        identity = await stage.import_file("b.json", book("bell", f"lore {text}."))
        entries = (await stage.call("GET", f"{CONTRACT}/v1/world-books/{identity}"))["worldBook"]
        assert f"lore {text}." in str(entries) or repr(f"lore {text}.")[1:-1] in str(entries)
        await stage.new_session("s", books=[identity])
        await stage.say("s", f"bell {text} end")
        await stage.when_idle("s")
        session = (await stage.call("GET", f"{OWN}/sessions/s"))["session"]
        assert session["messages"][-2]["content"][0]["text"] == f"bell {text} end"
        await shown_on_the_page(stage, f"bell {text} end")
        preview = await stage.preview("s", f"bell {text}")
        assert "lore " in preview


async def shown_on_the_page(stage: Stage, text: str) -> None:
    """The page has the text, escaped; what UTF-8 can't say stands there as a replacement."""
    page = await stage.client.get("/sessions/s")
    assert page.status_code == 200
    shown = html.unescape(page.content.decode())
    assert text.encode("utf-8", "replace").decode().replace("?", "") in shown.replace("\ufffd", "").replace("?", "")
    assert "<script>alert" not in page.text
