"""The host part of a URL authority, as a browser would read it.

Source: spec/http §1 (checks 2 and 3).
"""

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import unquote

import attrs

MAX_PORT = 65535
DEFAULT_PORTS = {"http": 80, "https": 443}
_FORBIDDEN = re.compile(r"[\x00-\x20\"#%/:<>?@\[\\\]^`{|}\x7f]")
_AUTHORITY_END = re.compile(r"[/\\?#]")
_URL = re.compile(r"(https?):[/\\]*([^/\\?#]*)", re.IGNORECASE)


@attrs.frozen
class Authority:
    """A host name in lower case without brackets, and its port when one is written."""

    host: str
    port: int | None
    is_ipv6: bool = False

    @property
    def bracketed(self) -> str:
        """The host as it stands in a URL."""
        return f"[{self.host}]" if self.is_ipv6 else self.host


def parse_authority(text: str) -> Authority | None:
    """An authority (``Host`` header), or None when it isn't one; userinfo is ignored."""
    if not text or _AUTHORITY_END.search(text):
        return None
    host_port = text.rpartition("@")[2]
    if host_port.startswith("["):
        inside, bracket, rest = host_port[1:].partition("]")
        host, is_ipv6 = _ipv6(inside) if bracket else None, True
        port_text = rest[1:] if rest.startswith(":") else ""
        if rest and not rest.startswith(":"):
            return None
    else:
        name, _, port_text = host_port.partition(":")
        host, is_ipv6 = _name(name), False
    port = _port(port_text)
    return None if host is None or port == -1 else Authority(host, port or None if port_text else None, is_ipv6)


def origin_host(origin: str) -> str | None:
    """``URL.host`` of an http(s) origin: host, and the port unless it is the scheme's default; else None."""
    match = _URL.match(origin.strip())
    if match is None:
        return None
    authority = parse_authority(match.group(2))
    if authority is None:
        return None
    is_default = authority.port in {None, DEFAULT_PORTS[match.group(1).lower()]}
    return authority.bracketed if is_default else f"{authority.bracketed}:{authority.port}"


def _port(text: str) -> int:
    """The port, 0 for none, -1 for one that can't be."""
    if not text:
        return 0
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= MAX_PORT else -1


def _ipv6(text: str) -> str | None:
    try:
        return str(IPv6Address(text)) if "%" not in text else None
    except AddressValueError:
        return None


def _name(text: str) -> str | None:
    name = unquote(text).lower()
    if not name or _FORBIDDEN.search(name):
        return None
    labels = name.removesuffix(".").split(".")
    return _ipv4(labels) if _is_numeric(labels[-1]) else name


def _is_numeric(label: str) -> bool:
    return label.isascii() and (label.isdigit() or re.fullmatch("0x[0-9a-f]*", label) is not None)


def _ipv4(labels: list[str]) -> str | None:
    """Dotted form of the numeric address; URL parsers also take fewer parts, hexadecimal and octal ones."""
    numbers = [_ipv4_number(label) for label in labels]
    if len(numbers) > 4 or None in numbers:
        return None
    *high, last = [number for number in numbers if number is not None]
    if any(number > 255 for number in high) or last >= 256 ** (5 - len(numbers)):
        return None
    return str(IPv4Address(sum(number << (24 - 8 * index) for index, number in enumerate(high)) + last))


def _ipv4_number(label: str) -> int | None:
    base = 16 if label.startswith("0x") else 8 if len(label) > 1 and label.startswith("0") else 10
    digits = label[2:] if base == 16 else label
    try:
        return int(digits, base) if digits else 0
    except ValueError:
        return None
