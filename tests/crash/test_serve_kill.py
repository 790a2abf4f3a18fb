"""``kill -9`` of ``tapster serve`` in a burst of writes: after each restart everything acknowledged is there."""

from pathlib import Path

import pytest

from .kill_rounds import kill_rounds


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "rounds"), [("sqlite", 20), ("files", 4)])
async def test_no_acknowledged_write_of_a_killed_server_is_lost(tmp_path: Path, engine: str, rounds: int) -> None:
    ledger = await kill_rounds(tmp_path, engine, rounds, 20260411)
    assert all(ledger.counts[kind] for kind in ("imported", "selected", "said", "traced")), ledger.counts
    assert ledger.counts.total() >= 4 * rounds
