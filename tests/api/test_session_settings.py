"""A session's settings over HTTP, and the mode that each way of making a session gives it."""

from pathlib import Path

from tapster.actors.session.embedded import embedded_key
from tapster.api.config import Config
from tapster.api.running import tapster_config
from tests.support.contract import open_contract
from tests.support.pages import open_page

OWN = "/tapster/api/v1/sessions"


async def test_settings_are_read_changed_and_refused(tmp_path: Path) -> None:
    async with open_contract(tmp_path) as served:
        made = await served.client.send("POST", OWN, json={"id": "s"})
        assert made.status == 201
        first = (await served.client.send("GET", f"{OWN}/s/settings")).json()["settings"]
        assert (first["mode"], first["quirks"], first["cardScripts"]) == ("sillytavern", "repaired", False)
        changed = await served.client.send("POST", f"{OWN}/s/settings", json={"quirks": "exact", "scan": {"depth": 5}})
        assert changed.json()["settings"] == {**first, "quirks": "exact", "scan": {**first["scan"], "depth": 5}}
        refused = await served.client.send("POST", f"{OWN}/s/settings", json={"mode": "other"})
        assert refused.status == 400
        assert "tavern or sillytavern" in refused.json()["message"]
        assert (await served.client.send("GET", f"{OWN}/s/settings")).json() == changed.json()
        assert (await served.client.send("GET", f"{OWN}/gone/settings")).status == 404


async def test_a_session_that_only_the_contract_knows_is_in_its_mode(tmp_path: Path) -> None:
    async with open_contract(tmp_path) as served:
        settings = await served.tapster.library.activation.settings(embedded_key("elsewhere"))
        assert settings.mode == "tavern"


def test_the_configuration_says_what_new_sessions_get() -> None:
    assert tapster_config(Config()).session_mode == "sillytavern"
    assert tapster_config(Config(session_mode="tavern")).session_mode == "tavern"


async def test_the_page_shows_the_mode_and_changes_it(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        await visitor.served.tapster.create_session("s")
        assert '<option value="sillytavern" selected>' in await visitor.text("/sessions/s")
        await visitor.post("/sessions/s/bindings", {"mode": "tavern"})
        assert '<option value="tavern" selected>' in await visitor.text("/sessions/s")
        assert (await visitor.post("/sessions/s/bindings", {"mode": "other"})).status == 400
