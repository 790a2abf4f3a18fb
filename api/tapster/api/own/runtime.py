"""Whether Tapster is alive, ready, and what it answers to."""

import trio

from tapster.api.answers import Answer

from .routing import OwnCall, OwnRoute, own_route

ROUTES: list[OwnRoute] = []


@own_route(ROUTES, "GET", "/health", "Whether the process answers", "runtime", while_draining=True)
async def health(call: OwnCall) -> Answer:
    await trio.lowlevel.checkpoint()
    return Answer({"status": "alive"})


@own_route(ROUTES, "GET", "/ready", "Whether new work is taken; 503 during a shutdown", "runtime", while_draining=True)
async def ready(call: OwnCall) -> Answer:
    await trio.lowlevel.checkpoint()
    if call.tapster.is_draining:
        return Answer({"status": "draining"}, 503, {"Retry-After": "1"})
    return Answer({"status": "ready"})


@own_route(
    ROUTES, "GET", "/runtime", "Actors, event loop, store, threads: the program at work", "runtime", while_draining=True
)
async def runtime(call: OwnCall) -> Answer:
    await trio.lowlevel.checkpoint()
    return Answer({"runtime": call.tapster.runtime.reading().to_json()})
