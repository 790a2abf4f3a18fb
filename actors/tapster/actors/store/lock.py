"""One writing process for each data folder, enforced by a lock on a file beside the data."""

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, final

from tapster.actors.store.errors import StoreLocked

_HELD: Final = (errno.EAGAIN, errno.EACCES)
"""What the system says when somebody else has a lock."""


@final
class WriterLock:
    """Held from construction until ``release``; the system frees it when the process dies."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            StoreLocked: another process (or another store of this one) holds it; the message names its process id.
            OSError: the file can't be made, or its file system has no locks.
        """
        self._descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _HELD:
                os.close(self._descriptor)
                raise OSError(error.errno, f"it can't be locked ({error.strerror})", str(path)) from error
            holder = os.pread(self._descriptor, 20, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._descriptor)
            raise StoreLocked(
                f"{path.name} is locked by process {holder}: stop that Tapster, or give this one another data folder"
            ) from error
        # The number is for a message only: a full disk doesn't keep anybody from reading.
        with suppress(OSError):
            os.truncate(self._descriptor, 0)
            os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another process have it; the file stays, so that nobody locks a removed one."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
