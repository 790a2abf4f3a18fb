"""How far the write-ahead log has grown since it began anew; the file doesn't tell, since its blocks are kept."""

import os
from pathlib import Path
from typing import Final, final

WAL_SOFT_BYTES: Final = 16 * 1024 * 1024
"""A WAL of this size is moved into the file without waiting for an idle moment. Larger ones cost longer pauses."""
WAL_KEPT_BYTES: Final = 2 * WAL_SOFT_BYTES
"""What stays of the WAL file when it begins anew: writing and syncing blocks that are there costs half of what new ones
do. A burst that is moved into the file beside its commits goes that far."""
_HEADER_BYTES: Final = 32
_FRAME_BYTES: Final = 24
_PAGE_SIZE: Final = slice(8, 12)
_SALTS: Final = slice(16, 24)
_FRAME_SALTS: Final = slice(8, 16)


@final
class WalGauge:
    """Looks for a frame of the present round at a mark: the header names the round's salts, each frame repeats them.

    Source: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
    """

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + "-wal")
        self._round = b""
        self._mark = WAL_SOFT_BYTES

    def is_past_mark(self) -> bool:
        """Whether the WAL has grown to the mark; False when the file can't be looked at, for nothing depends on it."""
        try:
            return self._look()
        except OSError:
            return False

    def _look(self) -> bool:
        wal = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            # SQLite has its locks on the database and on the index, so closing this descriptor drops none.
            header = os.pread(wal, _HEADER_BYTES, 0)
            if header[_SALTS] != self._round:
                self._round = header[_SALTS]
                self._mark = WAL_SOFT_BYTES
            step = _FRAME_BYTES + int.from_bytes(header[_PAGE_SIZE])
            frame = os.pread(wal, _FRAME_BYTES, _HEADER_BYTES + self._mark // step * step)
        finally:
            os.close(wal)
        return bool(frame) and frame[_FRAME_SALTS] == self._round

    def move_mark(self) -> None:
        """Look for as much again: what is there was moved, and a long reader may keep the WAL from beginning anew."""
        self._mark += WAL_SOFT_BYTES
