"""What can go wrong with a source; each refuses the whole request.

SourceError
├── SourceFailed    it raised something that isn't a declared error
├── SourceTimeout   it didn't answer by its deadline
├── SourceDeaf      it didn't end within the grace after it was cancelled, or still hasn't from an earlier request
└── SourceGone      its registration ended before it answered
"""

from tapster.engine.errors import SourceError


class _OfSource(SourceError):
    """An error that names its source."""

    def __init__(self, source_id: str, message: str) -> None:
        super().__init__(message, details={"sourceId": source_id})
        self.source_id = source_id


class SourceFailed(_OfSource):
    """A source raised something that isn't a declared error; the cause is chained."""

    code = "SOURCE_FAILED"


class SourceTimeout(_OfSource):
    """A source didn't answer by its deadline."""

    code = "SOURCE_TIMEOUT"


class SourceDeaf(_OfSource):
    """A source goes on although it was cancelled; it is refused until it ends."""

    code = "SOURCE_DEAF"


class SourceGone(_OfSource):
    """The registration of a source ended while a request was waiting for it."""

    code = "SOURCE_GONE"
