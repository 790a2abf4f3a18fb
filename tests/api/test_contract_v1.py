"""v1 over a real store and library: whole stories, and bad input that changes nothing."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tapster.api.answers import attachment_disposition
from tapster.api.contract import ROUTES
from tapster.api.contract.routing import Router, family_of
from tapster.api.errors import SHAPES
from tapster.engine.errors import RequestError
from tests.support.asgi import Reply
from tests.support.contract import Served, open_contract
from tests.support.pngs import card_chunk, png_with

Json = Any
ROOT = "/pmp-dsh-tavern/api/v1"
CARD = {
    "spec": "chara_card_v2",
    "spec_version": "2.0",
    "data": {"name": "Mira 灯", "first_mes": "Hi", "alternate_greetings": ["Hello"], "tags": []},
}
BOOK = {"name": "Harbour", "entries": {"0": {"uid": 0, "key": ["bell"], "content": "A bell."}}}
PRESET = {"name": "P", "prompts": [{"identifier": "main", "content": "Hi"}], "temperature": 0.5}


@pytest.fixture(params=["sqlite", "memory"])
async def served(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Served]:
    async with open_contract(tmp_path, engine=request.param, running=["busy"]) as opened:
        yield opened


async def call(served: Served, method: str, path: str, body: Json = None, **named: Any) -> Reply:
    return await served.client.send(method, ROOT + path, json=body, **named)


async def good(served: Served, method: str, path: str, body: Json = None, **named: Any) -> Json:
    reply = await call(served, method, path, body, **named)
    assert reply.status in {200, 201}, reply.body
    return reply.json()


async def fill(served: Served) -> dict[str, str]:
    """One of each kind."""
    preset = await good(served, "POST", "/import", {"content": json.dumps(PRESET)})
    png = png_with(card_chunk(json.dumps(CARD)))
    card = await good(
        served, "POST", "/characters/import?filename=a.png", data=png, headers={"content-type": "image/png"}
    )
    book = await good(served, "POST", "/world-books/import?filename=b.json", data=json.dumps(BOOK).encode())
    user = await good(served, "POST", "/users", {"name": "Lin"})
    return {
        "preset": preset["preset"]["id"],
        "card": card["character"]["id"],
        "book": book["worldBook"]["id"],
        "user": user["user"]["id"],
    }


async def test_importing_binding_and_deleting(served: Served) -> None:
    ids = await fill(served)
    await good(served, "POST", "/select", {"id": ids["preset"], "sessionId": "s"})
    chosen = {"sessionId": "s", "characterCardId": ids["card"], "character": {"greetingIndex": 1}}
    bound = await good(served, "POST", "/character-selection", chosen)
    assert bound["selection"] == {"characterCardId": ids["card"], "character": {"greetingIndex": 1}}
    assert bound["character"]["name"] == "Mira 灯"
    await good(served, "POST", "/world-book-selection", {"sessionId": "s", "worldBookIds": [ids["book"]] * 2})
    assert (await good(served, "GET", "/presets?sessionId=s"))["selectedId"] == ids["preset"]
    assert (await good(served, "GET", "/presets"))["selectedId"] is None
    for owner, name in (("presets", "preset"), ("characters", "card"), ("users", "user")):
        path = f"/{owner}/{ids[name]}/world-books"
        assert (await good(served, "PUT", path, {"worldBookIds": [ids["book"]]}))["binding"]["worldBookIds"]
    await good(served, "DELETE", f"/world-books/{ids['book']}", {})
    assert (await good(served, "GET", f"/users/{ids['user']}/world-books"))["binding"]["worldBookIds"] == []
    assert (await good(served, "GET", "/world-book-selection?sessionId=s"))["selection"] == {"worldBookIds": []}
    await good(served, "DELETE", f"/characters/{ids['card']}", {})
    assert (await good(served, "GET", "/character-selection?sessionId=s"))["selection"] is None
    listed = await good(served, "GET", "/characters")
    assert (listed["characters"], [lost["id"] for lost in listed["missingCharacters"]]) == ([], [ids["card"]])


async def test_downloads(served: Served) -> None:
    ids = await fill(served)
    card = await call(served, "GET", f"/characters/{ids['card']}/png")
    assert card.headers["content-type"] == "image/png"
    assert card.headers["content-disposition"].startswith("attachment; filename*=UTF-8''")
    book = await call(served, "GET", f"/world-books/{ids['book']}/json")
    assert book.headers["etag"].startswith('"sha256-')
    preset = await call(served, "GET", f"/presets/{ids['preset']}/export")
    assert preset.json()["temperature"] == 0.5
    assert preset.headers["cache-control"] == "no-store"


async def test_a_running_agent_keeps_its_selection(served: Served) -> None:
    ids = await fill(served)
    for path, body, code in (
        ("/select", {"id": ids["preset"], "sessionId": "busy"}, None),
        ("/user-selection", {"sessionId": "busy", "userId": ids["user"]}, "USER_AGENT_RUNNING"),
    ):
        reply = await call(served, "POST", path, body)
        assert reply.status == 409
        if code is not None:
            assert reply.json()["error"]["code"] == code
    assert (await good(served, "GET", "/user-selection?sessionId=busy"))["user"] is None


async def test_roleplay_follows_a_card_unless_told_not_to(served: Served) -> None:
    ids = await fill(served)
    await good(served, "POST", "/character-selection", {"sessionId": "a", "characterCardId": ids["card"]})
    mode = await good(served, "GET", "/rp-mode?sessionId=a")
    assert (mode["rp"]["active"], mode["rp"]["source"]) == (True, "character-follow")
    await good(served, "POST", "/character-selection", {"sessionId": "a", "characterCardId": None})
    assert (await good(served, "GET", "/rp-mode?sessionId=a"))["rp"]["active"] is False
    await good(served, "PUT", "/ui-settings", {"locale": "en", "scale": 1, "rpFollowCharacter": False})
    await good(served, "POST", "/character-selection", {"sessionId": "b", "characterCardId": ids["card"]})
    mode = await good(served, "GET", "/rp-mode?sessionId=b")
    assert (mode["rp"]["active"], mode["followCharacter"]) == (False, False)


async def test_roleplay_under_a_running_turn_waits_for_the_next_step(served: Served) -> None:
    queued = await good(served, "PUT", "/rp-mode", {"sessionId": "busy", "active": True})
    assert (queued["outcome"], queued["rp"]["active"], queued["pending"]["active"]) == ("queued", False, True)
    assert (await good(served, "GET", "/rp-mode?sessionId=busy"))["pending"]["active"] is True
    again = await good(served, "PUT", "/rp-mode", {"sessionId": "busy", "active": True})
    assert again["outcome"] == "noop"


async def test_alerts_are_taken_once(served: Served) -> None:
    served.tapster.tavern.alerts.record("s", "bash")
    served.tapster.tavern.alerts.record("s", "write")
    shown = (await good(served, "GET", "/rp-alert?sessionId=s"))["alert"]
    assert shown["toolName"] == "write"
    assert (await good(served, "GET", "/rp-alert?sessionId=s&id=other"))["alert"] is None
    assert (await good(served, "DELETE", f"/rp-alert?sessionId=s&id={shown['id']}"))["alert"] == shown
    assert (await good(served, "GET", "/rp-alert?sessionId=s"))["alert"] is None


async def test_active_runs_an_assembly_and_records_nothing(served: Served) -> None:
    ids = await fill(served)
    await good(served, "POST", "/select", {"id": ids["preset"], "sessionId": "s"})
    active = await good(served, "GET", "/active?sessionId=s")
    assert active["selected"] == {"id": ids["preset"], "name": "P"}
    assert active["callConfig"] == {"temperature": 0.5}
    assert (await good(served, "GET", "/traces?sessionId=s"))["records"] == []


async def test_a_template_with_a_missing_part_is_not_applied(served: Served) -> None:
    ids = await fill(served)
    await good(served, "POST", "/user-selection", {"sessionId": "s", "userId": ids["user"]})
    made = await good(served, "POST", "/session-templates", {"name": "T", "sourceSessionId": "s"})
    await good(served, "DELETE", f"/users/{ids['user']}", {})
    source = {"mode": "template", "templateId": made["template"]["id"]}
    reply = await call(served, "POST", "/session-configurations/apply", {"targetSessionId": "t", "source": source})
    assert reply.status == 409
    error = reply.json()["error"]
    assert error["code"] == "SESSION_CONFIGURATION_UNAVAILABLE"
    assert [item["code"] for item in error["diagnostics"]] == ["SESSION_CONFIGURATION_USER_MISSING"]


PNG_TYPE = {"content-type": "image/png"}
BAD: list[tuple[str, str, Any, int]] = [
    ("POST", "/characters/import", b"", 400),
    ("POST", "/characters/import", b"not a card", 400),
    ("POST", "/characters/import", png_with()[:40], 400),
    ("POST", "/world-books/import", b"{}", 400),
    ("POST", "/world-books/import", b"", 400),
    ("POST", "/import", {"content": "[]"}, 400),
    ("POST", "/users", {"name": 5}, 400),
    ("POST", "/users", {"name": "a", "extra": 1}, 400),
    ("PATCH", "/users/nobody", {"name": "x"}, 404),
    ("DELETE", "/users/nobody", {}, 404),
    ("PUT", "/presets/nobody", {"name": "x"}, 404),
    ("GET", "/presets/nobody/export", None, 404),
    ("PATCH", "/characters/nobody", {}, 404),
    ("GET", "/characters/nobody/png", None, 404),
    ("PATCH", "/world-books/nobody", {}, 404),
    ("PUT", "/characters/order", {"mode": "random"}, 400),
    ("PUT", "/characters/order", {"mode": "name", "characterIds": []}, 400),
    ("PUT", "/characters/order", {"mode": "custom", "characterIds": ["x"]}, 400),
    ("POST", "/characters/relink", {"previousCharacterId": "a", "characterId": "b", "x": 1}, 400),
    ("POST", "/character-selection", {"sessionId": "s", "characterCardId": 5}, 400),
    ("POST", "/character-selection", {"sessionId": "bad id", "characterCardId": None}, 400),
    ("POST", "/character-selection", {"sessionId": "s"}, 400),
    ("POST", "/character-selection", {"sessionId": "s", "characterCardId": "nobody"}, 404),
    ("POST", "/world-book-selection", {"sessionId": "s", "worldBookIds": "x"}, 400),
    ("POST", "/world-book-selection", {"sessionId": "s", "worldBookIds": ["nobody"]}, 404),
    ("POST", "/world-book-selection", {"sessionId": "s", "worldBookIds": [f"b{n}" for n in range(101)]}, 400),
    ("POST", "/select", {"id": "nobody"}, 404),
    ("POST", "/select", {}, 400),
    ("GET", "/presets?sessionId=bad%20id", None, 400),
    ("GET", "/active", None, 400),
    ("GET", "/users/%FF", None, 400),
    ("PUT", "/rp-mode", {"sessionId": "s", "active": 1}, 400),
    ("PUT", "/rp-policy", {"section": None}, 400),
]


async def test_bad_input_changes_nothing(served: Served) -> None:
    before = await everything(served)
    for method, path, body, status in BAD:
        if isinstance(body, bytes):
            headers = PNG_TYPE if path.startswith("/characters") else {}
            reply = await call(served, method, path, data=body, headers=headers)
        else:
            reply = await call(served, method, path, body)
        assert (method, path, reply.status) == (method, path, status), (body, reply.body)
        assert reply.json()["ok"] is False
    assert await everything(served) == before


async def everything(served: Served) -> list[Json]:
    paths = (
        "/presets",
        "/characters",
        "/world-books",
        "/users",
        "/session-templates",
        "/ui-settings",
        "/rp-policy",
        "/character-selection?sessionId=s",
        "/world-book-selection?sessionId=s",
        "/rp-mode?sessionId=s",
    )
    return [await good(served, "GET", path) for path in paths]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a b.json", "a%20b.json"),
        ("O'Neil", "O%27Neil"),
        ("灯\r\nx", "%E7%81%AFx"),
        ("  ", "download"),
        ("x" * 300, "x" * 255),
    ],
)
def test_download_names(name: str, expected: str) -> None:
    assert attachment_disposition(name) == f"attachment; filename*=UTF-8''{expected}"


UNUSABLE: list[tuple[str, str, Json, str | None]] = [
    ("GET", "/characters/bad%20id", None, "INVALID_CHARACTER_REQUEST"),
    ("PATCH", "/users/b%C3%A9", {}, "INVALID_USER_REQUEST"),
    ("DELETE", f"/world-books/{'x' * 101}", {}, "INVALID_WORLD_BOOK_REQUEST"),
    ("GET", "/presets/a.b", None, None),
    ("GET", "/session-templates/-x", None, "INVALID_SESSION_TEMPLATE_REQUEST"),
    ("POST", "/select", {"id": "bad id"}, None),
    ("POST", "/user-selection", {"sessionId": "s", "userId": "bad id"}, "INVALID_USER_REQUEST"),
    ("POST", "/character-selection", {"sessionId": "s", "characterCardId": "a/b"}, "INVALID_CHARACTER_REQUEST"),
    ("POST", "/world-book-selection", {"sessionId": "s", "worldBookIds": ["a:b"]}, "INVALID_WORLD_BOOK_REQUEST"),
    ("POST", "/session-templates/select", {"id": "bad id"}, "INVALID_SESSION_TEMPLATE_REQUEST"),
    (
        "POST",
        "/session-configurations/preview",
        {"source": {"mode": "template", "templateId": "bad id"}},
        "INVALID_SESSION_TEMPLATE_REQUEST",
    ),
    ("POST", "/world-books/import", {"entries": 5}, "INVALID_WORLD_BOOK_REQUEST"),
]


async def test_what_no_resource_can_be_is_a_bad_request(served: Served) -> None:
    for method, path, body, code in UNUSABLE:
        reply = await call(served, method, path, body)
        error = reply.json()["error"]
        told = error["code"] if isinstance(error, dict) else None
        assert (path, reply.status, told) == (path, 400, code)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/nothing", None),
        ("/users/u/nothing", "NOT_FOUND"),
        ("/users/", "NOT_FOUND"),
        ("/user-selection/u", None),
        ("/session-templates/t/u", "NOT_FOUND"),
        ("/session-configurations/nothing", None),
        ("/session-configurations/apply", "NOT_FOUND"),
        ("/world-books/w/nothing", "NOT_FOUND"),
        ("/world-book-selection/w", None),
        ("/traces/t", None),
        ("/ui-settings/u", None),
    ],
)
def test_unknown_paths_belong_to_the_family_that_the_table_names(path: str, code: str | None) -> None:
    """Object families name a code, the others write a text (spec/http §2, §3)."""
    shape = SHAPES[family_of(f"/v1{path}")]
    assert shape.is_object is (code is not None)
    with pytest.raises(RequestError) as raised:
        Router(ROUTES).find("GET", f"/v1{path}")
    assert (raised.value.status, raised.value.code) == (404, "NOT_FOUND")
