"""Structured logs on standard error: ids, codes, counts and times, never the text of a prompt or message.

A line costs its writer nothing: a thread of its own writes it. A full disk, a pipe that was closed or one that nobody
reads loses lines, and later says how many, but holds up no request and fails none.
"""

import json
import logging
import os
import queue
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TextIO, final

import structlog

from tapster.runtime import described

WAITING_LINES: Final = 1_000
CLOSING_S: Final = 1.0
"""What the last lines may take when the process ends: whoever reads them may have stopped."""


@final
class LineWriter:
    """Writes lines to a file descriptor in order; never blocks and never fails its caller."""

    def __init__(self, descriptor: int | None, waiting_lines: int = WAITING_LINES, encoding: str = "utf-8") -> None:
        """Start writing.

        Args:
            descriptor: where to; None = nowhere.
            waiting_lines: how many lines may wait; what comes beyond them is dropped and counted.
            encoding: of whoever reads; what it lacks is escaped.
        """
        self._descriptor = descriptor
        self._encoding = encoding
        self._waiting = queue.Queue[str | None](waiting_lines)
        self._lost = 0
        self._is_cut_off = False
        self._lock = threading.Lock()
        # A daemon: a write that never returns must not hold the process.
        self._thread = threading.Thread(target=self._write_all, name="tapster.logs", daemon=True)
        self._thread.start()

    def msg(self, line: str) -> None:
        """Queue a line; the name is structlog's."""
        try:
            self._waiting.put_nowait(line)
        except queue.Full:
            self._lose()

    log = debug = info = warning = warn = error = critical = fatal = exception = failure = msg

    def close(self, within_s: float = CLOSING_S) -> None:
        """Write what waits, as far as that is done in time."""
        try:
            self._waiting.put(None, timeout=within_s)
        except queue.Full:
            return
        self._thread.join(within_s)

    def _write_all(self) -> None:
        while (line := self._waiting.get()) is not None:
            self._write_losses()
            if not self._write(line):
                self._lose()
        self._write_losses()

    def _write_losses(self) -> None:
        lost = self._take_lost()
        if lost and not self._write(json.dumps({"event": "logs.lost", "level": "warning", "lines": lost})):
            self._lose(lost)

    def _take_lost(self) -> int:
        with self._lock:
            lost, self._lost = self._lost, 0
        return lost

    def _lose(self, lines: int = 1) -> None:
        with self._lock:
            self._lost += lines

    def _write(self, line: str) -> bool:
        if self._descriptor is None:
            return False
        # What is left of a line that was cut off stands alone, so that the next one can be read.
        text = ("\n" if self._is_cut_off else "") + f"{line}\n"
        rest = text.encode(self._encoding, "backslashreplace")
        try:
            while rest:
                try:
                    written = os.write(self._descriptor, rest)
                except BlockingIOError:
                    # Whoever shares the pipe may have made it so; waiting is what this thread is for.
                    select.select([], [self._descriptor], [])
                    continue
                self._is_cut_off = rest[written - 1 : written] != b"\n"
                rest = rest[written:]
        except OSError:
            return False
        return True


@contextmanager
def open_lines(stream: TextIO) -> Iterator[LineWriter]:
    """Lines for whoever may be watching a process that goes on whether or not somebody is."""
    writer = LineWriter(_descriptor_of(stream), encoding=stream.encoding or "utf-8")
    try:
        yield writer
    finally:
        writer.close()


@contextmanager
def open_logs(stream: TextIO, level: str = "info") -> Iterator[LineWriter]:
    """Send structured lines, and what libraries log, to a stream for the length of a block."""
    writer = LineWriter(_descriptor_of(stream))
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=lambda *_: writer,
    )
    libraries = _LibraryLines(logging.WARNING)
    logging.getLogger().addHandler(libraries)
    try:
        yield writer
    finally:
        logging.getLogger().removeHandler(libraries)
        structlog.reset_defaults()
        writer.close()


def log_sink(level: str, event: str, **fields: object) -> None:
    """A ``LogSink`` over structlog."""
    logger = structlog.get_logger()
    logger.log(logging.getLevelNamesMapping()[level.upper()], event, **fields)


@final
class _LibraryLines(logging.Handler):
    """What a library logs, as lines of ours: its template and the place of an error, never the values put in."""

    def emit(self, record: logging.LogRecord) -> None:
        fields: dict[str, object] = {"logger": record.name, "template": str(record.msg)}
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            fields.update(described(error))
        log_sink("error" if record.levelno >= logging.ERROR else "warning", "library.said", **fields)


def _descriptor_of(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError):
        return None
