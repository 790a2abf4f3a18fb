"""What a handler gives back, before it becomes a response of the framework."""

import re
from collections.abc import Mapping
from urllib.parse import quote

import attrs
from quart import Response

from tapster.engine.contract import SECURITY_HEADERS
from tapster.engine.ecma import Json, stringify, utf8, utf16_length, utf16_slice

from .ports import Download

JSON_TYPE = "application/json; charset=utf-8"
MAX_FILE_NAME_UNITS = 255
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


def to_response(answer: Answer | Attachment) -> Response:
    """The framework's response, with the headers that every answer carries."""
    if isinstance(answer, Attachment):
        download = answer.download
        response = Response(download.data, 200, content_type=download.media_type)
        response.headers["Content-Disposition"] = attachment_disposition(download.name)
    else:
        response = Response(utf8(stringify(answer.body)), answer.status, content_type=JSON_TYPE)
    response.headers.update({**SECURITY_HEADERS, **answer.headers})
    return response


def attachment_disposition(name: str, fallback: str = "download") -> str:
    """``Content-Disposition`` of a download. Source: spec/http §5.3."""
    clean = _CONTROLS.sub("", name).strip()
    if utf16_length(clean) > MAX_FILE_NAME_UNITS:
        clean = utf16_slice(clean, 0, MAX_FILE_NAME_UNITS)
    encoded = quote(utf8(clean or fallback), safe="!~*()-_.")
    return f"attachment; filename*=UTF-8''{encoded}"
