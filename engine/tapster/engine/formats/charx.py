"""CHARX: a version 3 card and its assets in one zip.

Source: issue "CHARX (zip) in and out"; spec/resources §3 for the card itself.
"""

import attrs

from tapster.engine.ecma import Json, stringify, utf8
from tapster.engine.errors import FormatError

from .cards.model import Card
from .json_guard import load_json
from .notes import Notes
from .png import is_png
from .zip_files import LOCAL_SIGNATURE, ZipMember, inflate, read_zip, stored_member, write_zip

CARD_MEMBER = "card.json"
_EMBEDDED = ("embeded://", "embedded://")


@attrs.frozen
class Charx:
    """An opened archive: the card's JSON, the members beside it (still compressed), and the cover picture."""

    card: Json
    assets: tuple[ZipMember, ...]
    cover: bytes | None


def is_charx(data: bytes) -> bool:
    """Whether bytes are a zip, or a JPEG with one behind it."""
    return data.startswith(LOCAL_SIGNATURE) or (data.startswith(b"\xff\xd8\xff") and b"PK\x05\x06" in data[-65_600:])


def open_charx(data: bytes, notes: Notes) -> Charx:
    """The card and assets of an archive; members with unsafe names are left out with a note.

    Raises:
        FormatError: the zip cannot be read, or ``charx-no-card``.
    """
    members = read_zip(data)
    for member in members:
        if not member.is_safe:
            notes.add("zip-unsafe-path", f"{ascii(member.name)[:80]} points outside the archive; it was left out")
    safe = [member for member in members if member.is_safe]
    cards = [member for member in safe if member.name == CARD_MEMBER]
    if not cards:
        raise FormatError("charx-no-card", "the zip holds no card.json; is this a CHARX file?")
    card = load_json(inflate(cards[-1]))
    assets = tuple([member for member in safe if member.name != CARD_MEMBER])
    return Charx(card, assets, _cover(card, assets, notes))


def export_charx(card: Card, assets: tuple[ZipMember, ...] = ()) -> bytes:
    """A CHARX file of a card and the assets it came with, every asset as it was."""
    text = utf8(stringify(card.source.raw, indent=2))
    return write_zip([stored_member(CARD_MEMBER, text), *assets])


def _cover(card: Json, assets: tuple[ZipMember, ...], notes: Notes) -> bytes | None:
    """The main icon, where it is a PNG inside the archive."""
    by_name = {member.name: member for member in assets}
    for path in _icon_paths(card):
        member = by_name.get(path)
        if member is not None:
            try:
                picture = inflate(member)
            except FormatError as error:
                notes.add(error.slug, f"the cover picture was not read: {error.message}")
                return None
            return picture if is_png(picture) else None
    return None


def _icon_paths(card: Json) -> list[str]:
    data = card.get("data") if isinstance(card, dict) else None
    listed = data.get("assets") if isinstance(data, dict) else None
    paths: list[str] = []
    for asset in listed if isinstance(listed, list) else []:
        if isinstance(asset, dict) and asset.get("type") == "icon" and isinstance(asset.get("uri"), str):
            scheme = next((prefix for prefix in _EMBEDDED if asset["uri"].startswith(prefix)), None)
            if scheme is not None:
                paths.insert(0 if asset.get("name") == "main" else len(paths), asset["uri"].removeprefix(scheme))
    return paths
