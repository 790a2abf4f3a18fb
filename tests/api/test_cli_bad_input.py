"""Hostile and broken input to commands: one line that says what, exit code 1, nothing stored."""

from pathlib import Path

import pytest

from tests.support.cli import CARD, WORLD, Cli

DEEP = b"[" * 100_000 + b"]" * 100_000
BROKEN = {
    "not JSON": b"{'name': 1}",
    "deep": b'{"entries": ' + DEEP + b"}",
    "wrong types": b'{"name": 1, "prompts": "x", "entries": 7, "spec": [], "data": 1}',
    "empty": b"",
    "not UTF-8": b"\xff\xfe{\x00",
    "truncated PNG": Path(CARD).read_bytes()[:100],
}
OPTIONS = {"--preset": "p.json", "--card": "c.png", "--world": "w.json", "--persona": "u.json", "--chat": "c.jsonl"}

READ = {("--chat", "wrong types"), ("--chat", "empty")}
"""What is read all the same, as a chat that holds nothing."""


@pytest.mark.parametrize(
    ("option", "kind"), [(option, kind) for option in OPTIONS for kind in BROKEN if (option, kind) not in READ]
)
@pytest.mark.parametrize("command", [("assemble",), ("explain", "--mode", "sillytavern")])
def test_files_that_cannot_be_used(cli: Cli, tmp_path: Path, command: tuple[str, ...], option: str, kind: str) -> None:
    path = tmp_path / OPTIONS[option]
    path.write_bytes(BROKEN[kind])
    assert f"Error: {path}" in cli.run(*command, option, str(path), code=1)


@pytest.mark.parametrize("kind", BROKEN)
def test_an_import_that_is_refused_leaves_nothing(cli: Cli, tmp_path: Path, kind: str) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(BROKEN[kind])
    (report,) = cli.json("import", str(path), code=1)
    assert report["error"]
    assert report["code"]
    assert not any(cli.json("library", "list").values())


def test_files_larger_than_any_resource(cli: Cli, tmp_path: Path) -> None:
    large = tmp_path / "large.json"
    with large.open("wb") as file:
        file.truncate(80 * 2**20)
    assert "is larger than" in cli.run("assemble", "--world", str(large), code=1)
    assert "is larger than" in cli.run("import", str(large), code=1)
    assert "is larger than" in cli.run("regex", "x", "--script", str(large), code=1)
    some = tmp_path / "some.json"
    with some.open("wb") as file:
        file.truncate(40 * 2**20)
    assert "✗" in cli.run("import", str(some), code=1)


@pytest.mark.parametrize("patch", ["[" * 100_000, '{"name": ' + "[" * 5000 + "]" * 5000 + "}", '{"name": 7}', "nul"])
def test_a_patch_that_cannot_be_used_changes_nothing(cli: Cli, patch: str) -> None:
    (report,) = cli.json("import", WORLD)
    identity = report["resources"][0]["id"]
    before = cli.run("library", "show", "world-book", identity)
    assert "Error:" in cli.run("library", "edit", "world-book", identity, "--patch", "-", code=1, typed=patch)
    assert cli.run("library", "show", "world-book", identity) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("session", "show", "../../etc"),
        ("session", "bind", "s", "--character", "none"),
        ("session", "bind", "s", "--world-book", "none"),
        ("trace", "show", "s", "none"),
        ("session", "preview", "s", "--draft", "x" * 300_000),
        ("explain", "s", "--draft", "x" * 300_000),
        ("session", "new", "x" * 5000),
    ],
)
def test_ids_and_texts_that_cannot_be_used(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert "Error:" in cli.run(*arguments, code=1)


@pytest.mark.parametrize("text", ["{{" * 50_000, "{{random::" * 2000, "{{getvar::" + "x" * 100_000, "\x00\ud800"])
@pytest.mark.parametrize("dialect", ["tavern", "sillytavern"])
def test_hostile_macros_end(cli: Cli, dialect: str, text: str) -> None:
    assert isinstance(cli.json("macro", text, "--dialect", dialect)["text"], str)


def test_a_terminal_that_lacks_the_characters(cli: Cli) -> None:
    done = cli.process("macro", "灯 {{user}}", encoding="ascii")
    assert (done.returncode, done.stdout) == (0, "\\u706f User\n")
