"""One request below ``/tapster/api/v1``: admission, routing, body, handler."""

from collections.abc import Sequence

import structlog
import trio
from quart import Response
from quart.wrappers import Request

from tapster.api.answers import Answer, Responder
from tapster.api.bodies import parse_body, read_body
from tapster.api.contract import ROUTES as CONTRACT_ROUTES
from tapster.api.errors import UNEXPECTED_TEXT, error_answer
from tapster.api.facts import Query, request_facts
from tapster.api.openapi import Operation, openapi_document
from tapster.api.ports import Tapster
from tapster.engine.contract import CONTRACT_ROOT
from tapster.engine.ecma import Json
from tapster.engine.errors import TapsterError
from tapster.runtime import Draining, RuntimeFault, described

from . import imports, runtime, sessions, store, strategies
from .admission import OWN_ROOT, OwnOptions, admit
from .routing import OwnCall, OwnRoute, find_route

V3_OPERATIONS = (
    Operation("GET", f"{CONTRACT_ROOT}/v3/capabilities", "What the trace API can do", "v3"),
    Operation("GET", f"{CONTRACT_ROOT}/v3/sessions/:sessionId/assemblies", "A session's records", "v3"),
    Operation("GET", f"{CONTRACT_ROOT}/v3/sessions/:sessionId/assemblies/:recordId", "One record, verified", "v3"),
)

log = structlog.get_logger(__name__)


class OwnRoot:
    """Answers every request below Tapster's own root."""

    def __init__(
        self,
        tapster: Tapster,
        options: OwnOptions,
        version: str,
        responder: Responder,
        routes: Sequence[OwnRoute] = (),
    ) -> None:
        self._tapster = tapster
        self._options = options
        self._document = OwnRoute("GET", "/openapi.json", self._openapi, "This document", "runtime")
        self._routes = (
            *runtime.ROUTES,
            *sessions.ROUTES,
            *strategies.ROUTES,
            *imports.ROUTES,
            *store.ROUTES,
            *routes,
            self._document,
        )
        self._version = version
        self._responder = responder

    async def answer(self, request: Request) -> Response:
        """The response to a request, an error included."""
        facts = request_facts(request.scope)
        try:
            admit(facts, self._options)
            route, ids = find_route(self._routes, facts.method, facts.path.removeprefix(OWN_ROOT))
            if self._tapster.is_draining and not route.while_draining:
                raise Draining
            data = await read_body(request, route.limit) if route.limit else b""
            body = {} if route.takes_bytes else parse_body(data)
            reply = await route.handler(OwnCall(self._tapster, facts, Query.of(request.scope), ids, body, data))
        except (TapsterError, RuntimeFault) as error:
            reply = error_answer("own", error)
        except Exception as error:  # noqa: BLE001 - the border: whatever happened, a client gets an answer
            # The message may hold a person's text, so only the class goes to the log.
            log.error("request failed", family="own", **described(error))
            reply = error_answer("own", TapsterError(UNEXPECTED_TEXT, code="INTERNAL_ERROR", status=500))
        return await self._responder.response(reply) if isinstance(reply, Answer) else reply

    async def _openapi(self, call: OwnCall) -> Answer:
        await trio.lowlevel.checkpoint()
        return Answer(self.document())

    def document(self) -> dict[str, Json]:
        """The OpenAPI document of every route that this process answers."""
        contract = [
            Operation(
                route.method,
                f"{CONTRACT_ROOT}{route.pattern}",
                route.summary,
                route.family,
                route.success,
                takes_body=route.method != "GET",
                takes_bytes=route.takes_bytes,
            )
            for route in CONTRACT_ROUTES
        ]
        own = [
            Operation(
                route.method,
                f"{OWN_ROOT}{route.pattern}",
                route.summary,
                route.tag,
                route.success,
                takes_body=route.limit > 0,
                takes_bytes=route.takes_bytes,
                needs_token=True,
                media_type=route.media_type,
            )
            for route in self._routes
        ]
        return openapi_document((*contract, *V3_OPERATIONS, *own), self._version)
