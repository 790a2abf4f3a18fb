"""Sampling values that a provider refuses: withdrawn for the request at hand, named in its record, kept at rest.

Source: spec/loader §10 "3.1 admission".
"""

from collections.abc import Mapping
from typing import Literal, final

import attrs

from tapster.actors.hosts.embedded import RequestFailed, StepContext
from tapster.actors.providers import CallConfig, ProviderError
from tapster.engine.ecma import Json
from tapster.engine.profile import CallFailure, Series, withdraw_after_error, withdraw_preflight


@final
@attrs.define(eq=False)
class ParameterAdmission:
    """The request series of each agent: which of the preset's values still apply."""

    _series: dict[str, tuple[tuple[Json, ...], Mapping[str, Json], Series]] = attrs.field(factory=dict)

    async def admit(self, context: StepContext, config: CallConfig, supplied: Mapping[str, Json]) -> CallConfig:
        """The config with the preset's values that the host's resolver takes.

        Raises:
            ProviderError: the config is refused for another reason.
        """
        agent = context.agent
        key = (context.turn, context.step, config.get("provider"), config.get("model"), *sorted(supplied))
        known = self._series.get(agent.id)
        series = known[2] if known is not None and known[0] == key else Series()
        while True:
            merged = {**config, **series.admitted(supplied)}
            try:
                await agent.session.resolve_call_config(merged)
            except ProviderError as error:
                failure = CallFailure(error.code, error.status, error.message)
                withdrawn = withdraw_preflight(series, failure, supplied)
                if withdrawn is None:
                    raise
                series = withdrawn
                continue
            self._series[agent.id] = (key, dict(supplied), series)
            return merged

    def retry(self, context: StepContext, failed: RequestFailed) -> Literal["retry"] | None:
        """Whether the failed attempt is worth another without a value that the provider named."""
        known = self._series.get(context.agent.id)
        if known is None or known[0][:2] != (context.turn, context.step):
            return None
        key, supplied, series = known
        failure = CallFailure(failed.failure.code, failed.failure.status, failed.failure.message)
        turn = context.agent.turn
        withdrawn = withdraw_after_error(
            series,
            failure,
            supplied,
            output_started=failed.had_output,
            cancelled=turn is not None and turn.cause is not None,
        )
        if withdrawn is None:
            return None
        self._series[context.agent.id] = (key, supplied, withdrawn)
        return "retry"

    def record(self, agent_id: str) -> Json:
        """``{requested, effective, withdrawn}`` of the newest request, None when the preset supplied nothing."""
        known = self._series.get(agent_id)
        if known is None or not known[1]:
            return None
        _, supplied, series = known
        return {
            "requested": dict(supplied),
            "effective": series.admitted(supplied),
            "withdrawn": [withdrawal.to_json() for withdrawal in series.withdrawn],
        }

    def forget(self, agent_id: str) -> None:
        """An agent is gone."""
        self._series.pop(agent_id, None)
