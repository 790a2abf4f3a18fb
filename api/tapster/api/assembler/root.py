"""One request below the assembler's root: security, routing, body, handler.

Source: spec/assembler §17; spec/history_policy §8.
"""

from typing import Final

import attrs
import structlog
from quart.wrappers import Request

from tapster.api.answers import Answer, ok
from tapster.api.bodies import parse_body, read_body
from tapster.api.errors import UNEXPECTED_TEXT, error_answer
from tapster.api.facts import Query, request_facts
from tapster.api.ports import Tapster
from tapster.engine.contract import CONTRACT_ROOT, RequestFacts, SecurityOptions, check_request, may_issue_token
from tapster.engine.contract.security import OriginForbidden
from tapster.engine.errors import RequestError, TapsterError
from tapster.engine.trace import decode_segment
from tapster.runtime import Draining, RuntimeFault, described

from .history_policy import answer_policy
from .presets import PresetCall, answer_presets

ASSEMBLER_ROOT: Final = "/dsh-prompt-assembler/api"
PRESETS: Final = "/v1/assembly-presets"
POLICY: Final = "/v1/history-policy"
TOKEN: Final = "/v1/request-token"
MIB: Final = 1024 * 1024
PRESET_LIMIT: Final = 2 * MIB
POLICY_LIMIT: Final = 256 * 1024
READS: Final = ("GET", "HEAD")

log = structlog.get_logger(__name__)


class MethodNotTaken(RequestError):
    """The root has nothing for this method at this path."""

    code = "ASSEMBLER_API_METHOD"
    kind = "Error"
    status = 405


def is_assembler_path(path: str) -> bool:
    """Whether a path is the assembler's, in either of its places."""
    return _is_below(path, ASSEMBLER_ROOT) or _is_below(path, CONTRACT_ROOT + PRESETS)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")


class AssemblerRoot:
    """Answers every request of the assembler's routes."""

    def __init__(self, tapster: Tapster, options: SecurityOptions) -> None:
        self._tapster = tapster
        self._options = options

    async def answer(self, request: Request) -> Answer:
        """The answer to a request, an error included."""
        facts = request_facts(request.scope)
        is_older = _is_below(facts.path, CONTRACT_ROOT)
        try:
            check_request(facts if is_older else _as_contract(facts), self._options)
        except RequestError as error:
            code = error.code if is_older else error.code.replace("TAVERN_API", "ASSEMBLER_API")
            return Answer({"ok": False, "code": code, "error": error.message}, error.status or 403)
        try:
            path = facts.path.removeprefix(CONTRACT_ROOT if is_older else ASSEMBLER_ROOT)
            return await self._admitted(request, facts, path)
        except (TapsterError, RuntimeFault) as error:
            return error_answer("v2", error)
        except Exception as error:  # noqa: BLE001 - the border: whatever happened, a client gets an answer
            # The message may hold a person's text, so only the class goes to the log.
            log.error("request failed", family="assembler", **described(error))
            return error_answer("v2", TapsterError(UNEXPECTED_TEXT, status=500))

    async def _admitted(self, request: Request, facts: RequestFacts, path: str) -> Answer:
        if path == TOKEN:
            return self._token(facts)
        if self._tapster.is_draining:
            raise Draining
        query = Query.of(request.scope)
        is_policy = _is_below(path, POLICY)
        if not is_policy and not _is_below(path, PRESETS):
            raise MethodNotTaken(f"there is nothing at {path[:200]}")
        data = b"" if facts.method in READS else await read_body(request, POLICY_LIMIT if is_policy else PRESET_LIMIT)
        body = parse_body(data) if data else {}
        strategies = self._tapster.strategies
        if is_policy:
            return await answer_policy(strategies, facts.method, path.removeprefix(POLICY), query, body)
        segments = tuple(decode_segment(part) for part in path.removeprefix(PRESETS).split("/")[1:])
        return await answer_presets(PresetCall(strategies, facts.method, segments, query, body))

    def _token(self, facts: RequestFacts) -> Answer:
        if facts.method != "GET":
            raise MethodNotTaken("the request token is read with GET")
        if self._options.request_token is None or not may_issue_token(_as_contract(facts)):
            error = OriginForbidden("only the embedded page may ask for the request token")
            code = "ASSEMBLER_API_ORIGIN_FORBIDDEN"
            return Answer({"ok": False, "code": code, "error": error.message}, error.status or 403)
        return ok(token=self._options.request_token)


def _as_contract(facts: RequestFacts) -> RequestFacts:
    """The facts with the assembler's own headers under the names that the checks know."""
    headers = {name: value for name, value in facts.headers.items() if not name.startswith("x-tavern-")}
    renamed = {"x-assembler-request-token": "x-tavern-request-token", "x-assembler-client": "x-tavern-client"}
    headers |= {renamed[name]: value for name, value in facts.headers.items() if name in renamed}
    return attrs.evolve(facts, headers=headers)
