"""Fixtures of the API's tests."""

from pathlib import Path

import pytest

from tests.support.cli import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The command line over an empty data folder."""
    return Cli(tmp_path)
