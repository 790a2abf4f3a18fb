"""The file of facts: one JSON object a line, read whole, appended to, never rewritten."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path

import attrs

MAX_FILE_BYTES = 4 * 1024 * 1024


class FactsUnreadable(Exception):
    """The file of facts exists but can't be used."""

    code = "MEMORY_FACTS_UNREADABLE"


@attrs.frozen
class Fact:
    """Something to remember.

    Attributes:
        keys: words that bring it back; without any it always comes.
        session: the only session it is for, or None for all.
    """

    text: str
    keys: tuple[str, ...] = ()
    session: str | None = None

    @property
    def id(self) -> str:
        """A stable name made of what it says."""
        return hashlib.sha256(repr((self.text, self.keys, self.session)).encode()).hexdigest()[:16]

    def matches(self, session: str, text: str) -> bool:
        """Whether it belongs to a session and the text holds one of its keys."""
        lowered = text.lower()
        is_here = self.session is None or self.session == session
        return is_here and (not self.keys or any(key.lower() in lowered for key in self.keys))


@attrs.frozen
class FactFile:
    """Facts on disk. ``revision`` is cheap and changes whenever the file does."""

    path: Path

    def revision(self) -> tuple[int, int]:
        """Time in nanoseconds and size of the file; zeros when there is none."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return (0, 0)
        return (status.st_mtime_ns, status.st_size)

    def read(self) -> tuple[Fact, ...]:
        """All facts in the order in which they were remembered.

        Raises:
            FactsUnreadable: the file is too large or a line isn't a fact.
        """
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return ()
        if len(data) > MAX_FILE_BYTES:
            raise FactsUnreadable(f"the file of facts has over {MAX_FILE_BYTES} bytes")
        lines = data.decode("utf-8", "replace").splitlines()
        return tuple(_fact(number, line) for number, line in enumerate(lines, start=1) if line.strip())

    def remember(self, fact: Fact) -> None:
        """Add a fact; it is on disk when this returns."""
        value = {"text": fact.text, "keys": list(fact.keys), "session": fact.session}
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(json.dumps(value, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


def _fact(number: int, line: str) -> Fact:
    try:
        value = json.loads(line)
        keys: Sequence[str] = value.get("keys") or ()
        return Fact(str(value["text"]), tuple(str(key) for key in keys), value.get("session"))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise FactsUnreadable(f"line {number} of the file of facts isn't a fact") from error
