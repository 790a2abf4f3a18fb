"""Zip archives in memory: members listed with limits, inflated one at a time, written back untouched.

Encryption, zip64 directories and archives over several disks are refused. Nothing is ever written to a path.

Source: issue "CHARX (zip) in and out"; the limits are in docs/formats.md.
"""

import struct
import zlib
from collections.abc import Iterable

import attrs

from tapster.engine.errors import FormatError
from tapster.engine.limits import ZIP_CARD_BYTES, ZIP_MEMBERS

LOCAL_SIGNATURE = b"PK\x03\x04"
_CENTRAL_SIGNATURE = b"PK\x01\x02"
_END_SIGNATURE = b"PK\x05\x06"
_END = struct.Struct("<4s4H2LH")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_COMMENT_BYTES = 0xFFFF
_ENCRYPTED = 0x1
_UTF8 = 0x800
_STORED, _DEFLATED = 0, 8
_ZIP64_FIELD = 1
_MAX = 0xFFFFFFFF
_EPOCH_DATE = 0x21  # 1980-01-01


@attrs.frozen
class ZipMember:
    """One member, still compressed. ``size`` is the length it claims to have once inflated, in bytes."""

    name: str
    method: int
    crc: int
    size: int
    data: bytes

    @property
    def is_safe(self) -> bool:
        """Whether the name stays inside the archive's own folder."""
        parts = self.name.replace("\\", "/").split("/")
        return not (".." in parts or self.name.startswith(("/", "\\")) or ":" in parts[0] or "\0" in self.name)


def stored_member(name: str, data: bytes) -> ZipMember:
    """A member that holds bytes as they are."""
    return ZipMember(name, _STORED, zlib.crc32(data), len(data), data)


def read_zip(data: bytes) -> tuple[ZipMember, ...]:
    """The members of an archive; bytes before it (a picture) are allowed.

    Raises:
        FormatError: ``zip-no-directory``, ``zip-damaged``, ``zip-too-many-members`` or ``zip-unsupported``.
    """
    end = data.rfind(_END_SIGNATURE, max(0, len(data) - _END.size - _COMMENT_BYTES))
    if end < 0 or end + _END.size > len(data):
        raise FormatError("zip-no-directory", "the zip has no directory at its end; the file was cut")
    _, disk, _, _, count, size, offset, _ = _END.unpack_from(data, end)
    if disk or count == 0xFFFF or offset == _MAX:
        raise FormatError("zip-unsupported", "zip64 archives and archives over several disks are not read")
    if count > ZIP_MEMBERS:
        raise FormatError("zip-too-many-members", f"the zip has {count} members; the limit is {ZIP_MEMBERS}")
    shift = end - size - offset
    if shift < 0:
        raise FormatError("zip-damaged", "the directory of the zip does not fit the file")
    return _members(data, offset + shift, end, count, shift)


def _members(data: bytes, position: int, end: int, count: int, shift: int) -> tuple[ZipMember, ...]:
    members = []
    total = 0
    for _ in range(count):
        if position + _CENTRAL.size > end or not data.startswith(_CENTRAL_SIGNATURE, position):
            raise FormatError("zip-damaged", f"the directory of the zip is broken at byte {position}")
        fields = _CENTRAL.unpack_from(data, position)
        flags, method, crc, packed, size = fields[3], fields[4], fields[7], fields[8], fields[9]
        name_length, extra, comment, local = fields[10], fields[11], fields[12], fields[16]
        start = position + _CENTRAL.size
        size, packed, local = _wide(data[start + name_length : start + name_length + extra], size, packed, local)
        name = data[start : start + name_length].decode("utf-8" if flags & _UTF8 else "cp437", "replace")
        position = start + name_length + extra + comment
        if flags & _ENCRYPTED:
            raise FormatError("zip-unsupported", "the zip is encrypted; unpack it and import the card inside")
        total += packed
        if total > len(data):
            raise FormatError("zip-damaged", "members of the zip overlap")
        if not name.endswith("/"):
            members.append(ZipMember(name, method, crc, size, _packed(data, local + shift, packed)))
    return tuple(members)


def _wide(extra: bytes, size: int, packed: int, local: int) -> tuple[int, int, int]:
    """The three numbers with those that did not fit taken from the zip64 field, in its fixed order."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, position)
        if kind == _ZIP64_FIELD:
            wide = [
                value for (value,) in struct.iter_unpack("<Q", extra[position + 4 : position + 4 + length // 8 * 8])
            ]
            given = (size, packed, local)
            first, second, third = (wide.pop(0) if value == _MAX and wide else value for value in given)
            return first, second, third
        position += 4 + length
    return size, packed, local


def _packed(data: bytes, local: int, length: int) -> bytes:
    if local + _LOCAL.size > len(data) or not data.startswith(LOCAL_SIGNATURE, local):
        raise FormatError("zip-damaged", f"a member of the zip does not start at byte {local}")
    fields = _LOCAL.unpack_from(data, local)
    start = local + _LOCAL.size + fields[9] + fields[10]
    if start + length > len(data):
        raise FormatError("zip-damaged", "a member of the zip runs past the end of the file")
    return data[start : start + length]


def inflate(member: ZipMember, limit: int = ZIP_CARD_BYTES) -> bytes:
    """A member's bytes, never more than ``limit``.

    Raises:
        FormatError: ``zip-member-too-large``, ``zip-unsupported`` or ``zip-damaged``.
    """
    if member.size > limit:
        raise FormatError("zip-member-too-large", f"{ascii(member.name)[:80]} has more than {limit} bytes")
    if member.method not in (_STORED, _DEFLATED):
        raise FormatError(
            "zip-unsupported", f"{ascii(member.name)[:80]} is packed by method {member.method}; use deflate"
        )
    data = member.data
    if member.method == _DEFLATED:
        try:
            data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(member.data, member.size + 1)
        except zlib.error as error:
            raise FormatError("zip-damaged", f"{ascii(member.name)[:80]} cannot be inflated: {error}") from error
    if len(data) != member.size or zlib.crc32(data) != member.crc:
        raise FormatError("zip-damaged", f"{ascii(member.name)[:80]} does not have the length and checksum it claims")
    return data


def write_zip(members: Iterable[ZipMember]) -> bytes:
    """An archive of members as they are; times are fixed, so equal members give equal bytes."""
    parts: list[bytes] = []
    central: list[bytes] = []
    offset = 0
    for member in members:
        name = member.name.encode("utf-8", "replace")
        flags = 0 if name.isascii() else _UTF8
        common = (flags, member.method, 0, _EPOCH_DATE, member.crc, len(member.data), member.size, len(name), 0)
        local = _LOCAL.pack(LOCAL_SIGNATURE, 20, *common) + name
        parts += (local, member.data)
        central.append(_CENTRAL.pack(_CENTRAL_SIGNATURE, 20, 20, *common, 0, 0, 0, 0, offset) + name)
        offset += len(local) + len(member.data)
    directory = b"".join(central)
    end = _END.pack(_END_SIGNATURE, 0, 0, len(central), len(central), len(directory), offset, 0)
    return b"".join((*parts, directory, end))
