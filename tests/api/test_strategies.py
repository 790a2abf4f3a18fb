"""Strategies over HTTP and from the command line: the library, what sessions apply, previews, evidence, policies."""

import json
from pathlib import Path
from typing import Any

from tapster.api.app import AppOptions, create_app
from tapster.api.backing import Backing
from tests.support.asgi import AsgiClient, Reply
from tests.support.assembly import HEAD
from tests.support.cli import Cli
from tests.support.contract import open_contract
from tests.support.strategies import INPUT, RULES, Stage, open_stage

Json = Any
ROOT = "/dsh-prompt-assembler/api/v1/assembly-presets"
OLDER = "/pmp-dsh-tavern/api/v1/assembly-presets"
POLICY = "/dsh-prompt-assembler/api/v1/history-policy"
OWN = "/tapster/api/v1"
STRATEGY: dict[str, Any] = {**HEAD, "backend": "native", "rules": [*RULES, INPUT]}
CHARACTER = {"id": "character", "kind": "character"}


def client_of(stage: Stage, **options: Any) -> AsgiClient:
    return AsgiClient(create_app(Backing(stage.tapster), AppOptions(**options)))


def refusal(reply: Reply) -> tuple[int, str | None]:
    body = reply.json()
    assert body["ok"] is False
    assert body["error"]
    return reply.status, body.get("code")


async def test_the_library_of_strategies(tmp_path: Path) -> None:
    async with open_contract(tmp_path) as served:
        send = served.client.send
        overview = (await send("GET", ROOT)).json()
        assert [preset["id"] for preset in overview["presets"]] == [
            "builtin-native",
            "builtin-native-slots",
            "builtin-native-roles",
            "builtin-st",
        ]
        assert overview["sourceProtocolVersion"] == overview["strategyProtocolVersion"] == 1
        assert {"character", "tavern.text", "tavern.mvu/state"} <= {source["id"] for source in overview["sources"]}
        made = await send("POST", ROOT, json={"preset": STRATEGY})
        assert made.status == 201
        preset_id = made.json()["preset"]["id"]
        changed = await send("PUT", f"{OLDER}/{preset_id}", json={**STRATEGY, "name": "Other"})
        assert changed.json()["preset"]["name"] == "Other"
        assert (await send("GET", f"{ROOT}/{preset_id}")).json()["preset"]["name"] == "Other"
        assert (await send("DELETE", f"{ROOT}/{preset_id}")).json() == {"ok": True}
        assert refusal(await send("GET", f"{ROOT}/{preset_id}")) == (404, "ASSEMBLY_PRESET_NOT_FOUND")
        assert refusal(await send("PUT", f"{ROOT}/builtin-st", json=STRATEGY)) == (400, "PRESET_BUILTIN")
        assert refusal(await send("POST", ROOT, json={**STRATEGY, "name": ""}))[0] == 400
        assert refusal(await send("PATCH", ROOT, json={}))[0] == 405
        assert refusal(await send("POST", f"{ROOT}/a/b", json={}))[0] == 405


async def test_the_door_speaks_in_the_assemblers_name(tmp_path: Path) -> None:
    async with open_contract(tmp_path, options=AppOptions(request_token="f" * 64)) as served:
        send = served.client.send
        foreign = {"origin": "http://evil.example"}
        code = "ASSEMBLER_API_ORIGIN_FORBIDDEN"
        assert refusal(await send("POST", ROOT, json=STRATEGY, headers=foreign)) == (403, code)
        assert refusal(await send("POST", OLDER, json=STRATEGY, headers=foreign)) == (
            403,
            "TAVERN_API_ORIGIN_FORBIDDEN",
        )
        text = {"content-type": "text/plain"}
        wanted = (415, "ASSEMBLER_API_CONTENT_TYPE_REQUIRED")
        assert refusal(await send("POST", ROOT, json=STRATEGY, headers=text)) == wanted
        remote = AsgiClient(served.app, peer="10.0.0.1")
        assert refusal(await remote.send("GET", ROOT)) == (403, "ASSEMBLER_API_REMOTE_FORBIDDEN")
        named = AsgiClient(served.app, host="evil.example")
        assert refusal(await named.send("GET", ROOT)) == (403, "ASSEMBLER_API_HOST_FORBIDDEN")
        token = "/dsh-prompt-assembler/api/v1/request-token"
        found = await send("GET", token, headers={"x-assembler-client": "embedded"})
        assert found.json() == {"ok": True, "token": "f" * 64}
        assert refusal(await send("GET", token)) == (403, code)
        assert refusal(await send("POST", token, json={})) == (405, "ASSEMBLER_API_METHOD")
        large = json.dumps({**STRATEGY, "name": "x" * (2 * 1024 * 1024)}).encode()
        assert (await send("POST", ROOT, data=large)).status == 413


