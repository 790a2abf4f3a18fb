"""Strategies, sources, variables and stored templates over Tapster's own root."""

from collections.abc import Mapping

from tapster.api.answers import Answer
from tapster.engine.ecma import Json, is_record
from tapster.engine.errors import RequestError
from tapster.engine.limits import ASSEMBLY_STORE_BYTES

from .routing import OwnCall, OwnRoute, own_route
from .sessions import MAX_TEXT

ROUTES: list[OwnRoute] = []
LIMIT = 2 * 1024 * 1024
STORE_LIMIT = ASSEMBLY_STORE_BYTES + 64 * 1024


@own_route(ROUTES, "GET", "/strategies", "Every strategy that can be applied", "strategies")
async def list_strategies(call: OwnCall) -> Answer:
    overview = await call.tapster.strategies.overview(None)
    return Answer({name: overview[name] for name in ("presets", "defaultPresetId", "capabilities", "strategies")})


@own_route(ROUTES, "POST", "/strategies", "Save a strategy: `{strategy}`", "strategies", limit=LIMIT, success=201)
async def create_strategy(call: OwnCall) -> Answer:
    return Answer({"strategy": await call.tapster.strategies.create(call.body.get("strategy"))}, 201)


@own_route(
    ROUTES,
    "POST",
    "/strategies/import",
    "Take over what an older assembly-presets.json has and this store lacks: `{document}`",
    "strategies",
    limit=STORE_LIMIT,
)
async def take_over(call: OwnCall) -> Answer:
    return Answer({"changed": await call.tapster.strategies.take_over(call.body.get("document"))})


@own_route(ROUTES, "GET", "/strategies/:strategyId", "One strategy", "strategies")
async def get_strategy(call: OwnCall) -> Answer:
    return Answer({"strategy": await call.tapster.strategies.get(call.ids[0])})


@own_route(
    ROUTES, "PUT", "/strategies/:strategyId", "Save a strategy in its place: `{strategy}`", "strategies", limit=LIMIT
)
async def update_strategy(call: OwnCall) -> Answer:
    return Answer({"strategy": await call.tapster.strategies.update(call.ids[0], call.body.get("strategy"))})


@own_route(ROUTES, "DELETE", "/strategies/:strategyId", "Delete an own strategy", "strategies", limit=LIMIT)
async def delete_strategy(call: OwnCall) -> Answer:
    await call.tapster.strategies.delete(call.ids[0])
    return Answer({"deleted": True})


@own_route(ROUTES, "GET", "/sessions/:sessionId/strategy", "What a session has applied", "strategies")
async def get_applied(call: OwnCall) -> Answer:
    return Answer(await call.tapster.strategies.applied(call.ids[0]))


@own_route(
    ROUTES, "PUT", "/sessions/:sessionId/strategy", "Apply a strategy: `{id}`, null is off", "strategies", limit=LIMIT
)
async def apply(call: OwnCall) -> Answer:
    preset_id = call.body.get("id")
    if "id" not in call.body or not (preset_id is None or isinstance(preset_id, str)):
        raise RequestError("id must name a strategy, or be null to turn it off")
    return Answer({"selection": await call.tapster.strategies.select(call.ids[0], preset_id)})


@own_route(
    ROUTES,
    "POST",
    "/sessions/:sessionId/strategy/preview",
    "The request a strategy would send now: `{draft?, id?, strategy?}`",
    "strategies",
    limit=LIMIT,
)
async def preview(call: OwnCall) -> Answer:
    draft, preset_id, given = (call.body.get(name) for name in ("draft", "id", "strategy"))
    if draft is not None and (not isinstance(draft, str) or len(draft) > MAX_TEXT):
        raise RequestError(f"draft must be a string of at most {MAX_TEXT} characters, or be left out")
    if preset_id is not None and not isinstance(preset_id, str):
        raise RequestError("id must name a strategy, or be left out for the applied one")
    return Answer({"preview": await call.tapster.strategies.preview(call.ids[0], preset_id, given, draft)})


@own_route(ROUTES, "GET", "/sources", "Every source of requests, its use, and installed plug-ins", "strategies")
async def sources(call: OwnCall) -> Answer:
    return Answer(await call.tapster.strategies.sources(call.query.get("sessionId")))


@own_route(ROUTES, "GET", "/sessions/:sessionId/variables", "A session's variables", "variables")
async def get_variables(call: OwnCall) -> Answer:
    return Answer({"variables": await call.tapster.strategies.variables(call.ids[0])})


@own_route(
    ROUTES,
    "PUT",
    "/sessions/:sessionId/variables/mode",
    "Let variables be used: `{mode: native or managed, expectedConfigRevision}`",
    "variables",
    limit=LIMIT,
)
async def set_mode(call: OwnCall) -> Answer:
    mode = call.body.get("mode")
    if mode not in ("native", "managed"):
        raise RequestError("mode must be native or managed")
    expected = _integer(call.body, "expectedConfigRevision")
    return Answer({"variables": await call.tapster.strategies.set_variables_mode(call.ids[0], mode, expected)})


@own_route(
    ROUTES,
    "POST",
    "/sessions/:sessionId/variables/patch",
    "Edit variables: `{operations, expectedRevision, operationId}`",
    "variables",
    limit=LIMIT,
)
async def patch_variables(call: OwnCall) -> Answer:
    operations, operation_id = call.body.get("operations"), call.body.get("operationId")
    if not isinstance(operations, list) or not isinstance(operation_id, str):
        raise RequestError("operations must be a list of JSON Patch operations, and operationId a string")
    expected = _integer(call.body, "expectedRevision")
    changed = await call.tapster.strategies.patch_variables(call.ids[0], operations, expected, operation_id)
    return Answer({"variables": changed})


@own_route(ROUTES, "GET", "/prompt-templates", "Every stored template", "templates")
async def list_templates(call: OwnCall) -> Answer:
    return Answer({"templates": list(await call.tapster.strategies.templates())})


@own_route(ROUTES, "PUT", "/prompt-templates", "Keep a stored template: `{template}`", "templates", limit=LIMIT)
async def put_template(call: OwnCall) -> Answer:
    given: Json = call.body.get("template")
    if not is_record(given):
        raise RequestError("template must be a template resource")
    return Answer({"template": await call.tapster.strategies.put_template(given)})


@own_route(ROUTES, "DELETE", "/prompt-templates/:templateId", "Forget a stored template", "templates", limit=LIMIT)
async def delete_template(call: OwnCall) -> Answer:
    await call.tapster.strategies.delete_template(call.ids[0])
    return Answer({"deleted": True})


def _integer(body: Mapping[str, Json], name: str) -> int:
    value = body.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RequestError(f"{name} must be a whole number")
    return value
