"""Structured logs on standard error: ids, codes, counts and times, never the text of a prompt or message."""

import logging
import sys

import structlog


def configure_logs(level: str = "info") -> None:
    """Send structured lines to standard error; call it once, before anything is served."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def log_sink(level: str, event: str, **fields: object) -> None:
    """A ``LogSink`` over structlog."""
    logger = structlog.get_logger()
    logger.log(logging.getLevelNamesMapping()[level.upper()], event, **fields)
