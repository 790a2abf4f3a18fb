"""``tapster explain``: files and sessions, both modes, both languages."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import CARD, PERSONA, PRESET, WORLD, Cli

FILES = ("--preset", PRESET, "--card", CARD, "--world", WORLD, "--persona", PERSONA)
MODES = ["tavern", "sillytavern"]


def entry(result: Any, name: str) -> Any:
    """The entry whose name begins so."""
    (found,) = (item for item in result["entries"] if item["name"].startswith(name))
    return found


@pytest.mark.parametrize("mode", MODES)
def test_every_entry_has_a_reason_and_what_it_needed(cli: Cli, mode: str) -> None:
    result = cli.json("explain", *FILES, "--mode", mode, "--message", "the lamp and the ferry")
    assert result["mode"] == mode
    assert len(result["entries"]) == 7
    lamp = entry(result, "The lamp oil")
    assert lamp["active"]
    assert "lamp" in lamp["text"]
    assert "4-8" in lamp["text"]
    ferry = entry(result, "The night ferry")
    assert not ferry["active"]
    assert "night, 夜" in ferry["needed"]
    assert "ferry" in ferry["text"]
    assert entry(result, "Switched off")["reason"] == "disabled"
    assert entry(result, "The harbour")["reason"] == "constant"
    assert not any(item["needed"] for item in result["entries"] if item["active"])


def test_a_group_names_its_winner(cli: Cli, tmp_path: Path) -> None:
    entries = {
        str(uid): {"uid": uid, "key": ["sea"], "comment": name, "content": name, "group": "tide", "order": 100 - uid}
        for uid, name in enumerate(("Ebb", "Flood"))
    }
    world = tmp_path / "tide.json"
    world.write_text(json.dumps({"name": "Tide", "entries": entries}), encoding="utf-8")
    for mode in MODES:
        result = cli.json("explain", "--world", str(world), "--message", "the sea", "--mode", mode)
        (lost,) = (item for item in result["entries"] if not item["active"])
        assert lost["reason"] in ("inclusion-group-loser", "group_lost")
        assert "tide" in lost["text"]


@pytest.mark.parametrize("mode", MODES)
def test_every_prompt_of_the_preset_is_explained(cli: Cli, mode: str) -> None:
    result = cli.json("explain", *FILES, "--mode", mode)
    order = [prompt["identifier"] for prompt in json.loads(Path(PRESET).read_text("utf-8"))["prompts"]]
    assert {item["prompt"] for item in result["prompts"]} >= set(order)
    assert all(item["text"] for item in result["prompts"])
    assert all(bool(item["needed"]) is False for item in result["prompts"] if item["sent"])


@pytest.mark.parametrize("mode", MODES)
def test_for_a_person_in_both_languages(cli: Cli, mode: str) -> None:
    english = cli.run("explain", *FILES, "--mode", mode, "--message", "the lamp")
    assert "World-book entries (2 of 7 active):" in english
    assert "  + The lamp oil 灯油" in english
    chinese = cli.run("explain", *FILES, "--mode", mode, "--message", "the lamp", "--lang", "zh")
    assert "世界书条目（共 7 条，生效 2 条）：" in chinese
    assert "常驻条目，始终生效" in chinese
    only_out = cli.run("explain", *FILES, "--mode", mode, "--message", "the lamp", "--only", "out")
    assert "(2 of 7 active)" in only_out
    assert "\n  + " not in only_out


def test_a_session_is_explained_as_its_preview_is(cli: Cli) -> None:
    reports = cli.json("import", PRESET, CARD, WORLD)
    ids = [report["resources"][0]["id"] for report in reports]
    cli.run("session", "new", "s")
    cli.run("session", "bind", "s", "--preset", ids[0], "--character", ids[1], "--world-book", ids[2])
    result = cli.json("explain", "s", "--draft", "the bell")
    assert entry(result, "The drowned bell")["active"]
    assert not entry(cli.json("explain", "s"), "The drowned bell")["active"]
    preview = cli.json("session", "preview", "s", "--draft", "the bell")
    active = {(item["entryName"], item["decision"] == "included") for item in preview["entries"]}
    assert {(item["name"], item["active"]) for item in result["entries"]} == active
    assert "常驻条目，始终生效" in cli.run("explain", "s", "--lang", "zh")
    assert cli.json("trace", "list", "s") == []


@pytest.mark.parametrize(
    "arguments",
    [(), ("s", "--card", CARD), ("s", "--mode", "tavern"), ("s", "--exact"), ("--card", CARD, "--lang", "fr")],
)
def test_wrong_use(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert "Error:" in cli.run("explain", *arguments, code=2)


def test_an_unreadable_file_is_named(cli: Cli, tmp_path: Path) -> None:
    missing = str(tmp_path / "gone.json")
    assert f"{missing} can't be read" in cli.run("explain", "--preset", missing, code=1)
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    assert str(broken) in cli.run("explain", "--world", str(broken), code=1)
