"""The history policy: what of old messages later requests carry.

Source: spec/history_policy §1.
"""

import re
from collections.abc import Mapping
from typing import Literal, NoReturn

import attrs

from tapster.engine import limits
from tapster.engine.assembly.errors import InvalidAssembly
from tapster.engine.ecma import Json, is_number, is_record, sha256_json, trim, utf16_length

_KIND = re.compile(r"[A-Za-z0-9_.:/-]{1,160}")
_FRAGMENT_ID = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_POLICY_KEYS = frozenset({"version", "enabled", "sources", "contentTypes", "fragments"})
_FRAGMENT_KEYS = frozenset({"id", "sourceKind", "start", "end", "mode", "enabled"})
CONTENT_TYPES = ("text", "image", "reasoning")
EXCLUDED_BY_DEFAULT = ("dsh-prompt-assembler", "runtime-context", "system-prompt", "ptc-mode", "tool")


@attrs.frozen
class SourceSelector:
    """Whether messages of one exact ``source.kind`` stay."""

    kind: str
    include: bool


@attrs.frozen
class ContentTypes:
    """Which content block types stay."""

    text: bool = True
    image: bool = True
    reasoning: bool = True

    def allows(self, block_type: Json) -> bool:
        """Whether blocks of a type stay; types other than the three always do."""
        return bool(getattr(self, block_type)) if block_type in CONTENT_TYPES else True


@attrs.frozen
class FragmentRule:
    """A pair of delimiters whose text is cut from assistant messages of one kind."""

    id: str
    source_kind: str
    start: str
    end: str
    mode: Literal["lines", "literal"]
    enabled: bool = True

    def to_json(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "sourceKind": self.source_kind,
            "start": self.start,
            "end": self.end,
            "mode": self.mode,
            "enabled": self.enabled,
        }


@attrs.frozen
class HistoryPolicy:
    """A normalised policy."""

    enabled: bool
    sources: tuple[SourceSelector, ...] = ()
    content_types: ContentTypes = ContentTypes()
    fragments: tuple[FragmentRule, ...] = ()

    @property
    def hash(self) -> str:
        return sha256_json(self.to_json())

    def includes(self, kind: str) -> bool | None:
        """What the selector of a kind says; None without one."""
        return next((selector.include for selector in self.sources if selector.kind == kind), None)

    def to_json(self) -> dict[str, Json]:
        return {
            "version": 1,
            "enabled": self.enabled,
            "sources": [{"kind": selector.kind, "include": selector.include} for selector in self.sources],
            "contentTypes": {name: getattr(self.content_types, name) for name in CONTENT_TYPES},
            "fragments": [fragment.to_json() for fragment in self.fragments],
        }


DEFAULT_POLICY = HistoryPolicy(
    enabled=False,
    sources=tuple(SourceSelector(kind, include=False) for kind in EXCLUDED_BY_DEFAULT),
    content_types=ContentTypes(reasoning=False),
)
"""What a session starts with: nothing happens until someone enables it."""


def normalise_policy(value: Json) -> HistoryPolicy:
    """A checked policy.

    Raises:
        InvalidAssembly: ``HISTORY_POLICY_INVALID`` (400), at the first check that fails.
    """
    if not is_record(value) or not set(value) <= _POLICY_KEYS:
        _fail("the history policy has a field nobody knows")
    if not (is_number(value.get("version")) and value["version"] == 1) or not isinstance(value.get("enabled"), bool):
        _fail("the history policy needs version 1 and enabled true or false")
    sources, fragments = value.get("sources"), value.get("fragments")
    if not (_is_short_list(sources) and _is_short_list(fragments)):
        _fail(f"sources and fragments are lists of at most {limits.HISTORY_RULES}")
    return HistoryPolicy(
        enabled=value["enabled"],
        sources=_sources(sources),
        content_types=_content_types(value.get("contentTypes")),
        fragments=_fragments(fragments),
    )


def _fail(message: str) -> NoReturn:
    raise InvalidAssembly(message, code="HISTORY_POLICY_INVALID", status=400)


def _is_short_list(value: Json) -> bool:
    return isinstance(value, list) and len(value) <= limits.HISTORY_RULES


def _is_kind(value: Json) -> bool:
    return isinstance(value, str) and _KIND.fullmatch(value) is not None


def _sources(values: list[Json]) -> tuple[SourceSelector, ...]:
    found: dict[str, SourceSelector] = {}
    for value in values:
        if not is_record(value) or not set(value) <= {"kind", "include"}:
            _fail("a source selector has only kind and include")
        if not _is_kind(value.get("kind")) or not isinstance(value.get("include"), bool):
            _fail("a source selector needs a kind and include true or false")
        if value["kind"] in found:
            _fail(f"two source selectors name {value['kind']}")
        found[value["kind"]] = SourceSelector(value["kind"], value["include"])
    return tuple(found.values())


def _content_types(value: Json) -> ContentTypes:
    if is_record(value) and not set(value) <= set(CONTENT_TYPES):
        _fail("content types are text, image and reasoning")
    if not is_record(value) or not all(isinstance(value.get(name), bool) for name in CONTENT_TYPES):
        _fail("each content type is true or false")
    return ContentTypes(**value)


def _fragments(values: list[Json]) -> tuple[FragmentRule, ...]:
    found: dict[str, FragmentRule] = {}
    for value in values:
        fragment = _fragment(value)
        if fragment.id in found:
            _fail(f"two fragment rules have the id {fragment.id}")
        found[fragment.id] = fragment
    return tuple(found.values())


def _fragment(value: Json) -> FragmentRule:
    if not is_record(value) or not set(value) <= _FRAGMENT_KEYS:
        _fail("a fragment rule has a field nobody knows")
    known_id = isinstance(value.get("id"), str) and _FRAGMENT_ID.fullmatch(value["id"]) is not None
    if not known_id or not _is_kind(value.get("sourceKind")):
        _fail("a fragment rule needs an id and a sourceKind")
    if not _are_delimiters(value):
        _fail(f"fragment {value['id']} needs two different delimiters of one line each")
    if value.get("mode") not in ("lines", "literal") or not isinstance(value.get("enabled"), bool):
        _fail(f"fragment {value['id']} needs mode lines or literal and enabled true or false")
    return FragmentRule(value["id"], value["sourceKind"], value["start"], value["end"], value["mode"], value["enabled"])


def _are_delimiters(value: Mapping[str, Json]) -> bool:
    start, end = value.get("start"), value.get("end")
    return start != end and all(
        isinstance(text, str)
        and trim(text) != ""
        and utf16_length(text) <= limits.HISTORY_DELIMITER_UNITS
        and "\r" not in text
        and "\n" not in text
        for text in (start, end)
    )
