"""World books of both formats into values.

Source: spec/resources §6.1, §6.3.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

import attrs

from tapster.engine.ecma import Json, is_safe_integer, ordered_members
from tapster.engine.errors import FormatError
from tapster.engine.formats.json_guard import JsonLimits, load_json
from tapster.engine.formats.profiles import Profile
from tapster.engine.limits import JSON_DEPTH, JSON_VALUES

from .entries import read_entry
from .errors import WorldBookValidationError
from .foreign import convert_book
from .guard import BookLimits, structural_breach
from .model import BookFormat, BookSettings, BookSource, Diagnostic, EntrySource, Severity, WorldBook, WorldBookEntry
from .table import Row
from .values import ABSENT, Findings, member_path, read_boolean, read_number, read_record, read_string

RequestedFormat = Literal["auto", "sillytavern-world-info", "character-book-v2"]
FORMATS: tuple[BookFormat, ...] = ("sillytavern-world-info", "character-book-v2")
_GUARD_CODES = {"json-too-deep": "WORLD_BOOK_DEPTH_LIMIT", "json-too-many-values": "WORLD_BOOK_NODE_LIMIT"}
_SCAN_DEPTH = Row("scan_depth", "scan_depth", "scan_depth", "number", integer=True, low=0)
_TOKEN_BUDGET = Row("token_budget", "token_budget", "token_budget", "number", integer=True, low=0)


@attrs.frozen
class Validation:
    """What a check of a world book found."""

    valid: bool
    format: BookFormat | None
    diagnostics: tuple[Diagnostic, ...]


def parse_world_book(
    given: str | Json,
    *,
    format: str = "auto",
    name: str | None = None,
    limits: BookLimits = BookLimits(),  # noqa: B008 - a frozen value
    profile: Profile = "contract",
) -> WorldBook:
    """The world book that a JSON text or object holds.

    Profiles other than the contract also read books of other programs, an embedded book whose entries are an object,
    and leave out entries that are no objects; diagnostics then name the place where a value really stands.

    Raises:
        WorldBookValidationError: it cannot be read; carries every diagnostic.
    """
    findings = Findings(repairs=profile != "contract")
    book = _read(given, format, name, limits, findings)
    if book is None or findings.has_errors:
        raise WorldBookValidationError(findings.items)
    return attrs.evolve(book, diagnostics=tuple(findings.items))


def validate_world_book(
    given: str | Json,
    *,
    format: str = "auto",
    limits: BookLimits = BookLimits(),  # noqa: B008 - a frozen value
) -> Validation:
    """Whether a world book can be read, and everything that is odd about it."""
    findings = Findings()
    book = _read(given, format, None, limits, findings)
    return Validation(not findings.has_errors, None if book is None else book.source.format, tuple(findings.items))


def detect_book_format(raw: Mapping[str, Json]) -> BookFormat | None:
    """The format that the shape of ``entries`` shows, or None."""
    entries = raw.get("entries")
    if isinstance(entries, dict):
        return "sillytavern-world-info"
    return "character-book-v2" if isinstance(entries, list) else None


def _read(
    given: str | Json, requested: str, name: str | None, limits: BookLimits, findings: Findings
) -> WorldBook | None:
    raw = given
    if isinstance(given, str):
        try:
            raw = load_json(given, _text_limits(limits))
        except FormatError as error:
            code = _GUARD_CODES.get(error.slug, "invalid-json")
            findings.add(code, "$", f"the world book cannot be read: {error.message}", severity="error")
            return None
    if not isinstance(raw, dict):
        findings.add("invalid-root", "$", "a world book is a JSON object", severity="error")
        return None
    breach = structural_breach(raw, limits)
    if breach:
        findings.add(breach[0], "$", breach[1], severity="error")
        return None
    if findings.repairs:
        return _repaired(raw, name, findings)
    format = _format(raw, requested, findings)
    return None if format is None else _book(raw, format, name, findings)


def _text_limits(limits: BookLimits) -> JsonLimits:
    """Bounds of a text before it is built: wider than the guard's, which then names the limit that counts first."""
    # The text is counted before it is known which braces are entries: only what no guard could pass is refused here.
    return JsonLimits(max(JSON_VALUES, limits.nodes + 1), max(JSON_DEPTH, limits.depth + 1))


