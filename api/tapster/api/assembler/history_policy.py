"""History policies over HTTP.

Source: spec/history_policy §8.
"""

from collections.abc import Mapping

from tapster.api.answers import Answer, ok
from tapster.api.facts import Query
from tapster.api.ports import Strategies
from tapster.engine.ecma import Json, utf16_length
from tapster.engine.errors import RequestError
from tapster.engine.limits import HISTORY_SESSION_ID_UNITS

BACKENDS = (None, "native", "core")


class NoPolicyRoute(RequestError):
    """There is nothing at this path for this method."""

    code = "NOT_FOUND"
    kind = "Error"
    status = 404


async def answer_policy(
    strategies: Strategies, method: str, path: str, query: Query, body: Mapping[str, Json]
) -> Answer:
    """The answer to a request.

    Raises:
        NoPolicyRoute: there is no such route.
        RequestError: no usable session, or a bad body (400).
        TapsterError: as the strategies say.
    """
    session_id = query.get("sessionId") or ""
    if not 1 <= utf16_length(session_id) <= HISTORY_SESSION_ID_UNITS:
        raise RequestError(f"sessionId must name a session, with at most {HISTORY_SESSION_ID_UNITS} characters")
    match method, path:
        case "GET", "":
            return ok(**await strategies.policy(session_id))
        case "PUT", "":
            return ok(**await strategies.save_policy(session_id, body.get("policy"), body.get("expectedRevision")))
        case "POST", "/preview":
            backend = body.get("backend")
            if backend not in BACKENDS:
                raise RequestError("backend must be native or core, or be left out")
            return ok(**await strategies.preview_policy(session_id, body.get("policy"), backend))
        case _:
            raise NoPolicyRoute("there is nothing at this path")
