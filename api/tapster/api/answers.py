"""What a handler gives back, before it becomes a response of the framework."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, final
from urllib.parse import quote

import attrs
from quart import Response

from tapster.engine.contract import SECURITY_HEADERS
from tapster.engine.ecma import Json, json_bytes, utf8, utf16_length, utf16_slice
from tapster.runtime import Threads

from .ports import Download

JSON_TYPE = "application/json; charset=utf-8"
MAX_FILE_NAME_UNITS = 255
LOOP_VALUES: Final = 500
"""Members of a body that is written in the event loop."""
LOOP_CHARACTERS: Final = 16_384
"""Characters in the strings of a body that is written in the event loop."""
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@attrs.frozen
class Answer:
    """A JSON body with its status."""

    body: Json
    status: int = 200
    headers: Mapping[str, str] = attrs.Factory(dict)


@attrs.frozen
class Attachment:
    """A download."""

    download: Download
    headers: Mapping[str, str] = attrs.Factory(dict)


def ok(status: int = 200, **members: Json) -> Answer:
    """A success body of the contract."""
    return Answer({"ok": True, **members}, status)


@final
class Responder:
    """Makes responses; an answer that is long to write is written in a thread, so that the event loop goes on."""

    def __init__(self) -> None:
        self._threads = Threads("answers", 1)

    async def response(self, answer: Answer | Attachment) -> Response:
        """The framework's response, with the headers that every answer carries."""
        if isinstance(answer, Attachment):
            return attachment_response(answer)
        body = answer.body
        data = await self._threads.run(json_bytes, body) if is_long(body) else json_bytes(body)
        response = Response(data, answer.status, content_type=JSON_TYPE)
        response.headers.update({**SECURITY_HEADERS, **answer.headers})
        return response


def attachment_response(answer: Attachment) -> Response:
    """A download as a response."""
    response = Response(answer.download.data, 200, content_type=answer.download.media_type)
    response.headers["Content-Disposition"] = attachment_disposition(answer.download.name)
    response.headers.update({**SECURITY_HEADERS, **answer.headers})
    return response


def is_long(body: Json) -> bool:
    """Whether writing a body as JSON takes longer than a fraction of a millisecond; looks only until that is clear."""
    values, characters = 0, 0
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            characters += len(value)
        elif isinstance(value, Mapping | Sequence):
            values += len(value)
            if values <= LOOP_VALUES:
                waiting.extend(value.values() if isinstance(value, Mapping) else value)
        if values > LOOP_VALUES or characters > LOOP_CHARACTERS:
            return True
    return False


def attachment_disposition(name: str, fallback: str = "download") -> str:
    """``Content-Disposition`` of a download. Source: spec/http §5.3."""
    clean = _CONTROLS.sub("", name).strip()
    if utf16_length(clean) > MAX_FILE_NAME_UNITS:
        clean = utf16_slice(clean, 0, MAX_FILE_NAME_UNITS)
    encoded = quote(utf8(clean or fallback), safe="!~*()-_.")
    return f"attachment; filename*=UTF-8''{encoded}"
