"""Who may use Tapster's own routes (design §7): peer and host, an Origin that is present, a token when one is set."""

import attrs

from tapster.engine.contract import RequestFacts, SecurityOptions, check_peer, equal_secrets, is_same_origin
from tapster.engine.contract.security import OriginForbidden
from tapster.engine.errors import RequestError

OWN_ROOT = "/tapster/api/v1"


class Unauthorized(RequestError):
    """The bearer token is missing or another one."""

    code = "UNAUTHORIZED"
    status = 401


@attrs.frozen
class OwnOptions:
    """The checks' settings; ``token`` None asks for none."""

    security: SecurityOptions = attrs.Factory(SecurityOptions)
    token: str | None = attrs.field(default=None, repr=False)


def admit(facts: RequestFacts, options: OwnOptions) -> None:
    """Let a request pass.

    Raises:
        RemoteForbidden, HostForbidden, OriginForbidden, Unauthorized: the first check that fails.
    """
    check_peer(facts, options.security)
    if "origin" in facts.headers and not is_same_origin(facts):
        raise OriginForbidden("the Origin is another site's")
    if options.token is not None and not _has_token(facts, options.token):
        raise Unauthorized("send the configured token as 'Authorization: Bearer …'")


def _has_token(facts: RequestFacts, token: str) -> bool:
    scheme, _, given = facts.headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and equal_secrets(given.strip(), token)
