"""``tapster session`` and ``tapster trace`` over a library without a server."""

from pathlib import Path

import pytest
import trio

from tapster.actors.providers import OpenAiSettings
from tapster.actors.store import StoreConfig
from tapster.actors.tapster import TapsterConfig, open_tapster
from tapster.actors.testing import open_model_server
from tests.support.cli import CARD, PRESET, WORLD, Cli
from tests.support.served import model_server_thread


def bound(cli: Cli, session: str = "s") -> dict[str, str]:
    """A session with the sample bound to it."""
    reports = cli.json("import", PRESET, CARD, WORLD)
    preset, card, world = (report["resources"][0]["id"] for report in reports)
    assert cli.run("session", "new", session) == f"{session}\n"
    cli.run("session", "bind", session, "--preset", preset, "--character", card, "--world-book", world)
    return {"preset": preset, "card": card, "world": world}


def play(cli: Cli, session: str, text: str) -> None:
    """A turn with the model stand-in, in the data folder that the commands read."""

    async def main() -> None:
        folder = StoreConfig(Path(cli.home / "data"))
        async with (
            open_model_server() as server,
            open_tapster(TapsterConfig(folder, OpenAiSettings(server.url, None))) as tapster,
        ):
            handle = await tapster.open_session(session)
            await handle.followup(text)
            await handle.when_idle()

    trio.run(main)


def test_sessions_are_listed(cli: Cli) -> None:
    assert cli.run("session", "list") == ""
    made = cli.run("session", "new").strip()
    cli.run("session", "new", "named")
    assert {item["id"] for item in cli.json("session", "list")} == {made, "named"}
    assert "named" in cli.run("session", "list")
    assert "Error:" in cli.run("session", "new", "named", code=1)


def test_binding_keeps_what_is_not_named(cli: Cli) -> None:
    ids = bound(cli)
    selection = cli.json("session", "show", "s")["selection"]
    assert (selection["presetId"], selection["characterCardId"]) == (ids["preset"], ids["card"])
    assert selection["worldBookIds"] == [ids["world"]]
    cli.run("session", "bind", "s", "--preset", "", "--no-world-books")
    selection = cli.json("session", "show", "s")["selection"]
    assert (selection["presetId"], selection["characterCardId"]) == (None, ids["card"])
    assert selection["worldBookIds"] == []
    assert "characterCardId: " in cli.run("session", "show", "s")
    assert "Error:" in cli.run("session", "bind", "s", "--preset", "gone", code=1)


def test_a_preview_sends_and_records_nothing(cli: Cli) -> None:
    bound(cli)
    preview = cli.json("session", "preview", "s", "--draft", "the bell")
    included = {item["entryName"] for item in preview["entries"] if item["decision"] == "included"}
    assert "The drowned bell 沉钟" in included
    assert preview == cli.json("session", "preview", "s", "--draft", "the bell") or preview["rolls"]
    assert "World-book entries:" in cli.run("session", "preview", "s")
    assert cli.json("session", "show", "s")["messages"] == []
    assert "has no records" in cli.run("trace", "list", "s")


def test_a_turn_is_recorded_shown_and_verified(cli: Cli) -> None:
    bound(cli)
    play(cli, "s", "I hear the bell. 钟声")
    (row,) = cli.json("trace", "list", "s")
    assert f"{row['id']}  turn 1.1" in cli.run("trace", "list", "s")
    assert cli.json("trace", "show", "s", row["id"])["contentStatus"] == "available"
    assert "The drowned bell 沉钟 fired" in cli.run("trace", "show", "s", row["id"])
    assert cli.run("trace", "verify", "s").endswith("1 verified, 0 not\n")
    assert "[user] I hear the bell. 钟声" in cli.run("session", "show", "s")


@pytest.mark.parametrize("arguments", [("session", "show", "none"), ("trace", "show", "none", "none")])
def test_what_does_not_exist(cli: Cli, arguments: tuple[str, ...]) -> None:
    assert "Error:" in cli.run(*arguments, code=1)


def test_settings_say_how_a_session_activates_its_books(cli: Cli) -> None:
    bound(cli)
    shown = cli.run("session", "set", "s").replace('"', "")
    assert "mode: sillytavern" in shown
    assert "depth: 2" in shown
    words = (
        "--mode",
        "sillytavern",
        "--quirks",
        "exact",
        "--card-scripts",
        "--scan",
        "depth=9",
        "--scan",
        "recursive=true",
    )
    after = cli.run("session", "set", "s", *words).replace('"', "")
    for line in ("quirks: exact", "cardScripts: true", "depth: 9", "recursive: true"):
        assert line in after
    assert cli.run("session", "set", "s").replace('"', "") == after
    assert "Error:" in cli.run("session", "set", "s", "--scan", "depth=many", code=1)
    assert "Error:" in cli.run("session", "set", "gone", "--mode", "tavern", code=1)
    reasons = {item["reason"] for item in cli.json("session", "preview", "s", "--draft", "the bell")["entries"]}
    assert "primary_key" in reasons
    cli.run("session", "set", "s", "--mode", "tavern")
    reasons = {item["reason"] for item in cli.json("session", "preview", "s", "--draft", "the bell")["entries"]}
    assert "primary-key-match" in reasons


def test_a_message_is_sent_and_the_reply_printed(cli: Cli) -> None:
    bound(cli)
    (cli.home / "tapster").mkdir()
    with model_server_thread() as url:
        settings = f'[provider]\nurl = "{url}"\nmodel = "stand-in"\n'
        (cli.home / "tapster" / "tapster.toml").write_text(settings, encoding="utf-8")
        assert "Is that the bell?" in cli.run("session", "send", "s", "Is that the bell?")
    assert "[user] Is that the bell?" in cli.run("session", "show", "s")


def test_a_failed_turn_says_why(cli: Cli) -> None:
    bound(cli)
    assert "TAPSTER_PROVIDER_URL" in cli.run("session", "send", "s", "hello", code=1)
