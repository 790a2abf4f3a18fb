"""Who may use the page: other sites, other hosts, the token, forms that are too large."""

from pathlib import Path

import pytest

from tapster.api.page.door import MAX_FORM, MAX_UPLOAD, own_path
from tests.support.pages import Visitor, open_page

WRITES = [
    "/enter",
    "/library/import",
    "/library/users/new",
    "/library/users/u",
    "/library/users/u/delete",
    "/library/world_books/b/entries",
    "/library/world_books/b/entries/0",
    "/library/world_books/b/entries/0/delete",
    "/sessions/new",
    "/sessions/s/bindings",
    "/sessions/s/messages",
    "/sessions/s/cancel",
    "/sessions/s/preview",
]
FOREIGN = [
    {"origin": "http://evil.test"},
    {"origin": "null"},
    {"origin": ""},
    {"origin": "http://localhost:9999"},
    {"origin": "http://localhost:7788", "sec_fetch_site": "cross-site"},
]


@pytest.mark.parametrize("path", WRITES)
async def test_no_other_site_can_write(tmp_path: Path, path: str) -> None:
    async with open_page(tmp_path) as visitor:
        library = visitor.served.tapster.library
        await library.users.create({"id": "u", "name": "U", "description": ""})
        for headers in FOREIGN:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            reply = await visitor.post(path, {"name": "x", "text": "x"}, **named)
            assert (reply.status, b"PAGE_FORBIDDEN" in reply.body) == (403, True), headers
        assert [user["name"] for user in await library.users.list()] == ["U"]
        assert await visitor.served.tapster.host.headers() == ()


@pytest.mark.parametrize("path", ["/", "/sessions", "/static/page.css", "/sessions/s/stream"])
async def test_another_host_name_or_origin_reads_nothing(tmp_path: Path, path: str) -> None:
    async with open_page(tmp_path) as visitor:
        assert (await visitor.get(path, host="evil.test")).status == 403
        assert (await visitor.get(path, origin="http://evil.test")).status == 403
        assert (await visitor.get(path, sec_fetch_site="cross-site")).status in (200, 404)


async def test_a_remote_peer_is_refused(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        reply = await visitor.served.client.__class__(visitor.served.app, "10.0.0.9").send("GET", "/")
        assert reply.status == 403


async def test_every_answer_carries_the_headers(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        for path in ("/", "/sessions/none", "/static/htmx.min.js"):
            headers = (await visitor.get(path)).headers
            assert "default-src 'self'" in headers["content-security-policy"]
            assert "unsafe" not in headers["content-security-policy"]
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "same-origin"


async def test_the_token_is_asked_for_once(tmp_path: Path) -> None:
    async with open_page(tmp_path, token="s3cret") as visitor:
        closed = await visitor.get("/sessions")
        assert closed.status == 401
        assert b'name="next" value="/sessions"' in closed.body
        assert (await visitor.get("/static/page.css")).status == 200
        assert (await visitor.post("/library/users/new", {"name": "x"})).status == 401
        assert (await visitor.post("/enter", {"token": "wrong", "next": "/"})).status == 401
        assert visitor.cookies == {}
        entered = await visitor.post("/enter", {"token": "s3cret", "next": "/sessions"})
        assert (entered.status, entered.headers["location"]) == (303, "/sessions")
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert "SameSite=Strict" in entered.headers["set-cookie"]
        assert (await visitor.get("/sessions")).status == 200

        other = Visitor(visitor.served)
        assert (await other.get("/sessions?token=wrong")).status == 401
        linked = await other.get("/sessions?token=s3cret")
        assert (linked.status, linked.headers["location"]) == (303, "/sessions")
        assert (await other.get("/sessions")).status == 200


@pytest.mark.parametrize("path", ["//evil.test/x", "/\\evil.test", "https://evil.test", "", "/a\nb"])
def test_nobody_is_led_elsewhere(path: str) -> None:
    assert own_path(path) == "/"


@pytest.mark.parametrize(("path", "limit"), [("/library/import", MAX_UPLOAD), ("/sessions/new", MAX_FORM)])
async def test_what_is_too_large_is_refused_before_it_is_read(tmp_path: Path, path: str, limit: int) -> None:
    async with open_page(tmp_path) as visitor:
        reply = await visitor.post(path, {}, **{"content-length": str(limit + 1)})
        assert (reply.status, b"too large" in reply.body) == (413, True)
        assert reply.headers["connection"] == "close"
        assert (await visitor.post(path, {}, **{"content-length": ""})).status == 411
        assert await visitor.served.tapster.host.headers() == ()
