"""Who may enter the contract's HTTP root (spec/http §1)."""

import pytest

from tapster.engine.contract import RequestFacts, SecurityOptions, check_request, may_issue_token
from tapster.engine.contract.authority import origin_host, parse_authority
from tapster.engine.contract.security import is_loopback
from tapster.engine.errors import RequestError

PATH = "/pmp-dsh-tavern/api/v1/presets"


def refusal(
    method: str = "GET", peer: str | None = "127.0.0.1", token: str | None = None, **headers: str
) -> str | None:
    named = {"host": "localhost:1", **{key.replace("_", "-"): value for key, value in headers.items()}}
    try:
        check_request(RequestFacts(method, PATH, peer, named), SecurityOptions(request_token=token))
    except RequestError as error:
        return error.code
    return None


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("::1", True),
        ("::1%lo0", True),
        ("127.255.0.3", True),
        ("::FFFF:127.0.0.1", True),
        ("::ffff:::1", True),
        ("127.0.0.1.evil.test", False),
        ("128.0.0.1", False),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        (None, False),
    ],
)
def test_loopback(address: str | None, expected: bool) -> None:
    assert is_loopback(address) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", None),
        ("LOCALHOST:80", None),
        ("user@127.0.0.1:80", None),
        ("[::1]", None),
        ("[0:0::1]:5", None),
        ("127.1", None),
        ("0x7f000001", None),
        ("%6cocalhost", None),
        ("localhost:", None),
        ("localhost.", "TAVERN_API_HOST_FORBIDDEN"),
        ("evil.test", "TAVERN_API_HOST_FORBIDDEN"),
        ("localhost@evil.test", "TAVERN_API_HOST_FORBIDDEN"),
        ("localhost/evil", "TAVERN_API_HOST_FORBIDDEN"),
        ("[::1", "TAVERN_API_HOST_FORBIDDEN"),
        ("[::1]x", "TAVERN_API_HOST_FORBIDDEN"),
        ("localhost:99999", "TAVERN_API_HOST_FORBIDDEN"),
        ("local host", "TAVERN_API_HOST_FORBIDDEN"),
        ("0.0.0.0", "TAVERN_API_HOST_FORBIDDEN"),
        ("", "TAVERN_API_HOST_FORBIDDEN"),
    ],
)
def test_host(host: str, expected: str | None) -> None:
    assert refusal(host=host) == expected


@pytest.mark.parametrize(
    ("origin", "host", "expected"),
    [
        ("http://localhost", "localhost", None),
        ("http://localhost:80", "localhost", None),
        ("https://localhost:443", "localhost", None),
        ("HTTP://LocalHost:5", "LOCALhost:5", None),
        ("http://[::1]:5", "[::1]:5", None),
        ("http://localhost:80", "localhost:80", "TAVERN_API_ORIGIN_FORBIDDEN"),
        ("https://localhost:80", "localhost:80", None),
        ("http://127.0.0.1:5", "localhost:5", "TAVERN_API_ORIGIN_FORBIDDEN"),
        ("null", "localhost", "TAVERN_API_ORIGIN_FORBIDDEN"),
        ("dsh-app://localhost", "localhost", "TAVERN_API_ORIGIN_FORBIDDEN"),
        ("ftp://localhost", "localhost", "TAVERN_API_ORIGIN_FORBIDDEN"),
        ("", "localhost", "TAVERN_API_ORIGIN_FORBIDDEN"),
    ],
)
def test_origin(origin: str, host: str, expected: str | None) -> None:
    assert refusal("PUT", host=host, origin=origin, content_type="application/json; charset=utf-8") == expected


def test_checks_run_in_order() -> None:
    assert refusal("POST", peer="10.0.0.1", host="evil.test") == "TAVERN_API_REMOTE_FORBIDDEN"
    assert refusal("POST", host="evil.test") == "TAVERN_API_HOST_FORBIDDEN"
    assert refusal("POST", content_type="text/plain") == "TAVERN_API_ORIGIN_FORBIDDEN"
    assert refusal("POST", origin="http://localhost:1") == "TAVERN_API_CONTENT_TYPE_REQUIRED"


@pytest.mark.parametrize("token", ["0123", "схема", "\ud800"])
def test_a_write_without_origin_may_carry_the_token(token: str) -> None:
    assert refusal("POST", token=token, x_tavern_request_token=token, content_type="application/json") is None
    wrong = refusal("POST", token=token, x_tavern_request_token=token + "x", content_type="application/json")
    assert wrong == "TAVERN_API_ORIGIN_FORBIDDEN"
    foreign = refusal("POST", token=token, x_tavern_request_token=token, origin="null")
    assert foreign == "TAVERN_API_ORIGIN_FORBIDDEN"
    crossed = refusal("POST", token=token, x_tavern_request_token=token, sec_fetch_site="cross-site")
    assert crossed == "TAVERN_API_ORIGIN_FORBIDDEN"


def test_no_token_was_issued() -> None:
    assert refusal("POST", x_tavern_request_token="", content_type="application/json") == "TAVERN_API_ORIGIN_FORBIDDEN"


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"x-tavern-client": "embedded"}, True),
        ({"x-tavern-client": "embedded", "origin": "http://localhost:1"}, False),
        ({"x-tavern-client": "embedded", "sec-fetch-site": "cross-site"}, False),
        ({}, False),
    ],
)
def test_who_gets_a_token(headers: dict[str, str], expected: bool) -> None:
    assert may_issue_token(RequestFacts("GET", PATH, "127.0.0.1", headers)) is expected


def test_configured_hosts_lose_port_and_case() -> None:
    options = SecurityOptions.of([" DSH.lan:5173 ", "", 3, "[::2]", "fe80::1"])
    assert options.allowed_hosts == {"dsh.lan", "::2", "fe80::1"}


def test_authorities() -> None:
    authority = parse_authority("a@b@Host:080")
    assert authority is not None
    assert (authority.host, authority.port) == ("host", 80)
    assert parse_authority("1.2.3.4.5") is None
    assert parse_authority("256.1.1.1") is None
    assert parse_authority("09.1") is None
    assert origin_host("http://[::1]:80/x?y") == "[::1]"
