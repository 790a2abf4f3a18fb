"""``tapster macro`` and ``tapster regex``: texts and scripts tried from the command line."""

import json
from pathlib import Path

import pytest

from tapster.engine.ecma import Json
from tests.support.cli import CARD, PERSONA, Cli


def script(**members: Json) -> dict[str, Json]:
    """A regex script as SillyTavern exports it."""
    return {"scriptName": "s", "findRegex": "/tide/g", "replaceString": "sea", "placement": [2], **members}


def saved(folder: Path, *scripts: Json) -> str:
    """A file of scripts; a single one stands by itself."""
    path = folder / "scripts.json"
    path.write_text(json.dumps(scripts[0] if len(scripts) == 1 else scripts, ensure_ascii=False), encoding="utf-8")
    return str(path)


def test_names_variables_and_draws(cli: Cli) -> None:
    text = "{{user}}/{{char}}/{{getvar::mood}}/{{setvar::n::2}}{{incvar::n}}/{{getglobalvar::g}}/{{roll::1d6}}"
    result = cli.json("macro", text, "--user", "林夏", "--char", "Mira", "--var", "mood=calm=er", "--global", "g=x")
    assert result["text"].startswith("林夏/Mira/calm=er/3/x/")
    assert result["variables"]["n"] == 3
    (draw,) = result["draws"]
    assert (draw["macro"], draw["offset"]) == ("roll", text.index("{{roll"))
    assert result["text"].endswith(str(1 + int(draw["value"] * 6)))


def test_a_seed_fixes_the_draws(cli: Cli) -> None:
    rolls = {cli.json("macro", "{{roll::1d1000000}}", "--seed", seed)["text"] for seed in ("a", "a", "b")}
    assert len(rolls) == 2


def test_card_persona_and_chat_are_seen(cli: Cli, tmp_path: Path) -> None:
    chat = tmp_path / "fog.jsonl"
    lines = [
        {"chat_metadata": {"variables": {"lamp": "lit"}}},
        {"name": "Mira", "mes": "Nine steps.", "is_user": False},
    ]
    chat.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    given = ("--card", CARD, "--persona", PERSONA, "--chat", str(chat))
    text = "{{char}}|{{user}}|{{lastCharMessage}}|{{getvar::lamp}}"
    assert cli.json("macro", text, *given)["text"] == "Mira|林夏|Nine steps.|lit"
    again = cli.json("macro", "{{lastCharMessage}}|{{char}}", *given, "--dialect", "tavern")
    assert again["text"] == "Nine steps.|Mira"


def test_the_clock_is_given(cli: Cli) -> None:
    given = ("--now", "2024-03-09T14:05:09", "--timezone", "Asia/Shanghai")
    assert cli.json("macro", "{{date}} {{time}}", *given)["text"] == "March 9, 2024 2:05 PM"


def test_the_dialects_differ(cli: Cli) -> None:
    assert cli.json("macro", "{{unknown}}")["text"] == "{{unknown}}"
    result = cli.json("macro", "{{unknown}}{{random::a,b}}", "--dialect", "tavern")
    assert result["text"] in ("a", "b")
    assert len(result["draws"]) == 1


def test_for_a_person_and_from_standard_input(cli: Cli) -> None:
    shown = cli.run("macro", "-", typed="{{input}}{{setvar::a::1}}{{random::x}}\n")
    assert shown.startswith("x\n")
    assert "Variables: a = 1" in shown
    assert "Draws (seed 'try'): random at " in shown
    assert cli.run("macro", "{{input}}", "--input", "typed 字") == "typed 字\n"


def test_a_pattern_is_tried(cli: Cli) -> None:
    result = cli.json("regex", "Tide and tide", "--find", "/(t)ide/gi", "--replace", "<$1{{char}}>", "--char", "M")
    assert result["text"] == "<TM> and <tM>"
    assert result["scripts"] == [{"script": "--find", "reason": "regex_changed", "count": 2, "message": "2 replaced"}]
    trimmed = cli.json("regex", "*tide*", "--find", "/.+/", "--replace", "{{match}}", "--trim", "*")
    assert trimmed["text"] == "tide"


