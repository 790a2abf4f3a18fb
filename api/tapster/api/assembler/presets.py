"""The strategy library over HTTP, and what each session has applied.

Source: spec/assembler §17.
"""

from collections.abc import Mapping, Sequence

import attrs

from tapster.api.answers import Answer, ok
from tapster.api.facts import Query
from tapster.api.ports import Strategies
from tapster.engine.ecma import Json, is_record
from tapster.engine.errors import RequestError


class PresetMethodNotTaken(RequestError):
    """The path has nothing for this method."""

    code = "METHOD_NOT_ALLOWED"
    kind = "Error"
    status = 405


@attrs.frozen
class PresetCall:
    """One admitted request; ``segments`` are the decoded parts of the path below the root."""

    strategies: Strategies
    method: str
    segments: Sequence[str]
    query: Query
    body: Mapping[str, Json]


async def answer_presets(call: PresetCall) -> Answer:
    """The answer to a request.

    Raises:
        PresetMethodNotTaken: there is no such route.
        TapsterError: as the strategies say.
    """
    strategies = call.strategies
    match call.method, *call.segments:
        case ["GET"]:
            return ok(**await strategies.overview(call.query.get("sessionId") or None))
        case ["POST"]:
            return ok(201, preset=await strategies.create(_preset(call.body)))
        case ["PUT", "selection"]:
            return ok(selection=await strategies.select(_session(call.body.get("sessionId")), _id(call.body)))
        case ["POST", "preview"]:
            return ok(preview=await _preview(call))
        case ["GET", "actual"]:
            return ok(**await strategies.actual(_session(call.query.get("sessionId"))))
        case ["GET", preset_id] if preset_id:
            return ok(preset=await strategies.get(preset_id))
        case ["PUT", preset_id] if preset_id:
            return ok(preset=await strategies.update(preset_id, _preset(call.body)))
        case ["DELETE", preset_id] if preset_id:
            await strategies.delete(preset_id)
            return ok()
        case _:
            raise PresetMethodNotTaken(f"{call.method[:20]} isn't taken here")


async def _preview(call: PresetCall) -> Json:
    preset, preset_id, draft = (call.body.get(name) for name in ("preset", "presetId", "draft"))
    session_id = call.body.get("sessionId")
    if preset is None and not isinstance(preset_id, str):
        raise RequestError("a preview needs a preset or a presetId")
    if draft is not None and not isinstance(draft, str):
        raise RequestError("draft must be a string, or be left out")
    session = None if session_id in (None, "") else _session(session_id)
    return await call.strategies.preview(session, preset_id if preset is None else None, preset, draft)


def _preset(body: Mapping[str, Json]) -> Json:
    wrapped: Json = body.get("preset")
    return wrapped if is_record(wrapped) else dict(body)


def _session(value: Json) -> str:
    if not isinstance(value, str) or not value:
        raise RequestError("sessionId must name a session")
    return value


def _id(body: Mapping[str, Json]) -> str | None:
    preset_id = body.get("id")
    if "id" not in body or not (preset_id is None or (isinstance(preset_id, str) and preset_id)):
        raise RequestError("id must name a strategy, or be null to turn it off")
    return preset_id
