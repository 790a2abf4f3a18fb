"""What is noticed while a card is read: oddities, features passed through, macros nobody knows.

Source: spec/resources §3.2.
"""

import re
from collections.abc import Iterator
from itertools import islice

from tapster.engine.ecma import WHITE_SPACE, is_record, trim
from tapster.engine.limits import MACROS_SCANNED

from .model import CardData, CardFormat, Finding

_NAME_END = re.compile(f"::|[{re.escape(WHITE_SPACE)}]")
_KNOWN_MACROS = frozenset(
    {
        "char", "user", "original", "description", "personality", "scenario", "mesexamples", "lastusermessage",
        "lastcharmessage", "trim", "setvar", "getvar", "random", "roll",
    }
)  # fmt: skip
MISSING_NAME = Finding("missing-name", "the card has no name; it is listed under a stand-in", "data.name")


def warnings(
    data: CardData, format: CardFormat, spec_version: str | None, png_keyword: str | None, has_both_chunks: bool
) -> tuple[Finding, ...]:
    """The warnings of a freshly read card, container first."""
    found = []
    is_v3 = format == "character-card-v3"
    if is_v3 and spec_version != "3.0" and not (spec_version or "").startswith("3.0."):
        found.append(
            Finding("newer-v3-version", f"the card states version {spec_version!a}; read as 3.0", "spec_version")
        )
    if is_v3 and png_keyword == "chara":
        found.append(Finding("v3-in-legacy-chunk", "a version 3 card in the chunk of older cards", "png.chara"))
    if has_both_chunks:
        found.append(Finding("png-v3-precedence", "the PNG holds two cards; 'ccv3' was taken", "png.ccv3"))
    return (*found, *name_warnings(data))


def name_warnings(data: CardData) -> tuple[Finding, ...]:
    """The warning about a blank name, or nothing."""
    return () if trim(data.name) else (MISSING_NAME,)


def unsupported_features(data: CardData, format: CardFormat) -> tuple[Finding, ...]:
    """Features that are kept and exported, and run elsewhere or not at all."""
    depth_prompt = data.extensions.get("depth_prompt")
    rows = (
        (
            format == "character-card-v3" and data.assets,
            "v3-assets-pass-through",
            "assets are kept, not shown",
            "assets",
        ),
        (data.extensions, "extensions-pass-through", "extensions are kept as they are", "extensions"),
        (
            data.character_book is not None,
            "embedded-character-book-pass-through",
            "the embedded book is kept with the card",
            "character_book",
        ),
        (
            data.post_history_instructions,
            "post-history-runtime-required",
            "these instructions act when a prompt is built",
            "post_history_instructions",
        ),
        (
            is_record(depth_prompt),
            "depth-prompt-runtime-required",
            "the depth prompt acts when a prompt is built",
            "extensions.depth_prompt",
        ),
    )
    return tuple([Finding(code, message, f"data.{path}") for holds, code, message, path in rows if holds])


def unknown_macro_names(data: CardData) -> tuple[str, ...]:
    """Names of macros in the card's texts that the compatibility renderer does not know; sorted, unique."""
    texts = (
        data.description,
        data.personality,
        data.scenario,
        data.first_message,
        data.message_example,
        data.system_prompt,
        data.post_history_instructions,
        *data.alternate_greetings,
        *data.group_only_greetings,
    )
    bodies = (body for text in texts if "{{" in text for body in _macro_bodies(text))
    names = {_macro_name(body) for body in islice(bodies, MACROS_SCANNED)}
    unknown = {name for name in names - _KNOWN_MACROS if name and not name.startswith("//")}
    return tuple(sorted(unknown, key=lambda name: name.encode("utf-16-be", "surrogatepass")))


def _macro_bodies(text: str) -> Iterator[str]:
    """What stands between ``{{`` and ``}}`` without braces inside; linear in any text."""
    start = 0
    end = text.find("}}")
    while end >= 0:
        opened = text.rfind("{", start, end)
        body = text[opened + 1 : end]
        if opened > start and text[opened - 1] == "{" and "}" not in body:
            yield body
            start = end + 2
        else:
            start = end + 1
        end = text.find("}}", start)


def _macro_name(body: str) -> str:
    return _NAME_END.split(trim(body), maxsplit=1)[0].lower()
