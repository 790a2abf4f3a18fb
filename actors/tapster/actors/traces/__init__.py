"""Trace writes on their way to the store."""

from .outbox import OutboxStatistics as OutboxStatistics
from .outbox import TraceOutbox as TraceOutbox
from .outbox import open_trace_outbox as open_trace_outbox
