"""Whether a request may enter the contract's HTTP root, from the facts of the request alone.

Source: spec/http §1.
"""

import hmac
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv4Address

import attrs

from tapster.engine.errors import RequestError

from .authority import origin_host, parse_authority

READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
CONTRACT_ROOT = "/pmp-dsh-tavern/api"
CHARACTER_IMPORT_PATH = f"{CONTRACT_ROOT}/v1/characters/import"
CHARACTER_IMPORT_TYPES = frozenset({"application/json", "application/octet-stream", "image/png"})
JSON_TYPES = frozenset({"application/json"})
SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class RemoteForbidden(RequestError):
    """The TCP peer isn't this machine."""

    code = "TAVERN_API_REMOTE_FORBIDDEN"
    status = 403


class HostForbidden(RequestError):
    """The Host header names another host."""

    code = "TAVERN_API_HOST_FORBIDDEN"
    status = 403


class OriginForbidden(RequestError):
    """A write comes from another page, or from none."""

    code = "TAVERN_API_ORIGIN_FORBIDDEN"
    status = 403


class ContentTypeRequired(RequestError):
    """A write isn't in a media type that needs a preflight."""

    code = "TAVERN_API_CONTENT_TYPE_REQUIRED"
    status = 415


@attrs.frozen
class RequestFacts:
    """What the checks look at; ``headers`` has lower-case names and the first value of each."""

    method: str
    path: str
    peer: str | None
    headers: Mapping[str, str]


@attrs.frozen
class SecurityOptions:
    """What a configuration may loosen.

    Attributes:
        request_token: token that a write without an Origin may carry instead, or None when none was issued.
    """

    allowed_hosts: frozenset[str] = frozenset()
    allow_remote_clients: bool = False
    request_token: str | None = None

    @classmethod
    def of(cls, allowed_hosts: object = (), *, allow_remote_clients: object = False) -> "SecurityOptions":
        """Options of a configuration; hosts are trimmed, lower-cased and compared without their port."""
        hosts = allowed_hosts if isinstance(allowed_hosts, list | tuple | set | frozenset) else ()
        names = (_configured_host(host) for host in hosts if isinstance(host, str))
        return cls(frozenset(name for name in names if name), allow_remote_clients is True)


def check_request(facts: RequestFacts, options: SecurityOptions) -> None:
    """Let a request pass.

    Raises:
        RemoteForbidden, HostForbidden, OriginForbidden, ContentTypeRequired: the first check that fails.
    """
    check_peer(facts, options)
    if facts.method.upper() in READ_METHODS:
        return
    if not _is_own_write(facts, options):
        raise OriginForbidden("a write must come from a page of this server: send an Origin equal to the Host header")
    allowed = CHARACTER_IMPORT_TYPES if facts.path == CHARACTER_IMPORT_PATH else JSON_TYPES
    media_type = facts.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in allowed:
        raise ContentTypeRequired(f"{media_type or 'no'} content type; send {' or '.join(sorted(allowed))}")


def check_peer(facts: RequestFacts, options: SecurityOptions) -> None:
    """The two checks that hold for reads as well.

    Raises:
        RemoteForbidden, HostForbidden: the first check that fails.
    """
    if not options.allow_remote_clients and not is_loopback(facts.peer):
        raise RemoteForbidden(f"{facts.peer or 'an unknown address'} is not this machine; see allowRemoteClients")
    host = facts.headers.get("host")
    authority = parse_authority(host.strip()) if host is not None else None
    if authority is None or not _is_allowed_host(authority.host, options):
        raise HostForbidden(f"the host {host!r} is not served here; see allowedHosts")


def may_issue_token(facts: RequestFacts) -> bool:
    """Whether a client of the desktop shell may have the process's request token."""
    return (
        facts.headers.get("x-tavern-client") == "embedded"
        and "origin" not in facts.headers
        and not _is_cross_site(facts)
    )


def is_loopback(address: str | None) -> bool:
    """Whether a peer address is this machine's own; a zone is cut, an IPv4 address may be mapped into IPv6."""
    if not address:
        return False
    plain = address.partition("%")[0].lower().removeprefix("::ffff:")
    return plain == "::1" or _is_loopback_ipv4(plain)


def is_same_origin(facts: RequestFacts) -> bool:
    """Whether the Origin is an http(s) URL with the Host header's host and port."""
    origin, host = facts.headers.get("origin"), facts.headers.get("host", "").strip().lower()
    return origin is not None and bool(host) and origin_host(origin) == host


def _is_own_write(facts: RequestFacts, options: SecurityOptions) -> bool:
    if _is_cross_site(facts):
        return False
    if "origin" in facts.headers:
        return is_same_origin(facts)
    token = facts.headers.get("x-tavern-request-token")
    return token is not None and options.request_token is not None and equal_secrets(token, options.request_token)


def equal_secrets(left: str, right: str) -> bool:
    """Compare in constant time; any text is fine."""
    return hmac.compare_digest(left.encode("utf-8", "surrogatepass"), right.encode("utf-8", "surrogatepass"))


def _is_cross_site(facts: RequestFacts) -> bool:
    return facts.headers.get("sec-fetch-site", "").strip().lower() == "cross-site"


def _is_loopback_ipv4(text: str) -> bool:
    try:
        return str(IPv4Address(text)).startswith("127.")
    except AddressValueError:
        return False


def _is_allowed_host(host: str, options: SecurityOptions) -> bool:
    return host in {"localhost", "::1"} or _is_loopback_ipv4(host) or host in options.allowed_hosts


def _configured_host(text: str) -> str | None:
    name = text.strip().lower()
    # Compared without brackets, an IPv6 address may also be written without them.
    authority = parse_authority(name) or parse_authority(f"[{name}]")
    return authority.host if authority else None
