"""Text that a terminal gives and no encoding knows: refused or kept in one line, never a traceback."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tapster.api.cli.main import group

ODD = ["\udcff", "\ud83d", "a\x00b", "..", "x" * 5_000, "雾", "'; DROP TABLE sessions; --"]


def tapster(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(group, ["--data-dir", str(folder), *arguments])


@pytest.mark.parametrize("text", ODD, ids=ascii)
def test_odd_ids_are_refused_in_one_line(tmp_path: Path, text: str) -> None:
    for command in (
        ("session", "new"),
        ("session", "show"),
        ("library", "show", "user"),
        ("library", "delete", "user"),
    ):
        result = tapster(tmp_path, *command, text, *(["--yes"] if "delete" in command else []))
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == 1, (command, result.output)
        assert result.output.startswith("Error: ")
        assert result.output.count("\n") == 1
        assert len(result.output) < 1_500


@pytest.mark.parametrize("text", [*ODD[:3], *ODD[4:]], ids=ascii)
def test_odd_text_is_text(tmp_path: Path, text: str) -> None:
    assert tapster(tmp_path, "session", "new", "s").exit_code == 0
    result = tapster(tmp_path, "session", "preview", "s", "--draft", text)
    assert result.exit_code == 0, (result.output, result.exception)