@pytest.mark.parametrize(
    ("members", "options", "reason", "said"),
    [
        ({"disabled": True}, (), "not_for_this_use", "switched off"),
        ({"placement": [1, 5]}, (), "not_for_this_use", "--placement user or world-info"),
        ({"placement": [5]}, ("--placement", "world-info"), "regex_changed", "1 replaced"),
        ({"promptOnly": True}, (), "not_for_this_use", "--for prompt"),
        ({"promptOnly": True}, ("--for", "prompt"), "regex_changed", "1 replaced"),
        ({"markdownOnly": True}, ("--for", "display"), "regex_changed", "1 replaced"),
        ({}, ("--for", "prompt"), "not_for_this_use", "--for stored"),
        ({}, ("--for", "edited"), "not_for_this_use", "edits"),
        ({"runOnEdit": True}, ("--for", "edited"), "regex_changed", "1 replaced"),
        ({"minDepth": 2, "maxDepth": 4}, ("--depth", "1"), "depth_window", "outside its depths"),
        ({"minDepth": 2, "maxDepth": 4}, ("--depth", "2"), "regex_changed", "1 replaced"),
        ({"findRegex": "/nothing/"}, (), "no_match", "found nothing"),
        ({"findRegex": ""}, (), "not_for_this_use", "no pattern"),
        ({"findRegex": "{{user}}", "substituteRegex": 1}, ("--user", "tide"), "regex_changed", "1 replaced"),
    ],
)
def test_each_script_says_what_it_did(
    cli: Cli, tmp_path: Path, members: dict[str, Json], options: tuple[str, ...], reason: str, said: str
) -> None:
    given = ("regex", "high tide", "--script", saved(tmp_path, script(**members)), *options)
    (report,) = cli.json(*given)["scripts"]
    assert report["reason"] == reason
    assert said in cli.run(*given)


def test_scripts_run_in_order_on_what_is_left(cli: Cli, tmp_path: Path) -> None:
    second = script(scriptName="second", findRegex="sea", replaceString="{{setvar::saw::yes}}海")
    result = cli.json("regex", "tide", "--script", saved(tmp_path, script(), second))
    assert result["text"] == "海"
    assert [report["count"] for report in result["scripts"]] == [1, 1]
    assert result["variables"] == {"saw": "yes"}


def test_scripts_of_a_preset_run(cli: Cli, tmp_path: Path) -> None:
    preset = tmp_path / "preset.json"
    preset.write_text(json.dumps({"extensions": {"regex_scripts": [script()]}}), encoding="utf-8")
    assert cli.json("regex", "tide", "--preset", str(preset))["text"] == "sea"


@pytest.mark.parametrize(("find", "reason"), [("/(/", "invalid_pattern"), ("/^(?=(a+)+b)/", "over_budget")])
def test_a_script_that_cannot_run_leaves_the_text_and_is_an_error(cli: Cli, find: str, reason: str) -> None:
    text = "a" * 40
    result = cli.json("regex", text, "--find", find, "--replace", "", "--budget-ms", "20", code=1)
    assert result["text"] == text
    assert result["scripts"][0]["reason"] == reason
    assert "✗ --find: " in cli.run("regex", text, "--find", find, "--budget-ms", "20", code=1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("macro", "x", "--var", "novalue"),
        ("macro", "x", "--now", "yesterday"),
        ("macro", "x", "--timezone", "No/Where"),
        ("macro", "x", "--dialect", "old"),
        ("regex", "x"),
        ("regex", "x", "--find", "a", "--depth", "-1"),
    ],
)
def test_wrong_use(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert "Error:" in cli.run(*arguments, code=2)


@pytest.mark.parametrize("content", [b"{", b"\xff", b'{"name": 1}', b"[1]"])
def test_a_script_file_that_cannot_be_used(cli: Cli, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert str(path) in cli.run("regex", "x", "--script", str(path), code=1)
    missing = str(tmp_path / "gone.json")
    assert f"{missing} can't be read" in cli.run("regex", "x", "--script", missing, code=1)
