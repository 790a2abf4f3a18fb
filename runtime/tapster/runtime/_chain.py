"""Who waits for whom, carried along every ask."""

from contextvars import ContextVar

ASKERS: ContextVar[tuple[int, ...]] = ContextVar("tapster_askers", default=())
"""Identities of the actors whose work this task does, outermost first (design §4 rule 11)."""
