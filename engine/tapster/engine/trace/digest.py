"""Hashes and counts that trace records are made of.

Source: spec/trace §2.
"""

from collections.abc import Mapping

import attrs

from tapster.engine.ecma import Json, sha256_json, sha256_text, utf8, utf16_length


@attrs.frozen
class Counts:
    """How long a text is, in the three units a record keeps."""

    characters: int
    utf16_units: int
    utf8_bytes: int

    def to_json(self) -> dict[str, Json]:
        """The counts under their contract names."""
        return {"characters": self.characters, "utf16Units": self.utf16_units, "utf8Bytes": self.utf8_bytes}


def digest(value: Json) -> str:
    """The hash of a value: of a string its UTF-8 bytes, of anything else its ``JSON.stringify``."""
    return sha256_text(value) if isinstance(value, str) else sha256_json(value)


def count(text: str) -> Counts:
    """The lengths of a text; a lone surrogate is one character of three bytes."""
    units = utf16_length(text)
    pairs = sum(1 for character in text if character > "\uffff")
    # Two surrogates that JSON brought in apart are one code point.
    return Counts(units - pairs - _joined_surrogates(text), units, len(utf8(text)))


def _joined_surrogates(text: str) -> int:
    previous_is_high = False
    joined = 0
    for character in text:
        if previous_is_high and "\udc00" <= character <= "\udfff":
            joined += 1
            previous_is_high = False
        else:
            previous_is_high = "\ud800" <= character <= "\udbff"
    return joined


def message_text(message: Json) -> str:
    """The text blocks of a message, joined without a separator."""
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, list):
        return ""
    return "".join(
        block["text"]
        for block in content
        if isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)
    )


def content_hash(message: Json) -> str:
    """The hash of a message's ``content`` alone; ``[]`` when it has none."""
    content = message.get("content") if isinstance(message, Mapping) else None
    return digest([] if content is None else content)
