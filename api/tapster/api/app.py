"""The HTTP application: the contract's root, Tapster's own root, and whatever pages are added to it."""

from importlib.metadata import version

import attrs
from quart import Request, Response, request
from quart_trio import QuartTrio

from tapster.engine.contract import CONTRACT_ROOT, SecurityOptions

from .answers import Responder
from .assembler import AssemblerRoot, is_assembler_path
from .contract import ContractRoot
from .facts import request_facts
from .own import OWN_ROOT, OwnOptions, OwnRoot
from .ports import Tapster
from .probes import CONTENT_TYPE, PROBES, answer_probe


@attrs.frozen
class AppOptions:
    """What the configuration says about HTTP.

    Attributes:
        token: bearer token of Tapster's own routes; None asks for none.
        request_token: this process's token for the embedded page of the contract, None when there is none.
    """

    allowed_hosts: frozenset[str] = frozenset()
    allow_remote_clients: bool = False
    token: str | None = attrs.field(default=None, repr=False)
    request_token: str | None = attrs.field(default=None, repr=False)

    @property
    def security(self) -> SecurityOptions:
        """The settings of the security checks."""
        checked = SecurityOptions.of(self.allowed_hosts, allow_remote_clients=self.allow_remote_clients)
        return attrs.evolve(checked, request_token=self.request_token)


def create_app(tapster: Tapster, options: AppOptions | None = None) -> QuartTrio:
    """An application over an open Tapster; it owns no state and no task."""
    options = options or AppOptions()
    app = QuartTrio("tapster.api", static_folder=None)
    # Each route has its own limit; the framework's would answer in its own words.
    app.config["MAX_CONTENT_LENGTH"] = None
    app.config["BODY_TIMEOUT"] = None
    app.config["RESPONSE_TIMEOUT"] = None
    responder = Responder()
    contract = ContractRoot(tapster, options.security)
    assembler = AssemblerRoot(tapster, options.security)
    own = OwnRoot(tapster, OwnOptions(options.security, options.token), version("tapster"), responder)

    @app.before_request
    async def answer_roots() -> Response | None:
        """The roots answer every path and method below them, before the framework's routing has a say."""
        path = request.scope["path"]
        forget_routing(request)
        if is_assembler_path(path):
            return await responder.response(await assembler.answer(request))
        if is_below(path, CONTRACT_ROOT):
            return await responder.response(await contract.answer(request))
        if is_below(path, OWN_ROOT):
            return await own.answer(request)
        if path in PROBES and request.method in ("GET", "HEAD"):
            probed = answer_probe(tapster, request_facts(request.scope), options.security)
            if isinstance(probed, str):
                return Response(probed, content_type=CONTENT_TYPE)
            return await responder.response(probed)
        return None

    return app


def forget_routing(request: Request) -> None:
    """Drop where the framework's routing failed: it knows none of the roots' paths, and its error holds the request,
    which holds the error. In a cycle, all that a request brought would wait for a collection."""
    if request.routing_exception is not None:
        request.routing_exception.__traceback__ = request.routing_exception.__context__ = None


def is_below(path: str, root: str) -> bool:
    """Whether a path is the root or under it."""
    return path == root or path.startswith(root + "/")
