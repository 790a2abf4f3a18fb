"""``st_cards``: what SillyTavern reads, stores and writes, by the op of each line."""

import base64
from collections.abc import Callable
from typing import Any

from tapster.engine.ecma import parse_json
from tapster.engine.errors import FormatError
from tapster.engine.formats import png
from tapster.engine.formats.cards import fulfilled_version, sillytavern
from tapster.engine.formats.world_books import to_character_book, to_world_info
from tests.conformance.compare import differences
from tests.conformance.registry import adapter

Json = Any
NOW = "2024-03-09T14:05:09.000Z"
CHAT_STAMP = "2024-03-09@14h05m09s000ms"
ERROR_KEYS = ("read_error", "import_error", "list_error")


def _compare(expected: Json, actual: Json) -> list[str]:
    """Structural; of errors only that there is one."""
    return differences(_without_messages(expected), _without_messages(actual))


def _without_messages(value: Json) -> Json:
    if not isinstance(value, dict):
        return value
    return {key: True if key in ERROR_KEYS else item for key, item in value.items()}


def _imported(text: str, run: Any) -> Json:
    try:
        card = run(parse_json(text), chat_stamp=CHAT_STAMP, now=NOW)
    except FormatError as error:
        return {"import_error": error.message}
    return {"imported": card, "returned_name": "" if card is None else card["name"]}


def _validated(text: str, *, with_last_error: bool) -> Json:
    try:
        value = parse_json(text)
    except FormatError:
        return {"validator": None}
    if value is None:
        return {"validator": None}
    found = fulfilled_version(value)
    out: Json = {"validator": found.version or False}
    if with_last_error:
        out["validator_last_error"] = found.failed_at
    return out


def _png(given: Json) -> Json:
    try:
        text = png.read_sillytavern_text(base64.b64decode(given["png_base64"])).text
    except FormatError as error:
        return {"read_error": error.message, "import_error": error.message}
    out = {"text": text, **_imported(text, sillytavern.import_png_json), **_validated(text, with_last_error=False)}
    try:
        out["list_normalised"] = sillytavern.list_card(parse_json(text), chat_stamp=CHAT_STAMP, now=NOW)
    except FormatError as error:
        out["list_error"] = error.message
    return out


def _json(given: Json) -> Json:
    text = given["json_text"]
    return {**_imported(text, sillytavern.import_json), **_validated(text, with_last_error=True)}


def _png_write(given: Json) -> Json:
    texts = sillytavern.png_texts(given["card_text"])
    encoded = [(keyword, base64.b64encode(text.encode())) for keyword, text in texts]
    data = png.embed_raw(base64.b64decode(given["png_base64"]), encoded, every_form=True)
    chunks = []
    for chunk in png.iter_chunks(data):
        if chunk.type == b"tEXt":
            keyword, _, body = chunk.data.partition(b"\0")
            chunks.append({"keyword": keyword.decode(), "decoded": png.decode_base64(body).decode("utf-8", "replace")})
    return {
        "png_base64": base64.b64encode(data).decode(),
        "text_chunks": chunks,
        "read_back": png.read_sillytavern_text(data).text,
    }


OPS: dict[str, Callable[[Json], Json]] = {
    "png": _png,
    "json": _json,
    "png_write": _png_write,
    "book_export": lambda given: {"character_book": to_character_book(given["name"], given["entries"])},
    "character_book": lambda given: {"world_info": to_world_info(given["book"])},
}


@adapter("st_cards", compare=_compare)
def st_cards(given: Json) -> Json:
    return OPS[given["op"]](given)
