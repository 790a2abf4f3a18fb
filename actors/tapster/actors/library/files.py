"""A file that the library gives out."""

import attrs

JSON_TYPE = "application/json"
PNG_TYPE = "image/png"


@attrs.frozen
class ExportedFile:
    """Bytes to save, their media type and suggested name."""

    data: bytes
    media_type: str
    name: str
