"""One request below the contract root: security, then routing, then the body, then the handler.

Source: spec/http §1-§4.
"""

from collections.abc import Sequence

import structlog
from quart.wrappers import Request

from tapster.api.answers import Answer, Attachment, ok
from tapster.api.bodies import parse_body, read_body
from tapster.api.errors import UNEXPECTED_TEXT, Family, error_answer
from tapster.api.facts import Query, request_facts
from tapster.api.ports import Tapster
from tapster.engine.contract import (
    CONTRACT_ROOT,
    RequestFacts,
    SecurityOptions,
    check_request,
    may_issue_token,
)
from tapster.engine.contract.security import OriginForbidden
from tapster.engine.errors import RequestError, TapsterError
from tapster.runtime import Draining, RuntimeFault, described

from . import characters, presets, settings, templates, traces, users, world_books
from .routing import Call, Route, Router, family_of
from .v3 import answer_v3
from .values import check_path_ids

ROUTES: Sequence[Route] = (
    *settings.ROUTES,
    *templates.ROUTES,
    *users.ROUTES,
    *traces.ROUTES,
    *characters.ROUTES,
    *world_books.ROUTES,
    *presets.ROUTES,
)
TOKEN_PATH = "/request-token"

log = structlog.get_logger(__name__)


class ContractRoot:
    """Answers every request below ``/pmp-dsh-tavern/api``."""

    def __init__(self, tapster: Tapster, options: SecurityOptions) -> None:
        self._tapster = tapster
        self._options = options
        self._router = Router(ROUTES)

    async def answer(self, request: Request) -> Answer | Attachment:
        """The answer to a request, an error included."""
        facts = request_facts(request.scope)
        path = facts.path.removeprefix(CONTRACT_ROOT)
        try:
            check_request(facts, self._options)
        except RequestError as error:
            return Answer({"ok": False, "code": error.code, "error": error.message}, error.status or 403)
        family = family_of(path)
        try:
            return await self._admitted(request, facts, path, family)
        except (TapsterError, RuntimeFault) as error:
            return error_answer(family, error)
        except Exception as error:  # noqa: BLE001 - the border: whatever happened, a client gets an answer
            # The message may hold a person's text, so only the class and the place go to the log.
            log.error("request failed", family=family, **described(error))
            return error_answer(family, TapsterError(UNEXPECTED_TEXT, status=500))

    async def _admitted(self, request: Request, facts: RequestFacts, path: str, family: Family) -> Answer | Attachment:
        if path == TOKEN_PATH and facts.method == "GET":
            return self._token(facts)
        if self._tapster.is_draining:
            raise Draining
        if family == "v3":
            return await answer_v3(self._tapster, facts.method, path.removeprefix("/v3"))
        route, ids = self._router.find(facts.method, path)
        query = Query.of(request.scope)
        if facts.method == "GET":
            check_path_ids(route.family, ids)
            return await route.handler(Call(self._tapster, facts, query, ids))
        data = await read_body(request, route.limit)
        body = {} if route.takes_bytes else parse_body(data)
        check_path_ids(route.family, ids)
        return await route.handler(Call(self._tapster, facts, query, ids, body, data))

    def _token(self, facts: RequestFacts) -> Answer:
        if self._options.request_token is None or not may_issue_token(facts):
            error = OriginForbidden("only the embedded page may ask for the request token")
            return Answer({"ok": False, "code": error.code, "error": error.message}, error.status or 403)
        return ok(token=self._options.request_token)
