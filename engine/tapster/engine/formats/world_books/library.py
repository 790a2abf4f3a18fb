"""World books as the library stores them: import, new, naming, export file.

Source: spec/resources §7.
"""

import hashlib

from tapster.engine.ecma import stringify, trim, utf8
from tapster.engine.errors import FormatError
from tapster.engine.formats.fields import file_name as clean_file_name
from tapster.engine.formats.profiles import Profile
from tapster.engine.limits import CARD_FILE_NAME_UNITS, WORLD_BOOK_BYTES

from .guard import BookLimits
from .model import BookFile, WorldBookDocument
from .read import parse_world_book

UNTITLED = "Untitled World Book"


def import_world_book(
    data: bytes,
    *,
    id: str,
    now: str,
    file_name: str | None = None,
    limits: BookLimits = BookLimits(),  # noqa: B008 - a frozen value
    profile: Profile = "contract",
) -> WorldBookDocument:
    """The stored form of a world-book file.

    Raises:
        FormatError: ``WORLD_BOOK_ARTIFACT_TOO_LARGE`` (413), or slug ``world-book-bad-utf8``.
        WorldBookValidationError: the book cannot be read.
    """
    if len(data) > WORLD_BOOK_BYTES:
        raise FormatError(
            "world-book-too-large",
            f"a world book has at most {WORLD_BOOK_BYTES} bytes; this one has {len(data)}",
            code="WORLD_BOOK_ARTIFACT_TOO_LARGE",
            status=413,
        )
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError as error:
        raise FormatError("world-book-bad-utf8", f"the world book is not UTF-8 at byte {error.start}") from error
    book = parse_world_book(text, limits=limits, profile=profile)
    stored_name = clean_file_name(file_name, CARD_FILE_NAME_UNITS, "world-book.json")
    return WorldBookDocument(
        id=id,
        name=_name(book.name, file_name),
        created_at=now,
        updated_at=now,
        source=BookFile(book.source.format, stored_name, len(data), hashlib.sha256(data).hexdigest()),
        book=book,
    )


def new_world_book(*, id: str, now: str, name: str = "") -> WorldBookDocument:
    """An empty world book."""
    title = trim(name) or UNTITLED
    data = utf8(stringify({"entries": {}, "name": title}))
    return import_world_book(data, id=id, now=now, file_name=f"{title}.json")


def _name(book_name: str, file_name: str | None) -> str:
    stem, dot, rest = (file_name or "").rpartition(".")
    stem = stem if dot else rest
    return trim(book_name) or trim(stem) or UNTITLED
