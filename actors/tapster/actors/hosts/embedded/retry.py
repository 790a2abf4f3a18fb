"""The built-in retry of failed requests: which codes, how often, how long to wait.

Source: spec/dsh_host §8.
"""

from collections.abc import Callable
from typing import Final, Literal

import attrs
import trio

from tapster.actors.providers import Failure
from tapster.engine import limits
from tapster.engine.ecma import Json, stringify
from tapster.engine.projection.events import LLM_RETRY, LLM_RETRY_STARTED

from .hooks import RequestFailed, StepContext
from .waterfall import Next

RETRYABLE: Final = ("EMPTY_RESPONSE", "RATE_LIMIT", "SERVER", "TIMEOUT", "TRANSPORT")


@attrs.frozen
class RetryPolicy:
    """How failed attempts are repeated.

    Attributes:
        jitter: gives a number in [0, 1); the delay varies by ``HOST_RETRY_JITTER`` either way.
    """

    jitter: Callable[[], float]
    retries: int = limits.HOST_RETRIES
    first_ms: int = limits.HOST_RETRY_FIRST_MS
    max_ms: int = limits.HOST_RETRY_MAX_MS

    @property
    def key(self) -> str:
        """The policy as one word, for the log."""
        return stringify(
            ["normal", self.retries, list(RETRYABLE), self.first_ms, self.max_ms, limits.HOST_RETRY_JITTER]
        )

    def applies(self, failure: Failure, retries: int) -> bool:
        """Whether another attempt is due after ``retries`` earlier ones."""
        return failure.code in RETRYABLE and retries < self.retries

    def delay_ms(self, failure: Failure, retry: int) -> float:
        """How long to wait before retry number ``retry``, from 1."""
        asked = failure.retry_after_ms
        if asked is not None and asked <= self.max_ms:
            return asked
        spread = 1 + limits.HOST_RETRY_JITTER * (2 * self.jitter() - 1)
        return float(min(self.first_ms * 2 ** (retry - 1), self.max_ms)) * spread

    async def listen(
        self, failed: RequestFailed, context: StepContext, following: Next[RequestFailed, Literal["retry"] | None]
    ) -> Literal["retry"] | None:
        """The ``agent/request-error`` listener; for a retryable failure nobody behind it is asked."""
        if not self.applies(failed.failure, failed.retries):
            return await following()
        agent, retry = context.agent, failed.retries + 1
        place: Json = {"retryId": agent.new_id(), "turn": context.turn, "step": context.step}
        delay_ms = self.delay_ms(failed.failure, retry)
        agent.log.append(
            LLM_RETRY,
            {
                **place,
                "provider": failed.provider,
                "mode": "normal",
                "policyKey": self.key,
                "retry": retry,
                "maxRetries": self.retries,
                "delayMs": delay_ms,
                "failure": failed.failure.to_json(),
            },
        )
        await trio.sleep(delay_ms / 1000)
        agent.log.append(LLM_RETRY_STARTED, {**place, "retry": retry})
        return "retry"
