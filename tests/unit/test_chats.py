"""Chat files, whole and damaged."""

import json

from tapster.engine.formats.chats import export_chat, parse_chat

HEADER = '{"user_name":"U","character_name":"C","chat_metadata":{"variables":{"a":"1"}}}'
LINES = [
    HEADER,
    '{"name":"C","is_user":false,"mes":"b","swipes":["a","b"],"swipe_id":1,"extra":{"x":1}}',
    '{"name":"U","is_user":true,"mes":"hi","is_system":true}',
]
TEXT = "\n".join(LINES)


def test_swipes_and_hidden_messages() -> None:
    chat = parse_chat(TEXT)
    first, second = chat.messages
    assert (first.text, first.swipes, first.swipe_index, first.is_user) == ("b", ("a", "b"), 1, False)
    assert (second.is_user, second.is_hidden) == (True, True)
    assert chat.metadata == {"variables": {"a": "1"}}
    assert chat.notes == ()


def test_an_untouched_chat_comes_back_line_for_line() -> None:
    assert export_chat(parse_chat(TEXT)).decode() == TEXT + "\n"


def test_damage_is_said_and_the_rest_is_read() -> None:
    damaged = "\ufeff" + TEXT + '\nnonsense\n[1]\n{"name":"U","mes":7}\n{"name":"C","mes":"cu'
    chat = parse_chat(damaged.encode())
    assert [message.text for message in chat.messages] == ["b", "hi", ""]
    assert [note.code for note in chat.notes] == ["bom", "bad-line", "bad-line", "cut-last-line", "type"]


def test_nul_bytes_inside_are_left_out() -> None:
    chat = parse_chat((TEXT + "\n" + "\0" * 8).encode())
    assert len(chat.messages) == 2
    assert [note.code for note in chat.notes] == ["nul-bytes"]


def test_a_first_line_that_cannot_be_read_does_not_empty_the_chat() -> None:
    chat = parse_chat(TEXT.replace(HEADER, HEADER[:-9]))
    assert [message.text for message in chat.messages] == ["b", "hi"]
    assert [note.code for note in chat.notes] == ["bad-line", "chat-no-header"]


def test_lone_surrogates_survive() -> None:
    line = json.dumps({"name": "C", "mes": "\ud800"})
    assert parse_chat(export_chat(parse_chat(line))).messages[0].text == "\ud800"
