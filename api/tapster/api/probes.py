"""Probes at the root for those who watch processes: ``/healthz``, ``/readyz``, ``/metrics``."""

from typing import Final

from tapster.engine.contract import RequestFacts, SecurityOptions, check_peer
from tapster.engine.errors import TapsterError

from .answers import Answer
from .errors import error_answer
from .metrics import CONTENT_TYPE, metrics_text
from .ports import Tapster

PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})


def answer_probe(tapster: Tapster, facts: RequestFacts, security: SecurityOptions) -> Answer | str:
    """The answer of a probe; a text is in the metrics' format.

    They follow the peer and Host checks of every route and need no token: they name no session and hold no text.
    """
    try:
        check_peer(facts, security)
    except TapsterError as error:
        return error_answer("own", error)
    if facts.path == "/healthz":
        return Answer({"status": "alive"})
    if facts.path == "/metrics":
        return metrics_text(tapster.runtime.reading())
    if tapster.is_draining:
        return Answer({"status": "draining"}, 503, {"Retry-After": "1"})
    return Answer({"status": "ready"})


__all__ = ["CONTENT_TYPE", "PROBES", "answer_probe"]
