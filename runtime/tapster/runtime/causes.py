"""What a log may say of a bug: its kind and its place, never its message, which can hold what somebody wrote."""

from pathlib import Path


def first_cause(error: BaseException) -> BaseException:
    """The first error inside groups, or the error itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def place_of(error: BaseException) -> str:
    """``file.py:line`` where it was raised, "" when it never was."""
    place = error.__traceback__
    if place is None:
        return ""
    while place.tb_next is not None:
        place = place.tb_next
    return f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"


def described(error: BaseException) -> dict[str, str]:
    """Fields of a log line: ``error``, the kind of the first cause, and ``at``, its place."""
    cause = first_cause(error)
    return {"error": type(cause).__name__, "at": place_of(cause)}
