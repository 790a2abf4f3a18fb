"""Identifier patterns, content hashes and derived message ids.

Source: spec/assembler "Conventions", §8.1.
"""

import re

from tapster.engine.ecma import Json, quote, sha256_json, sha256_text

SID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/-]{0,159}")
"""Sources, plugins, positions, strategies, rule kinds."""
RULE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
PRESET_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")
SESSION_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,199}")
RESERVED_IDS = frozenset({"__proto__", "constructor", "prototype"})


def is_sid(value: object) -> bool:
    """Whether a value is an identifier of a source, plugin, position or strategy."""
    return isinstance(value, str) and SID.fullmatch(value) is not None


def is_rule_id(value: object) -> bool:
    """Whether a value may name a rule of a preset."""
    return isinstance(value, str) and RULE_ID.fullmatch(value) is not None


def is_preset_id(value: object) -> bool:
    """Whether a value may name a stored preset."""
    return isinstance(value, str) and PRESET_ID.fullmatch(value) is not None and value not in RESERVED_IDS


def content_hash(text: str, role: str) -> str:
    """The hash of a contribution: its text and its role."""
    return sha256_text(f'{{"text":{quote(text)},"role":{quote(role)}}}')


def message_id(key: str, content: str) -> str:
    """The stable id of a contributed message, shaped as a UUID.

    Args:
        key: the block key ``<rule>:<block>``.
        content: the contribution's content hash.
    """
    digest = sha256_text(f'{{"id":{quote(key)},"contentHash":{quote(content)}}}')
    return uuid_shape(sha256_text(quote("tavern-" + digest[:32])))


def uuid_shape(digest: str) -> str:
    """The first 32 hex digits of a digest written as a version-5 UUID."""
    return f"{digest[:8]}-{digest[8:12]}-5{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"


def derived_id(parts: Json) -> str:
    """A stable id for a message made from others."""
    return uuid_shape(sha256_json(parts))
