"""tavern_api http.v1: whole request sequences through the app, over a real store and library."""

import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import trio

from tapster.engine.policy import BLOCK_REASON
from tapster.engine.trace.answers import AUDIT_AUTHORITY
from tests.conformance.registry import adapter
from tests.support.asgi import Reply
from tests.support.contract import open_contract

Json = Any
ROOT = "/pmp-dsh-tavern/api/v1"
MASKS = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "<uuid>"),
    (re.compile(r"world-book-[0-9a-f]{16}"), "world-book-<hex16>"),
    (re.compile(r"\d{4}-\d{2}-\d{2}T[\d:.]+Z"), "<time>"),
)
TEXTS = {BLOCK_REASON: "(default policy text)", AUDIT_AUTHORITY: "(authority text)"}
RESOURCES = frozenset({"preset", "character", "worldBook"})
RESOURCE_LISTS = frozenset({"presets", "characters", "worldBooks"})
PLACE = re.compile(r"\$(\d+)((?:\.\w+)+)")


@adapter("tavern_api", "http.v1")
def run_sequence(given: Json) -> Json:
    with tempfile.TemporaryDirectory() as folder:
        replies = trio.run(partial(answers, Path(folder), given))
    return {"responses": [{"status": reply.status, "body": shown(reply)} for reply in replies]}


async def answers(folder: Path, given: Json) -> list[Reply]:
    replies: list[Reply] = []
    async with open_contract(folder, running=given.get("runningAgents") or ()) as served:
        for request in given["requests"]:
            body = filled(request.get("body"), replies)
            data = body.encode() if isinstance(body, str) else None
            target = ROOT + filled(request["url"], replies)
            sent = {"data": data} if data is not None else {"json": body}
            replies.append(await served.client.send(request["method"], target, **sent))
    return replies


def filled(value: Json, replies: list[Reply]) -> Json:
    """The value with ``$N.a.b`` replaced by that field of answer N."""
    if isinstance(value, dict):
        return {key: filled(item, replies) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, replies) for item in value]
    if not isinstance(value, str):
        return value

    def field(match: re.Match[str]) -> Json:
        found = replies[int(match.group(1))].json()
        for name in match.group(2).split(".")[1:]:
            found = found[int(name) if isinstance(found, list) else name]
        return found

    whole = PLACE.fullmatch(value)
    return field(whole) if whole else PLACE.sub(lambda match: str(field(match)), value)


def shown(reply: Reply) -> Json:
    body = reply.json()
    if not isinstance(body, dict) or body.get("ok", True):  # a download is a document without "ok"
        return masked(body)
    error = body["error"]
    code = error.get("code") if isinstance(error, dict) else body.get("code")
    return {"ok": False, "errorShape": "object" if isinstance(error, dict) else "string", "code": code}


def masked(value: Json, name: str = "") -> Json:
    if isinstance(value, str):
        for pattern, mask in MASKS:
            value = pattern.sub(mask, value)
        return TEXTS.get(value, value)
    if isinstance(value, list):
        return [masked(item, "preset" if name in RESOURCE_LISTS else "") for item in value]
    if not isinstance(value, dict):
        return value
    if name in RESOURCES and "id" in value and "missing" not in value:
        value = {key: value[key] for key in ("id", "name")}
    return {key: masked(item, key) for key, item in value.items()}
