"""Small checks and renderings that several route families share."""

from collections.abc import Callable, Mapping, Sequence

from tapster.api.errors import Family
from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError
from tapster.engine.formats.fields import is_resource_id
from tapster.engine.trace import is_session_id

from .routing import Call


def session_id_of(value: Json) -> str:
    """A session id from a query or a body.

    Raises:
        RequestError: missing or malformed.
    """
    if not is_session_id(value):
        raise RequestError(f"{value!r:.120} is not a session id; give sessionId")
    return str(value)


def query_session(call: Call) -> str:
    """The ``sessionId`` of the query.

    Raises:
        RequestError: missing or malformed.
    """
    return session_id_of(call.query.get("sessionId"))


def only_members(body: Mapping[str, Json], *names: str) -> None:
    """Refuse a body with other members.

    Raises:
        RequestError: there is one.
    """
    unknown = sorted(set(body) - set(names))
    if unknown:
        raise RequestError(f"unknown members {', '.join(unknown)[:200]}; this route takes {', '.join(names)}")


def id_or_none(value: Json, name: str, is_id: Callable[[Json], bool] = is_resource_id) -> str | None:
    """A member that is an id or null.

    Raises:
        RequestError: it is something else.
    """
    if value is None or is_id(value):
        return None if value is None else str(value)
    raise RequestError(f"{name} must be an id or null, not {value!r:.120}")


def check_path_ids(family: Family, ids: Sequence[str]) -> None:
    """Refuse ids that no resource can have.

    Raises:
        RequestError: there is one.

    Source: spec/resources §1 "Resource id", spec/loader §13.
    """
    is_id = is_session_id if family == "templates" else is_resource_id
    for value in ids:
        if not is_id(value):
            raise RequestError(f"{value!r:.120} can't be an id")


def required(body: Mapping[str, Json], name: str) -> Json:
    """A member that must be there.

    Raises:
        RequestError: it isn't.
    """
    if name not in body:
        raise RequestError(f"{name} is missing")
    return body[name]
