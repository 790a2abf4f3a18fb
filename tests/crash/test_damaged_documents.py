"""A data folder with one damaged document: the server starts and says so, and only what needs it answers its error."""

from pathlib import Path

import pytest

from tests.support.serve_process import ServeProcess, open_serve_process

OWN = "/tapster/api/v1"
CONTRACT = "/pmp-dsh-tavern/api"
BOOK = {"name": "b", "entries": {"0": {"uid": 0, "key": ["x"], "content": "c"}}}


async def fill(server: ServeProcess) -> str:
    """Something of every kind; a world book's id."""
    client = server.client
    answer = await client.post(f"{OWN}/import?filename=book.json", json=BOOK)
    book = str(answer.json()["resources"][0]["id"])
    for method, path, body in (
        ("PUT", f"{CONTRACT}/v1/ui-settings", {"locale": "en", "scale": 1.25}),
        ("POST", f"{OWN}/sessions", {"id": "s"}),
        ("POST", f"{CONTRACT}/v1/world-book-selection", {"sessionId": "s", "worldBookIds": [book]}),
    ):
        answer = await client.request(method, path, json=body)
        assert answer.status_code < 300, (path, answer.text)
    return book


async def status(server: ServeProcess, path: str) -> int:
    return (await server.client.get(path)).status_code


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "refused", "code"),
    [
        ("session-selections.json", f"{CONTRACT}/v1/world-book-selection?sessionId=s", None),
        ("tavern-trace-records.json", f"{CONTRACT}/v3/sessions/s/assemblies", None),
        ("tavern-assemblies.json", f"{CONTRACT}/v3/sessions/s/assemblies", None),
        ("assembly-presets.json", None, None),
        ("ui-settings.json", None, "DOCUMENT_SET_ASIDE"),
        ("chats/c.json", None, "DOCUMENT_SET_ASIDE"),
        ("presets/p.json", None, None),
        ("state.json", None, None),
        ("prompt-templates.json", None, None),
        ("mvu-instances.json", None, None),
        ("history-policies.json", None, None),
        ("session-templates.json", f"{CONTRACT}/v1/session-templates", None),
    ],
)
async def test_one_damaged_document_stops_nothing_else(
    tmp_path: Path, name: str, refused: str | None, code: str | None
) -> None:
    async with open_serve_process(tmp_path, TAPSTER_STORE="files") as server:
        book = await fill(server)
    damaged = tmp_path / name
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_bytes(b'{"half')
    async with open_serve_process(tmp_path, TAPSTER_STORE="files") as server:
        assert await status(server, f"{OWN}/ready") == 200
        found = (await server.client.get(f"{CONTRACT}/v1/world-books/{book}")).json()
        assert found["worldBook"]["name"] == "b"
        warnings = (await server.client.get(f"{OWN}/store")).json()["warnings"]
        if code is not None:
            assert [warning["code"] for warning in warnings] == [code]
            assert not damaged.exists()
            aside = [path for path in damaged.parent.iterdir() if path.name.startswith(f"{damaged.name}.unreadable-")]
            assert [path.read_bytes() for path in aside] == [b'{"half']
        else:
            assert damaged.read_bytes() == b'{"half'
            problems = (await server.client.get(f"{OWN}/store/check")).json()["problems"]
            assert [problem for problem in problems if damaged.name in problem]
        if refused is not None:
            answer = await server.client.get(refused)
            assert answer.status_code >= 500, answer.text
        if name == "session-selections.json":
            body = {"sessionId": "s", "worldBookIds": []}
            assert (await server.client.post(f"{CONTRACT}/v1/world-book-selection", json=body)).status_code >= 400
            assert damaged.read_bytes() == b'{"half'
        answer = await server.client.post(f"{OWN}/import?filename=book.json", json={**BOOK, "name": "second"})
        assert answer.status_code == 201
