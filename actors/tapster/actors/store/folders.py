"""What an operating system says about a data folder, as an error that a person can act on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .errors import StoreUnusable

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
_NOT_ALLOWED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def usable_folder(folder: Path) -> Iterator[None]:
    """Raise for every ``OSError`` of opening a data folder.

    Raises:
        StoreUnusable: names the file, why, and what would help.
    """
    try:
        yield
    except OSError as error:
        raise StoreUnusable(
            f"the data folder {folder} can't be used: {_what(folder, error)}; {_remedy(error)}",
            details={"errno": error.errno},
        ) from error


def _what(folder: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    return reason if error.filename in (None, str(folder), folder) else f"{error.filename}: {reason}"


def _remedy(error: OSError) -> str:
    if error.errno in _NO_ROOM:
        return "free some space, or choose another folder"
    if error.errno in _NOT_ALLOWED:
        return "let this user read and write it and what is in it, or choose another folder"
    return "choose another folder, or move away what is in the way"
