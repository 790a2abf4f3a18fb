"""What can go wrong in the library, beside what formats and policies refuse.

RequestError
├── ResourceNotFound    no resource of that id; ``code`` names the kind
├── ResourceExists      a resource of that id exists; ``code`` names the kind
├── TooLarge            a document or file is over its limit; ``code`` names it
└── StoreError / DocumentInvalid: a stored document can't be used; ``code`` names the kind
"""

from tapster.engine.errors import RequestError


class ResourceNotFound(RequestError):
    """No resource has that id."""

    code = "RESOURCE_NOT_FOUND"
    kind = "Error"
    status = 404


class ResourceExists(RequestError):
    """A resource of that id exists already."""

    code = "RESOURCE_ID_EXISTS"
    kind = "Error"
    status = 409


class TooLarge(RequestError):
    """A document or a file is over its limit."""

    code = "ARTIFACT_TOO_LARGE"
    status = 413
