"""Files made to hurt a reader, each as large as a limit allows, and small good ones to mutate."""

import base64
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

from tapster.engine.formats.png import write_png
from tapster.engine.formats.zip_files import stored_member, write_zip

_HEADER = b"\0\0\0\1\0\0\0\1\x08\0\0\0\0"
_PIXELS = zlib.compress(b"\0\x7f")
_SEED_BYTES = 200_000


def hostile_files(limit: int) -> Iterator[tuple[str, bytes]]:
    """(what it is, bytes), none larger than ``limit``."""
    yield from ((label, data[:limit]) for label, data in _texts(limit))
    yield from ((label, data) for label, data in _pngs(limit) if len(data) <= limit)
    yield from ((label, data) for label, data in _zips() if len(data) <= limit)


def _texts(limit: int) -> Iterator[tuple[str, bytes]]:
    yield "nothing", b""
    yield "depth of lists", b"[" * limit
    yield "depth 100,000", b'{"entries":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    yield "depth of objects", b'{"a":' * (limit // 5)
    yield "depth 250", b'{"name":"a","first_mes":"","x":' + b"[" * 250 + b"]" * 250 + b"}"
    yield "many keys", _object(b'"k%d":0', limit)
    yield "one key over and over", b'{"prompts":[],"entries":{}' + b',"a":0' * (limit // 6 - 9) + b"}"
    yield "index keys", _object(b'"%d":0', min(limit, 2_000_000))
    for label, item in (("empty lists", b"[]"), ("empty objects", b"{}"), ("numbers", b"0"), ("texts", b'""')):
        yield f"many {label}", b'{"entries":[' + (item + b",") * (limit // (len(item) + 1) - 9) + item + b"]}"
        yield f"240,000 {label}", b'{"prompts":[' + (item + b",") * 239_000 + item + b"]}"
        yield f"99,000 {label} in a book", b'{"entries":{},"x":[' + (item + b",") * 98_000 + item + b"]}"
    yield "240,000 nested pairs", b'{"name":"a","first_mes":"","x":[' + b'{"":[]},' * 119_000 + b"[]]}"
    for item in (b"{}", b'{"key":["a","b"],"content":"x","order":"3"}', b'{"keys":[],"extensions":{"depth":2}}'):
        yield "10,000 entries", b'{"entries":[' + (item + b",") * 9_999 + item + b"]}"
    yield "10,000 prompts", b'{"prompts":[' + b'{"identifier":"a","content":"x"},' * 9_999 + b"{}]}"
    yield "10,000 orders", b'{"prompts":[{}],"prompt_order":[' + b'{"order":[{"identifier":"a"}]},' * 9_999 + b"{}]}"
    yield "one long text", b'{"name":"a","first_mes":"' + b"x" * (limit - 60) + b'"}'
    yield "one long text of macros", b'{"name":"a","first_mes":"' + b"{{ab}}" * (limit // 6 - 9) + b'"}'
    yield "macros that do not end", b'{"name":"a","first_mes":"' + b"{{" * (limit // 2 - 30) + b'"}'
    yield "backslashes", b'{"name":"a","first_mes":"' + b"\\\\" * (limit // 2 - 30) + b'"}'
    yield "quotes", b'"' * limit
    yield "escaped surrogates", b'{"name":"a","first_mes":"' + b"\\ud800" * (limit // 6 - 9) + b'"}'
    yield "a long number", b'{"name":"a","first_mes":"","n":' + b"9" * (limit - 60) + b"}"
    yield "a long fraction", b'{"name":"a","first_mes":"","n":0.' + b"1" * (limit - 60) + b"}"
    yield "not a number", b'{"entries":{},"n":NaN}'
    yield "blanks", b" " * limit
    yield "NULs", b"\0" * limit
    yield "bad UTF-8", b"\xff\xfe" + b"\xed\xa0\x80" * (limit // 3)
    yield "chat of short lines", b'{"user_name":"a"}\n' + b'{"mes":""}\n' * 49_000
    yield "chat of blank lines", b'{"user_name":"a"}\n' + b"\n" * (limit - 60)
    yield "chat of broken lines", b'{"user_name":"a"}\n' + b'{"mes\n' * 49_000
    yield "chat of one long line", b'{"mes":"' + b"\xe6\x96\x87" * (limit // 3 - 9) + b'"}'
    yield "chat of swipes", b'{"mes":"","swipes":[' + b'"a",' * 390_000 + b'"b"]}'
    yield "chat of CRs", b'{"user_name":"a"}\n{"mes":"x"}' + b"\r" * (limit - 60)


def _object(member: bytes, limit: int) -> bytes:
    parts = [b'{"prompts":[],"entries":{}']
    size = len(parts[0])
    number = 0
    while size < limit - 64:
        parts.append(b"," + member % number)
        size += len(parts[-1])
        number += 1
    return b"".join(parts) + b"}"


def _png(*chunks: tuple[bytes, bytes]) -> bytes:
    return write_png([(b"IHDR", _HEADER), (b"IDAT", _PIXELS), *chunks, (b"IEND", b"")])


def _pngs(limit: int) -> Iterator[tuple[str, bytes]]:
    text = base64.b64encode(b'{"name":"a","first_mes":"' + b"x" * 2_000_000 + b'"}')
    dense = base64.b64encode(b'{"name":"a","first_mes":"","x":[' + b"[]," * 240_000 + b"[]]}")
    yield "PNG with a dense card", _png((b"tEXt", b"chara\0" + dense))
    yield "PNG with large cards", _png(*[(b"tEXt", b"chara\0" + text)] * 11)
    yield "PNG with many cards", _png(*[(b"tEXt", b"Chara\0" + base64.b64encode(b"x" * 600))] * 9_990)
    yield "PNG of many chunks", _png(*[(b"prVt", b"")] * 20_000)
    yield "PNG with a bomb", _png((b"zTXt", b"chara\0\0" + zlib.compress(b" " * 60_000_000)))
    bomb = zlib.compress(base64.b64encode(b"{" + b" " * 2_000_000))
    yield "PNG with many bombs", _png(*[(b"zTXt", b"chara\0\0" + bomb)] * 900)
    yield "PNG with iTXt bombs", _png(*[(b"iTXt", b"ccv3\0\1\0\0\0" + bomb)] * 900)
    yield "PNG of one large chunk", _png((b"IDAT", b"x" * (limit - 200)))
    yield "PNG without base64", _png((b"tEXt", b"chara\0" + b"-" * 2_700_000))


def _zips() -> Iterator[tuple[str, bytes]]:
    yield "zip of many members", write_zip([stored_member(f"a{number}", b"") for number in range(60_000)])
    yield "zip of 4,000 members", write_zip([stored_member(f"a{number}", b"x") for number in range(4_000)])
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(b" " * 16_000_000) + packer.flush()
    member = stored_member("card.json", b" " * 16_000_000)
    yield "zip bomb", write_zip([type(member)("card.json", 8, member.crc, 16_000_000, packed)])
    yield "zip with a dense card", write_zip([stored_member("card.json", b'{"data":[' + b"[]," * 240_000 + b"[]]}")])


def seeds(corpus: Path | None) -> list[bytes]:
    """Good files: a few of our own, and those of a folder."""
    card = {"spec": "chara_card_v3", "spec_version": "3.0", "data": {
        "name": "Ann", "first_mes": "Hi {{user}}", "tags": ["a"], "extensions": {"depth_prompt": {"depth": 4}},
        "character_book": {"extensions": {}, "entries": [{"id": 1, "keys": ["a"], "enabled": True}]}}}  # fmt: skip
    book = {"name": "B", "entries": {"0": {"uid": 0, "key": ["a"], "order": 5, "characterFilter": {"names": ["x"]}}}}
    preset = {"temperature": 1, "prompts": [{"identifier": "a", "content": "x", "injection_depth": 2}],
              "prompt_order": [{"character_id": 100001, "order": [{"identifier": "a", "enabled": True}]}]}  # fmt: skip
    text = json.dumps(card).encode()
    encoded = base64.b64encode(text)
    files = [
        text,
        json.dumps(book).encode(),
        json.dumps(preset).encode(),
        json.dumps({"personas": {"a.png": "A"}, "persona_descriptions": {"a.png": {"description": "x"}}}).encode(),
        b'{"user_name":"U","chat_metadata":{}}\n{"name":"U","mes":"hi","swipes":["hi","ho"],"swipe_id":1}\n',
        _png((b"tEXt", b"chara\0" + encoded), (b"tEXt", b"ccv3\0" + encoded)),
        _png(
            (b"zTXt", b"chara\0\0" + zlib.compress(encoded)), (b"iTXt", b"ccv3\0\1\0en\0x\0" + zlib.compress(encoded))
        ),
        write_zip([stored_member("card.json", text), stored_member("assets/a.png", _png())]),
        b'{"lorebookVersion":5,"entries":[{"keys":["a"],"text":"x","contextConfig":{"budgetPriority":4}}]}',
        b'{"type":"risu","ver":1,"data":[{"key":"a, b","content":"x","insertorder":3}]}',
        b'{"kind":"memory","entries":[{"keywords":["a"],"entry":"x","weight":2}]}',
    ]
    if corpus is not None:
        files += [path.read_bytes()[:_SEED_BYTES] for path in sorted(corpus.rglob("*")) if path.is_file()]
    return files
