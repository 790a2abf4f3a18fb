"""A memory manager as a source."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest
import trio
from trio.testing import MockClock

from tapster.actors.sources import MemorySource, assemble, open_sources
from tapster.engine.assembly import AssemblyResult, freeze_context, normalise_preset
from tapster.engine.errors import TapsterError
from tests.support.assembly import HEAD

Json = Any


@attrs.define
class Manager:
    """A memory manager with scripted answers by resource id."""

    answers: dict[str, Callable[[], Json]]
    available: bool = True
    asked: list[Json] = attrs.field(factory=list)

    def request_assembly_resources(self) -> Json:
        entries = [
            {"id": name, "adapterId": "facts", "configurationSnapshot": {"config": {}, "revision": 3}}
            for name in self.answers
        ]
        return {"available": self.available, "entries": entries if self.available else []}

    async def trigger(self, request: Json) -> Json:
        self.asked.append(request)
        await trio.lowlevel.checkpoint()
        return self.answers[request["id"]]()


class NotReady(Exception):
    code = "RESOURCE_UNAVAILABLE"


def found(value: Json) -> Callable[[], Json]:
    return lambda: {
        "matched": True,
        "value": value,
        "resourceRevision": 1,
        "configRevision": 3,
        "strategyRevision": 2,
    }


def fails(error: Exception) -> Callable[[], Json]:
    def answer() -> Json:
        raise error

    return answer


async def assembled(manager: Manager) -> AssemblyResult:
    preset = normalise_preset({**HEAD, "rules": [{"id": "m", "kind": "memory-manager.resources"}]})
    async with open_sources() as sources:
        sources.add(MemorySource(manager))
        return await assemble(sources, freeze_context(preset, [], session_id="s1", turn=2, step=1))


async def test_each_resource_is_a_block_and_one_that_fails_is_told() -> None:
    manager = Manager(
        {
            "a": found("Alpha"),
            "b": found({"text": "Beta"}),
            "c": lambda: {"matched": False},
            "d": found(""),
            "e": fails(NotReady("gone")),
            "f": fails(ValueError("odd")),
        }
    )
    result = await assembled(manager)
    assert [node.text for node in result.nodes] == ["Alpha", "Beta"]
    assert [node.source["resourceId"] for node in result.nodes] == ["a", "b"]
    told = [(each["code"], each.get("entityId"), each.get("reason")) for each in result.diagnostics]
    assert told[:4] == [
        ("MEMORY_RESOURCE_VERSION", "a", None),
        ("MEMORY_RESOURCE_VERSION", "b", None),
        ("MEMORY_RESOURCE_UNAVAILABLE", "e", "RESOURCE_UNAVAILABLE"),
        ("MEMORY_RESOURCE_UNAVAILABLE", "f", "SOURCE_ERROR"),
    ]
    first = manager.asked[0]
    assert (first["mode"], first["preview"], first["event"]["scope"]) == ("retrieve", True, {"sessionId": "s1"})
    assert result.diagnostics[0]["blockId"] == result.nodes[0].id.partition(":")[2]


async def test_a_manager_without_configuration_gives_a_diagnostic() -> None:
    manager = Manager({}, available=False)
    assert [each["code"] for each in (await assembled(manager)).diagnostics] == [
        "MEMORY_CONFIG_UNAVAILABLE",
        "ASSEMBLY_EMPTY",
    ]
    assert not MemorySource(manager).module_available({"sessionId": "s1"})
    assert MemorySource(Manager({"a": found("x")})).module_available({"sessionId": "s1"})


async def test_cancelling_a_request_cancels_the_retrieval(autojump_clock: MockClock) -> None:
    ended: list[str] = []

    class Slow(Manager):
        async def trigger(self, request: Json) -> Json:
            try:
                await trio.sleep_forever()
            finally:
                ended.append(request["id"])

    with trio.move_on_after(1) as scope:
        await assembled(Slow({"a": found("x"), "b": found("y")}))
    assert scope.cancelled_caught
    assert ended == ["a"]


def test_a_manager_that_does_not_fit_is_refused() -> None:
    with pytest.raises(TapsterError) as raised:
        MemorySource(Manager({}), registry_version=2)
    assert (raised.value.code, raised.value.kind) == ("MEMORY_PROTOCOL_UNSUPPORTED", "Error")
    with pytest.raises(TapsterError) as raised:
        MemorySource(object())  # type: ignore[arg-type]
    assert raised.value.kind == "TypeError"
