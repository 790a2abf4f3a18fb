"""A disk that is full for a while: batches fail, nothing acknowledged is lost, and no restart is needed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.actors.store.conftest import open_named


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", "files"])
def test_a_full_disk_passes(tmp_path: Path, engine: str) -> None:
    run = [sys.executable, "-m", "tests.support.full_disk_child", engine, str(tmp_path)]
    said = subprocess.run(run, capture_output=True, text=True, check=False)
    assert said.stdout.startswith("True True True"), said.stdout + said.stderr
    opened = open_named(engine, tmp_path)
    with opened.read() as tables:
        assert len(list(tables.documents.items("chats"))) == 8 * 30 + 1
    opened.close()