async def test_a_session_applies_previews_and_shows_what_was_sent(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        send = client_of(stage).send
        strange = {"sessionId": "nobody", "id": "builtin-st"}
        assert refusal(await send("PUT", f"{ROOT}/selection", json=strange)) == (404, "SCOPE_CATALOG_NOT_FOUND")
        applied = await send("PUT", f"{ROOT}/selection", json={"sessionId": "s", "id": "builtin-st"})
        assert applied.json()["selection"]["id"] == "builtin-st"
        assert (await send("GET", f"{ROOT}?sessionId=s")).json()["selection"]["backend"] == "core"
        body = {"sessionId": "s", "presetId": "builtin-st", "draft": "a bell"}
        preview = (await send("POST", f"{ROOT}/preview", json=body)).json()["preview"]
        assert preview["backend"] == "core"
        assert preview["supported"] is True
        assert preview["pendingInputsIncluded"] is False
        nothing = (await send("GET", f"{ROOT}/actual?sessionId=s")).json()
        assert (nothing["request"], nothing["backend"]) == (None, "core")
        sent = await stage.say("a bell")
        assert [message["role"] for message in preview["messages"]] == [role for role, _ in sent]
        actual = (await send("GET", f"{ROOT}/actual?sessionId=s")).json()
        assert actual["recordKind"] == "request/assembly"
        assert actual["request"]["actual"] is True
        assert [message["role"] for message in actual["request"]["messages"]] == [role for role, _ in sent]
        await stage.tapster.outbox.settled(stage.key("s"))
        v3 = "/pmp-dsh-tavern/api/v3/sessions/s/assemblies"
        row = (await send("GET", v3)).json()["records"][-1]
        record = (await send("GET", f"{v3}/{row['id']}")).json()["record"]
        assert record["requestContentStatus"] == "available"
        assert record["requestAssembly"]["messages"] == actual["request"]["messages"]


async def test_a_running_session_keeps_its_strategy(tmp_path: Path) -> None:
    async with open_contract(tmp_path, running=("s",)) as served:
        body = {"sessionId": "s", "id": "builtin-native"}
        assert refusal(await served.client.send("PUT", f"{ROOT}/selection", json=body))[0] == 409


async def test_a_preview_without_a_session_tries_a_draft_of_a_strategy(tmp_path: Path) -> None:
    async with open_contract(tmp_path) as served:
        body = {"preset": {**STRATEGY, "rules": [CHARACTER, *STRATEGY["rules"]]}, "draft": "hi"}
        reply = (await served.client.send("POST", f"{ROOT}/preview", json=body)).json()
        assert reply["preview"]["messages"][-1]["content"][0]["text"] == "hi"
        assert refusal(await served.client.send("POST", f"{ROOT}/preview", json={}))[0] == 400


async def test_the_trace_api_says_what_an_assembler_adds(tmp_path: Path) -> None:
    async with open_contract(tmp_path) as served:
        body = (await served.client.send("GET", "/pmp-dsh-tavern/api/v3/capabilities")).json()
        assert body["sourceProtocolVersion"] == 1
        assert [body[name] for name in ("composerRegistry", "arbitraryMessageDepth", "requestAssembly")] == [True] * 3


async def test_history_policies(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        send = client_of(stage).send
        assert refusal(await send("GET", POLICY))[0] == 400
        assert refusal(await send("GET", f"{POLICY}?sessionId=nobody"))[0] == 404
        found = (await send("GET", f"{POLICY}?sessionId=s")).json()
        assert found["revision"] == 0
        assert found["capabilities"]["mode"] == "standard"
        policy = {**found["policy"], "enabled": True}
        body = {"policy": policy, "expectedRevision": 0}
        saved = (await send("PUT", f"{POLICY}?sessionId=s", json=body)).json()
        assert saved["revision"] == 1
        assert refusal(await send("PUT", f"{POLICY}?sessionId=s", json=body)) == (409, "HISTORY_POLICY_CONFLICT")
        await stage.say("one")
        for backend, scope in (("native", "next-native-step"), ("core", "saved-native-history-only")):
            reply = await send("POST", f"{POLICY}/preview?sessionId=s", json={"backend": backend})
            assert reply.json()["previewScope"] == scope
            assert reply.json()["preview"]
        assert refusal(await send("POST", f"{POLICY}/preview?sessionId=s", json={"backend": "x"}))[0] == 400
        assert refusal(await send("DELETE", f"{POLICY}?sessionId=s", json={})) == (404, "NOT_FOUND")


async def test_the_own_routes(tmp_path: Path) -> None:
    async with open_stage(tmp_path) as stage:
        await stage.begin()
        send = client_of(stage).send
        made = await send(
            "POST", f"{OWN}/strategies", json={"strategy": {**STRATEGY, "rules": [CHARACTER, *STRATEGY["rules"]]}}
        )
        preset_id = made.json()["strategy"]["id"]
        applied = await send("PUT", f"{OWN}/sessions/s/strategy", json={"id": preset_id})
        assert applied.json()["selection"]["id"] == preset_id
        assert (await send("GET", f"{OWN}/sessions/s/strategy")).json()["isDecided"] is True
        preview = await send("POST", f"{OWN}/sessions/s/strategy/preview", json={"draft": "hi"})
        assert "Mira keeps the lamp." in preview.json()["preview"]["messages"][0]["content"][0]["text"]
        sources = (await send("GET", f"{OWN}/sources?sessionId=s")).json()["sources"]
        assert next(each for each in sources if each["id"] == "pmp-dsh-tavern/prompt-template")["use"]["calls"] == 0
        variables = (await send("GET", f"{OWN}/sessions/s/variables")).json()["variables"]
        assert (variables["mode"], variables["variables"]["stat_data"]["hp"]) == ("managed", 10)
        mode = {"mode": "native", "expectedConfigRevision": variables["configRevision"]}
        assert (await send("PUT", f"{OWN}/sessions/s/variables/mode", json=mode)).json()["variables"][
            "mode"
        ] == "native"
        again = await send("PUT", f"{OWN}/sessions/s/variables/mode", json=mode)
        assert (again.status, again.json()["code"]) == (409, "REVISION_CONFLICT")
        edit = {
            "operations": [{"op": "replace", "path": "/hp", "value": 3}],
            "expectedRevision": variables["revision"],
            "operationId": "op-1",
        }
        for _ in range(2):
            edited = await send("POST", f"{OWN}/sessions/s/variables/patch", json=edit)
            assert edited.json()["variables"]["variables"]["stat_data"]["hp"] == 3
        template = {"id": "prompt-template:t", "name": "T", "content": "x", "enabled": True, "sessionIds": ["*"]}
        put = await send("PUT", f"{OWN}/prompt-templates", json={"template": template})
        assert put.json()["template"]["revision"] == 1
        await send("DELETE", f"{OWN}/prompt-templates/prompt-template%3At", json={})
        assert (await send("GET", f"{OWN}/prompt-templates")).json() == {"templates": []}


def test_the_commands(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "own.json"
    file.write_text(json.dumps({**STRATEGY, "name": "Own one"}), encoding="utf-8")
    preset_id = cli.run("strategy", "save", str(file)).strip()
    assert f"{preset_id}  native  own  Own one" in cli.run("strategy", "list")
    assert "history  history  role preserve" in cli.run("strategy", "show", preset_id)
    cli.run("session", "new", "s")
    assert f"uses {preset_id}" in cli.run("strategy", "apply", "s", preset_id)
    assert "[user] hello" in cli.run("strategy", "preview", "s", "--draft", "hello")
    exported = json.loads(cli.run("strategy", "export", preset_id))
    assert exported["name"] == "Own one"
    assert "id" not in exported
    assert "has no strategy" in cli.run("strategy", "apply", "s", "--off")
    cli.run("strategy", "delete", preset_id)
    assert "tavern.text  pmp-dsh-tavern  version 1  text only" in cli.run("sources")


def test_an_older_store_is_taken_over_and_a_bad_one_leaves_no_trace(cli: Cli, tmp_path: Path) -> None:
    older = {"version": 1, "presets": {"old-1": {**STRATEGY, "name": "Older"}}, "selections": {"s": None}}
    file = tmp_path / "assembly-presets.json"
    file.write_text(json.dumps(older), encoding="utf-8")
    assert "is taken over" in cli.run("strategy", "import", str(file))
    assert "old-1  native  own  Older" in cli.run("strategy", "list")
    assert "nothing that isn't here" in cli.run("strategy", "import", str(file))
    bad_ones: list[Json] = [{**older, "version": 2}, {**older, "presets": {"builtin-x": STRATEGY}}, [], {}]
    for bad in bad_ones:
        file.write_text(json.dumps(bad), encoding="utf-8")
        assert "assembly-presets.json" in cli.run("strategy", "import", str(file), code=1).partition(":")[2]
    assert "builtin-x" not in cli.run("strategy", "list")