def _repaired(raw: Mapping[str, Json], name: str | None, findings: Findings) -> WorldBook | None:
    converted = convert_book(raw)
    if converted is None:
        _format(raw, "auto", findings)
        return None
    if converted.shape not in ("standalone", "embedded"):
        findings.add("book-converted", "$", f"a {converted.shape} book; it was turned into a SillyTavern one")
    embedded = converted.shape in ("embedded", "lorebook_v3")
    if embedded and isinstance(converted.raw.get("entries"), dict):
        findings.add("entries_object", "$.entries", "'entries' of the embedded book was an object, read in its order")
    elif not isinstance(converted.raw.get("entries"), dict | list):
        _format(converted.raw, "auto", findings)
        return None
    return _book(converted.raw, FORMATS[embedded], name, findings)


def _format(raw: Mapping[str, Json], requested: str, findings: Findings) -> BookFormat | None:
    if requested != "auto" and requested not in FORMATS:
        findings.add(
            "unknown-requested-format",
            "$",
            f"ask for auto or {' or '.join(FORMATS)}, not {ascii(requested)[:60]}",
            severity="error",
        )
    detected = detect_book_format(raw)
    if detected is None:
        code = "invalid-entries" if "entries" in raw else "missing-entries"
        findings.add(code, "$.entries", "a world book has 'entries', an object or a list", severity="error")
    elif requested not in ("auto", detected):
        findings.add(
            "format-shape-mismatch",
            "$.entries",
            f"the entries are shaped as {detected}; ask for that or for auto",
            severity="error",
        )
    return detected


def _book(raw: Mapping[str, Json], format: BookFormat, name: str | None, findings: Findings) -> WorldBook:
    if format == "character-book-v2" and "extensions" not in raw:
        findings.add("missing-required-field", "$.extensions", "an embedded book has 'extensions'")
    extensions = read_record(raw.get("extensions", ABSENT), "$.extensions", findings)
    title = read_string(raw.get("name", ABSENT), "", "$.name", findings) if name is None else name
    description = read_string(raw.get("description", ABSENT), "", "$.description", findings)
    settings = BookSettings(
        scan_depth=_number(raw, _SCAN_DEPTH, findings),
        token_budget=_number(raw, _TOKEN_BUDGET, findings),
        recursive_scanning=read_boolean(raw.get("recursive_scanning", ABSENT), None, "$.recursive_scanning", findings),
        extensions=extensions,
    )
    return WorldBook(
        name=title,
        description=description,
        settings=settings,
        entries=_entries(raw["entries"], format, findings),
        source=BookSource(format, "object-map" if isinstance(raw["entries"], dict) else "array", raw),
    )


def _number(raw: Mapping[str, Json], row: Row, findings: Findings) -> Any:
    return read_number(raw.get(row.standalone, ABSENT), None, f"$.{row.standalone}", findings, row)


def _entries(given: Json, format: BookFormat, findings: Findings) -> tuple[WorldBookEntry, ...]:
    if isinstance(given, dict):
        members = [(key, member_path("$.entries", key), item) for key, item in ordered_members(given)]
    else:
        members = [(str(index), f"$.entries[{index}]", item) for index, item in enumerate(given)]
    entries = []
    for index, (key, path, item) in enumerate(members):
        if isinstance(item, dict):
            entries.append(read_entry(item, format, EntrySource(key, index, item), path, findings))
        else:
            severity: Severity = "warning" if findings.repairs else "error"
            findings.add("invalid-entry", path, f"{path} is not an object", item, severity=severity)
    _report_duplicates(entries, findings)
    return tuple(entries)


def _report_duplicates(entries: list[WorldBookEntry], findings: Findings) -> None:
    seen: Counter[tuple[bool, int | str]] = Counter()
    for entry in entries:
        identity = (isinstance(entry.uid, str), entry.uid)
        if seen[identity]:
            path = f"$.entries[{entry.source.index}]"
            findings.add("duplicate-uid", path, f"uid {ascii(entry.uid)[:60]} occurs more than once", entry.uid)
        seen[identity] += 1


def is_uid(value: Json) -> bool:
    """Whether a value can be an entry's uid."""
    return (is_safe_integer(value) and value >= 0) or (isinstance(value, str) and bool(value))
