"""Sampling values that a provider refuses are withdrawn for the request, and the record says so."""

import pytest
from trio.testing import MockClock

from tapster.actors.providers import CallConfig, PreparedCall, ProviderError, ScriptedProvider
from tapster.actors.providers.scripted import fails, says
from tests.support.tavern import open_tavern_rig

REFUSAL = "Unsupported parameter: 'temperature' is not supported with this model."


async def test_a_refused_value_is_withdrawn_and_the_request_made_again(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        provider = tavern.rig.provider
        provider.scripts += [fails("HTTP_400", REFUSAL, status=400), says("Good evening.")]
        handle = await tavern.rig.host.create("s")
        await handle.followup("hello")
        await handle.when_idle()
        assert tavern.rig.last_end() == {"kind": "completed"}
        assert [request.config.get("temperature") for request in provider.requests] == [0.5, None]
        first, second = tavern.traces.records.values()
        assert (first["attempt"], second["attempt"]) == (1, 2)
        assert second["parameters"] == {
            "requested": {"temperature": 0.5},
            "effective": {},
            "withdrawn": [
                {
                    "parameter": "temperature",
                    "stage": "provider",
                    "reason": "parameter-rejected",
                    "code": "HTTP_400",
                    "status": 400,
                }
            ],
        }


async def test_another_refusal_is_the_hosts_to_handle(autojump_clock: MockClock) -> None:
    async with open_tavern_rig() as tavern:
        tavern.rig.provider.scripts.append(fails("HTTP_400", "the conversation is empty", status=400))
        handle = await tavern.rig.host.create("s")
        await handle.followup("hello")
        await handle.when_idle()
        assert tavern.rig.last_end()["kind"] == "error"
        assert len(tavern.rig.provider.requests) == 1


async def test_what_the_resolver_refuses_never_leaves(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(self: ScriptedProvider, config: CallConfig) -> PreparedCall:
        if "temperature" in config:
            raise ProviderError(REFUSAL, code="INVALID_REQUEST", status=400)
        return PreparedCall(config)

    monkeypatch.setattr(ScriptedProvider, "prepare", prepare)
    async with open_tavern_rig() as tavern:
        tavern.rig.provider.scripts.append(says("Good evening."))
        handle = await tavern.rig.host.create("s")
        await handle.followup("hello")
        await handle.when_idle()
        (record,) = tavern.traces.records.values()
        assert record["parameters"]["withdrawn"][0]["stage"] == "preflight"
        assert "temperature" not in tavern.rig.provider.requests[0].config
