"""``tapster import`` and ``tapster library``: files in, documents shown, edited, exported and deleted."""

import json
from pathlib import Path

import pytest

from tapster.engine.ecma import Json
from tests.support.cli import CARD, PERSONA, PRESET, SAMPLE, WORLD, Cli

KINDS = ("preset", "character", "world-book", "user")


@pytest.fixture
def ids(cli: Cli) -> dict[str, str]:
    """The sample library's ids by kind."""
    reports = cli.json("import", PRESET, CARD, WORLD, PERSONA)
    return {report["resources"][0]["kind"]: report["resources"][0]["id"] for report in reports}


def test_a_folder_is_imported_file_by_file(cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "SillyTavern"
    (folder / "characters").mkdir(parents=True)
    (folder / "characters" / "mira.png").write_bytes(Path(CARD).read_bytes())
    (folder / "thumbnails").mkdir()
    (folder / "thumbnails" / "copy.png").write_bytes(Path(CARD).read_bytes())
    (folder / "notes.txt").write_text("no resource", encoding="utf-8")
    shown = cli.run("import", str(folder))
    assert "mira.png" in shown
    assert shown.endswith("1 imported, 0 refused\n")


def test_a_bad_file_is_refused_whole_and_stops_nothing(cli: Cli, tmp_path: Path) -> None:
    broken, missing = tmp_path / "broken.json", tmp_path / "missing.json"
    broken.write_text("{", encoding="utf-8")
    shown = cli.run("import", str(broken), str(missing), WORLD, code=1)
    assert f"✗ {broken}" in shown
    assert f"✗ {missing}" in shown
    assert shown.endswith("1 imported, 2 refused\n")
    assert [len(cli.json("library", "list")[kind]) for kind in KINDS] == [0, 0, 1, 0]


def test_nothing_to_import_is_wrong_use(cli: Cli) -> None:
    assert "PATHS" in cli.run("import", code=2)


def test_an_empty_library_says_what_fills_it(cli: Cli) -> None:
    assert "tapster import" in cli.run("library", "list")


def test_list_and_show(cli: Cli, ids: dict[str, str]) -> None:
    listed = cli.run("library", "list")
    for kind in KINDS:
        assert ids[kind] in listed
        document: Json = json.loads(cli.run("library", "show", kind, ids[kind]))
        assert document["name"] in listed
    assert ids["preset"] not in cli.run("library", "list", "character")


def test_edit_from_text_file_and_standard_input(cli: Cli, ids: dict[str, str], tmp_path: Path) -> None:
    patch = tmp_path / "patch.json"
    patch.write_text('{"name": "From a file"}', encoding="utf-8")
    edit = ("library", "edit", "user", ids["user"], "--patch")
    assert "Typed 名" in cli.run(*edit, '{"name": "Typed 名"}')
    assert "From a file" in cli.run(*edit, f"@{patch}")
    assert "From stdin" in cli.run(*edit, "-", typed='{"name": "From stdin"}')
    assert json.loads(cli.run("library", "show", "user", ids["user"]))["name"] == "From stdin"


@pytest.mark.parametrize("patch", ["{", "[]", "@nowhere.json", "@folder"])
def test_a_patch_that_cannot_be_used(cli: Cli, ids: dict[str, str], patch: str) -> None:
    assert "Error:" in cli.run("library", "edit", "user", ids["user"], "--patch", patch, code=1)


def test_export_gives_a_file_that_imports_again(cli: Cli, ids: dict[str, str], tmp_path: Path) -> None:
    for kind, name in (("preset", "p.json"), ("character", "c.png"), ("world-book", "w.json")):
        target = tmp_path / name
        assert "bytes" in cli.run("library", "export", kind, ids[kind], "--output", str(target))
        assert cli.json("import", str(target))[0]["resources"][0]["kind"] == kind
    result = cli.invoke(["library", "export", "world-book", ids["world-book"]])
    assert "灰水港" in json.dumps(json.loads(result.stdout_bytes), ensure_ascii=False)
    assert "library show user" in cli.run("library", "export", "user", ids["user"], code=2)


def test_an_export_that_cannot_be_written(cli: Cli, ids: dict[str, str], tmp_path: Path) -> None:
    target = tmp_path / "no" / "such" / "folder.json"
    assert str(target) in cli.run("library", "export", "preset", ids["preset"], "-o", str(target), code=1)


def test_delete_asks_first(cli: Cli, ids: dict[str, str]) -> None:
    assert "Aborted" in cli.run("library", "delete", "user", ids["user"], code=1, typed="n\n")
    assert "is deleted" in cli.run("library", "delete", "user", ids["user"], typed="y\n")
    assert "is deleted" in cli.run("library", "delete", "preset", ids["preset"], "--yes")
    assert cli.json("library", "list", "preset") == {"preset": []}


@pytest.mark.parametrize("command", [("show",), ("export",), ("delete", "--yes"), ("edit", "--patch", "{}")])
@pytest.mark.parametrize("kind", ["preset", "character", "world-book"])
def test_what_does_not_exist(cli: Cli, command: tuple[str, ...], kind: str) -> None:
    name, *options = command
    assert "Error:" in cli.run("library", name, kind, "no/such 名", *options, code=1)


def test_the_sample_library_is_whole() -> None:
    assert {path.suffix for path in SAMPLE.iterdir()} >= {".png", ".json"}
