"""What can go wrong in the store.

StoreError (tapster.engine.errors)
├── DocumentConflict    the writer's base isn't the present state; nothing was written
├── ReadFailed          something stored exists but couldn't be read; never answered as empty
├── LogGap              events don't continue the session's log
├── LogDiverged         a log has another event under a seq that was given again
├── SessionLogExists    the session has a log already
├── SessionLogMissing   the session has no log
├── CommitFailed        a batch didn't become durable; none of it is acknowledged
├── WriteUnknown        whether a write became durable isn't known; the store starts afresh
├── StoreUnusable       there is no way to have or to open the data folder
├── StoreLocked         another process has the file
├── StoreInUse          there is data where a copy would go
├── BackupFailed        a copy couldn't be written
├── BackupUnusable      a file isn't a sound copy of this engine's data
├── StoreCorrupt        the file is damaged or not Tapster's; it is left as it is
└── StoreTooNew         a later version of Tapster wrote the file
"""

from tapster.engine.errors import RequestError, StoreError


class DocumentConflict(StoreError):
    """The writer's base isn't the present state; nothing was written."""

    code = "DOCUMENT_CONFLICT"
    status = 409


class ReadFailed(StoreError):
    """Something stored exists but couldn't be read; that is never answered as empty."""

    code = "STORE_READ_FAILED"


class LogGap(StoreError):
    """Events don't continue the session's log; ``details`` has the expected and the given seq."""

    code = "SESSION_LOG_GAP"
    status = 409


class LogDiverged(StoreError):
    """A log has another event under a seq that was given again."""

    code = "LOG_DIVERGED"
    status = 409


class SessionLogExists(StoreError):
    """The session has a log already."""

    code = "SESSION_LOG_EXISTS"
    status = 409


class SessionLogMissing(StoreError):
    """The session has no log."""

    code = "SESSION_LOG_NOT_FOUND"
    status = 404


class CommitFailed(StoreError):
    """A batch didn't become durable: none of its writes is acknowledged, a retry is sane."""

    code = "STORE_COMMIT_FAILED"
    status = 503


class WriteUnknown(StoreError):
    """The store failed in the middle of a write and starts afresh: whether it became durable isn't known."""

    code = "STORE_WRITE_UNKNOWN"
    status = 503


def anew(error: StoreError) -> StoreError:
    """The same error for another asker: a traceback belongs to one task."""
    return type(error)(error.message, code=error.code, details=error.details)


def unstorable(error: UnicodeEncodeError | OverflowError) -> RequestError:
    """The error of a name with half a character, or a number beyond 64 bits, where the database needs a real one."""
    return RequestError(f"a name or number can't be stored ({error}): use whole characters and safe integers")


class StoreUnusable(StoreError):
    """There is no way to have the data folder, or to read and write in it."""

    code = "STORE_UNUSABLE"


class StoreLocked(StoreError):
    """Another process has the data open for writing."""

    code = "STORE_LOCKED"
    status = 503


class StoreCorrupt(StoreError):
    """The file is damaged or not Tapster's; it is named and left exactly as it is."""

    code = "STORE_CORRUPT"


class StoreInUse(StoreError):
    """There is data where a copy would go; nothing was changed."""

    code = "STORE_IN_USE"
    status = 409


class BackupFailed(StoreError):
    """A copy couldn't be written; what was there under its name is as it was."""

    code = "BACKUP_FAILED"


class BackupUnusable(StoreError):
    """A file isn't a sound copy of this engine's data; nothing was changed."""

    code = "BACKUP_UNUSABLE"
    status = 400


class StoreTooNew(StoreError):
    """A later version of Tapster wrote the data."""

    code = "STORE_TOO_NEW"
