"""Card files by a reading profile: which rules applied, and what had to be forgiven.

Source: issue "Reading profiles"; docs/formats.md.
"""

import attrs

from tapster.engine.ecma import Json, trim
from tapster.engine.errors import FormatError
from tapster.engine.formats.charx import is_charx, open_charx
from tapster.engine.formats.json_guard import decode_text
from tapster.engine.formats.notes import Note, Notes
from tapster.engine.formats.png import CardText as PngText
from tapster.engine.formats.png import (
    PngLimits,
    is_png,
    read_card_text,
    read_lenient_text,
    read_sillytavern_text,
)
from tapster.engine.formats.profiles import Profile
from tapster.engine.formats.zip_files import ZipMember

from .lenient import repaired_payload, repaired_root
from .model import Card
from .read import CardText, build_card, card_json, card_root, detect_format, payload_of
from .sillytavern import import_json, import_png_json

_LIMIT_SLUGS = frozenset({"json-too-many-values", "json-too-deep", "png-metadata-limit", "png-chunk-limit"})


@attrs.frozen
class OpenedCard:
    """A card with the profile that read it, what was noticed, its cover picture and packed assets."""

    card: Card
    profile: Profile
    notes: tuple[Note, ...] = ()
    cover: bytes | None = None
    assets: tuple[ZipMember, ...] = ()


@attrs.define(eq=False)
class _Attempt:
    """One read of a file by one profile."""

    profile: Profile
    notes: Notes = attrs.field(factory=Notes)
    cover: bytes | None = None
    assets: tuple[ZipMember, ...] = ()


def open_card_file(
    data: bytes,
    *,
    id: str,
    now: str,
    file_name: str,
    profile: Profile = "lenient",
    limits: PngLimits | None = None,
) -> OpenedCard:
    """The card of a PNG, CHARX or JSON file.

    ``lenient`` takes the contract's reading, else SillyTavern's, else a repaired one, and says which it was.

    Raises:
        FormatError: the profile cannot read the file.
    """
    bounds = limits or PngLimits()
    if profile != "lenient":
        return _open(data, _Attempt(profile), id, now, file_name, bounds)
    try:
        opened = _open(data, _Attempt("contract"), id, now, file_name, bounds)
    except FormatError as error:
        if error.slug in _LIMIT_SLUGS:
            raise
        return _open(data, _Attempt("lenient"), id, now, file_name, bounds)
    if trim(opened.card.data.name):
        return opened
    other = _open(data, _Attempt("lenient"), id, now, file_name, bounds)
    return other if trim(other.card.data.name) else opened


def _open(data: bytes, attempt: _Attempt, id: str, now: str, file_name: str, limits: PngLimits) -> OpenedCard:
    wanted = attempt.profile
    text = _text(data, attempt, limits)
    if wanted == "sillytavern":
        text = attrs.evolve(text, raw=_as_sillytavern(text, now))
    payload = None
    if wanted != "contract":
        text = attrs.evolve(text, raw=repaired_root(text.raw, attempt.notes))
        payload = _payload(text, attempt)
    card = build_card(text, id=id, now=now, file_name=file_name, payload=payload)
    if not trim(card.data.name):
        name = file_name.rpartition(".")[0] or file_name
        attempt.notes.add(
            "empty_name", f"the card's name is empty; {ascii(name)[1:-1]} was taken from the file", "name"
        )
        card = build_card(text, id=id, now=now, file_name=file_name, payload=payload, name=name)
    return OpenedCard(card, attempt.profile, tuple(attempt.notes.items), attempt.cover, attempt.assets)


def _payload(text: CardText, attempt: _Attempt) -> dict[str, Json] | None:
    format, _ = detect_format(text.raw)
    payload = payload_of(text.raw, format)
    prefix = "" if format == "sillytavern-v1" else "data."
    return dict(repaired_payload(payload, prefix, attempt.notes))


def _as_sillytavern(text: CardText, now: str) -> dict[str, Json]:
    run = import_png_json if text.container == "png" else import_json
    stored = run(text.raw, chat_stamp=chat_stamp(now), now=now)
    if stored is None:
        raise FormatError("card-no-name", "SillyTavern finds no name in this card and stores nothing")
    return stored


def chat_stamp(now: str) -> str:
    """An ISO moment as SillyTavern writes it into chat names."""
    return f"{now[:10]}@{now[11:13]}h{now[14:16]}m{now[17:19]}s{now[20:23]}ms"


def _text(data: bytes, attempt: _Attempt, limits: PngLimits) -> CardText:
    if is_png(data):
        found = _png_text(data, attempt, limits)
        for code, message in found.notes:
            attempt.notes.add(code, message)
        attempt.cover = data
        raw = card_root(card_json(found.text))
        return CardText(raw, "png", data, found.keyword, len(found.available_keywords) > 1)
    if is_charx(data):
        opened = open_charx(data, attempt.notes)
        attempt.cover, attempt.assets = opened.cover, opened.assets
        return CardText(card_root(opened.card), "charx", data)
    return CardText(card_root(card_json(decode_text(data))), data=data)


def _png_text(data: bytes, attempt: _Attempt, limits: PngLimits) -> PngText:
    if attempt.profile == "contract":
        return read_card_text(data, limits)
    if attempt.profile == "sillytavern":
        return read_sillytavern_text(data, limits)
    try:
        found = read_sillytavern_text(data, limits)
        card_root(card_json(found.text))
    except FormatError as error:
        if error.slug in _LIMIT_SLUGS:
            raise
        return read_lenient_text(data, limits)
    attempt.profile = "sillytavern"
    return found
