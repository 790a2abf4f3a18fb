"""SillyTavern chat files: JSON Lines with a header, swipes and hidden messages.

A damaged file is read as far as it goes and never taken for an empty one: what could not be read is said in notes.

Source: issue "chat JSONL with swipes"; vectors' README "parse_chat".
"""

from collections.abc import Iterator, Mapping

import attrs

from tapster.engine.ecma import Json, parse_json, stringify, utf8
from tapster.engine.errors import FormatError
from tapster.engine.limits import CHAT_BYTES, CHAT_LINES, CHAT_VALUES, JSON_DEPTH

from .json_guard import JsonLimits, check_json
from .notes import Note, Notes

_BOM = "\ufeff"
_HEADER_MEMBERS = ("chat_metadata", "user_name", "character_name")


@attrs.frozen
class ChatMessage:
    """One line of a chat; ``text`` is the swipe that is shown, ``raw`` the whole line."""

    name: str
    text: str
    is_user: bool
    is_hidden: bool
    swipes: tuple[str, ...]
    swipe_index: int
    raw: Mapping[str, Json]


@attrs.frozen
class Chat:
    """A chat file: its header (empty when it had none) and its messages, oldest first."""

    header: Mapping[str, Json]
    messages: tuple[ChatMessage, ...]
    notes: tuple[Note, ...] = ()

    @property
    def metadata(self) -> Mapping[str, Json]:
        """SillyTavern's ``chat_metadata``: author's note, variables, timed effects."""
        value = self.header.get("chat_metadata")
        return value if isinstance(value, dict) else {}


def parse_chat(data: bytes | str) -> Chat:
    """The chat a JSONL file holds.

    Raises:
        FormatError: ``chat-too-large``, ``chat-unreadable`` (no line of it is a message or header), or a limit of
            the JSON guard.
    """
    notes = Notes()
    text = _text(data, notes)
    header: Mapping[str, Json] = {}
    messages: list[ChatMessage] = []
    lines = list(_objects(text, notes))
    for number, raw in lines:
        if number == lines[0][0] and _is_header(raw):
            header = raw
        else:
            messages.append(_message(raw, number, notes))
    if not lines:
        raise FormatError(
            "chat-unreadable", "no line of the chat could be read; the file is damaged, restore a backup of it"
        )
    if not header:
        notes.add("chat-no-header", "the chat has no readable header line; its metadata is empty")
    return Chat(header, tuple(messages), tuple(notes.items))


def export_chat(chat: Chat) -> bytes:
    """The chat as a JSONL file; what the reader does not know is written as it was."""
    head = [chat.header] if chat.header else []
    return b"".join(utf8(stringify(line)) + b"\n" for line in [*head, *(message.raw for message in chat.messages)])


def _text(data: bytes | str, notes: Notes) -> str:
    given = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    if len(given) > CHAT_BYTES:
        raise FormatError("chat-too-large", f"a chat has at most {CHAT_BYTES} bytes; this one has {len(given)}")
    check_json(given, JsonLimits(CHAT_VALUES, JSON_DEPTH))
    text = given.decode("utf-8", "replace") if isinstance(data, bytes) else data
    if text.startswith(_BOM):
        notes.add("bom", "a byte-order mark at the start was skipped")
        text = text[1:]
    if "\0" in text:
        notes.add("nul-bytes", "the file holds NUL bytes (an interrupted write); they were left out")
        text = text.replace("\0", "")
    if "\ufffd" in text and isinstance(data, bytes) and b"\xef\xbf\xbd" not in data:
        notes.add("bad-utf8", "the file is not clean UTF-8; U+FFFD stands for what could not be read")
    return text


def _objects(text: str, notes: Notes) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """Line number and object of every readable line."""
    number = 0
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        line = text[start:end].strip()
        start = end + 1
        number += 1
        if number > CHAT_LINES:
            raise FormatError("chat-too-many-lines", f"a chat has at most {CHAT_LINES} lines")
        if line:
            value = _parsed(line, number, start >= len(text), notes)
            if value is not None:
                yield number, value


def _parsed(line: str, number: int, is_last: bool, notes: Notes) -> Mapping[str, Json] | None:
    try:
        value = parse_json(line)
    except FormatError:
        value = None
    if isinstance(value, dict):
        return value
    if is_last:
        notes.add("cut-last-line", f"line {number}, the last, was cut while it was written; it was left out")
    else:
        notes.add("bad-line", f"line {number} is not a JSON object; it was left out")
    return None


def _is_header(raw: Mapping[str, Json]) -> bool:
    return "mes" not in raw and any(member in raw for member in _HEADER_MEMBERS)


def _message(raw: Mapping[str, Json], number: int, notes: Notes) -> ChatMessage:
    name, text = raw.get("name"), raw.get("mes")
    given = raw.get("swipes")
    swipes = tuple([item for item in given if isinstance(item, str)]) if isinstance(given, list) else ()
    index = raw.get("swipe_id")
    if not isinstance(text, str):
        notes.add("type", f"line {number} has no text 'mes'; it counts as empty", f"{number}.mes")
    return ChatMessage(
        name=name if isinstance(name, str) else "",
        text=text if isinstance(text, str) else "",
        is_user=raw.get("is_user") is True,
        is_hidden=raw.get("is_system") is True,
        swipes=swipes,
        swipe_index=int(index) if isinstance(index, int) and 0 <= index < len(swipes) else 0,
        raw=raw,
    )
