"""Hostile world-book patterns inside live previews: a diagnostic each, while other sessions go on. Real threads."""

import pytest
import trio

from tapster.actors.session import Assembled, Preview
from tapster.actors.session.embedded import embedded_key
from tests.support.hostile import PATTERNS, TEXT
from tests.support.hostile_library import HostileLibrary
from tests.support.tavern import open_tavern_rig


@pytest.mark.parametrize("pattern", range(0, len(PATTERNS), 3))
async def test_a_hostile_key_is_a_diagnostic_of_its_preview(pattern: int) -> None:
    others: list[bool] = []

    async with open_tavern_rig(HostileLibrary()) as tavern:
        sessions = {name: await tavern.rig.host.create(name) for name in (f"h{pattern}", "other")}

        async def preview(name: str, draft: str) -> Assembled:
            found: Assembled = await tavern.sessions.ask(embedded_key(name), sessions[name].session, Preview(draft))
            return found

        async def keep_asking() -> None:
            while True:
                found = await preview("other", "I hear a bell")
                others.append("reef" in found.snapshot.system_text)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_asking)
            answer = await preview(f"h{pattern}", TEXT)
            nursery.cancel_scope.cancel()
    assert others
    assert all(others)
    told = [each.message for each in answer.snapshot.diagnostics if each.code == "WORLD_BOOK_INVALID_REGEX"]
    assert len(told) == 1
    assert "regex-budget-exceeded" in told[0]
    assert "never" not in answer.snapshot.system_text
