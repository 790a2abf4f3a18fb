"""Cleanup that may await: the one place where a shield is opened."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio

CLEANUP_GRACE_S = 1.0
"""How long ordinary cleanup may take; a store commit gets more (design §4 rule 8, style §3 rule 4)."""


@contextmanager
def bounded_shield(seconds: float = CLEANUP_GRACE_S) -> Iterator[trio.CancelScope]:
    """A scope in which outside cancellation waits, at most ``seconds``; what runs longer is cancelled."""
    with trio.move_on_after(seconds, shield=True) as scope:
        yield scope


@contextmanager
def unbounded_shield() -> Iterator[None]:
    """A scope for waiting on work whose own rules bound it (a cancelled request, a commit in progress).

    Source: style §2 "Erlang/OTP and tractor": a leaving asker waits until the work has ended.
    """
    with trio.CancelScope(shield=True):
        yield
