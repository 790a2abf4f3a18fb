"""A client that talks ASGI to an app in process, with the raw path exactly as given."""

import json as json_module
from typing import Any
from urllib.parse import unquote

import attrs
import trio
from quart_trio import QuartTrio

Json = Any


@attrs.frozen
class Reply:
    """A finished response."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Json:
        return json_module.loads(self.body)


@attrs.frozen
class AsgiClient:
    """Sends requests to an app as one peer."""

    app: QuartTrio
    peer: str | None = "127.0.0.1"
    host: str = "localhost:7788"

    async def send(
        self,
        method: str,
        target: str,
        *,
        json: Json = None,
        data: bytes | None = None,
        headers: dict[str, str] | None = None,
        pieces: int = 1,
        is_cut: bool = False,
    ) -> Reply:
        """One request; a write gets the Origin and media type that the contract asks for unless given.

        ``is_cut``: the body never ends.
        """
        body = data if data is not None else b"" if json is None else json_module.dumps(json).encode()
        named = {"host": self.host, "content-length": str(len(body))}
        if method not in {"GET", "HEAD", "OPTIONS"}:
            named |= {"origin": f"http://{self.host}", "content-type": "application/json"}
        named |= {key.lower(): value for key, value in (headers or {}).items()}
        path, _, query = target.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(key.encode(), value.encode("utf-8")) for key, value in named.items() if value != ""],
            "client": (self.peer, 50000) if self.peer else None,
            "server": ("127.0.0.1", 7788),
            "state": {},
            "extensions": {},
        }
        return await _exchange(self.app, scope, body, pieces, is_cut)


async def _exchange(app: QuartTrio, scope: dict[str, Any], body: bytes, pieces: int, is_cut: bool) -> Reply:
    size = max(1, -(-len(body) // pieces))
    chunks = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
    waiting = [
        {"type": "http.request", "body": chunk, "more_body": is_cut or index < len(chunks) - 1}
        for index, chunk in enumerate(chunks)
    ]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await trio.lowlevel.checkpoint()
        if waiting:
            return waiting.pop(0)
        await trio.sleep_forever()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        await trio.lowlevel.checkpoint()
        sent.append(message)

    await app(scope, receive, send)  # type: ignore[arg-type]
    start = sent[0]
    headers = {name.decode().lower(): value.decode() for name, value in start["headers"]}
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Reply(start["status"], headers, content)
