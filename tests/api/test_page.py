"""The page's views in process: what a person sees, edits and is told."""

import ast
import html
import json
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tapster.actors.providers import Failure, Finish, Pause, TextDelta
from tapster.actors.store.files.atomic import AtomicWriter
from tapster.actors.store.files.traces import AuditFile, LegacyTraces
from tapster.api.page.file_words import FILE_WORDS
from tapster.api.page.shown import trace_view
from tapster.api.page.texts import LOCALES, Texts
from tapster.engine import formats
from tapster.engine.activation.sillytavern.decision import ActiveReason, InactiveReason
from tapster.engine.ecma import stringify
from tapster.engine.formats.world_books.errors import LIMIT_CODES
from tapster.runtime import Phase
from tests.support.cancel import task_count
from tests.support.pages import Visitor, listening, open_page
from tests.support.waiting import until

Json = Any
LONG_S = 3600.0
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "\u202eright to left\u202c עברית",
    "👩‍👩‍👧‍👦 😀 \U0010fffd",
    "{{ 7 * 7 }} {% for x in y %}",
    "</textarea><script>alert(2)</script>",
)


def shown(text: str) -> str:
    """A text as it stands in HTML."""
    return html.escape(text, quote=True).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")


CHECKS = ("FormatError", "UnsupportedFile", "add", "note", "Finding")
"""What readers of files call with the slug of a check."""


async def bound_session(visitor: Visitor, session_id: str = "s") -> None:
    """A session with everything of the sample library bound."""
    library = visitor.served.tapster.library
    await visitor.served.tapster.create_session(session_id)
    patch: dict[str, Json] = {
        "presetId": (await library.presets.list())[0]["id"],
        "characterCardId": (await library.characters.list())["characters"][0]["id"],
        "userId": (await library.users.list())[0]["id"],
        "worldBookIds": [(await library.world_books.list())[0]["id"]],
    }
    await visitor.served.tapster.select(session_id, patch)


async def answered_session(visitor: Visitor, text: str = "Is that the bell?", reply: str = "It is.") -> None:
    """The same after one turn."""
    await bound_session(visitor)
    visitor.served.provider.add([TextDelta(0, reply), Finish("stop")])
    handle = await visitor.served.tapster.open_session("s")
    await handle.send(text)
    await handle.when_idle()


async def paths(visitor: Visitor) -> list[str]:
    """Every page that can be opened over an answered session."""
    library = visitor.served.tapster.library
    listed = {
        "characters": (await library.characters.list())["characters"],
        "presets": await library.presets.list(),
        "world_books": await library.world_books.list(),
        "users": await library.users.list(),
    }
    resources = [f"/library/{kind}/{item['id']}" for kind, items in listed.items() for item in items]
    traces = re.findall(r'href="(/sessions/s/traces/[^"]+)"', await visitor.text("/sessions/s/traces"))
    assert len(resources) == 4
    assert len(traces) == 1
    return ["/", *resources, "/sessions", "/sessions/s", "/sessions/s/messages", "/sessions/s/traces", *traces]


async def test_every_page_in_both_languages_leaves_nothing_behind(tmp_path: Path) -> None:
    async with open_page(tmp_path, sample=True) as visitor:
        await answered_session(visitor)
        for path in await paths(visitor):
            await trio.testing.wait_all_tasks_blocked()
            before = task_count()
            english, chinese = await visitor.text(path + "?lang=en"), await visitor.text(path + "?lang=zh-CN")
            await trio.testing.wait_all_tasks_blocked()
            assert task_count() == before, path
            assert english != chinese
            if "/messages" not in path:
                assert '<html lang="en">' in english
                assert '<html lang="zh-CN">' in chinese
            for page in (english, chinese):
                # A key without a word would be shown as itself.
                assert re.findall(r">\s*(?:error|role|status|trace|kind|new|one|section)_[\w:-]+\s*<", page) == []


async def test_the_language_is_remembered_and_switched_in_place(tmp_path: Path) -> None:
    async with open_page(tmp_path, sample=True, locale="zh-CN") as visitor:
        book = (await visitor.served.tapster.library.world_books.list())[0]["id"]
        page = await visitor.text(f"/library/world_books/{book}?page=1&open=2")
        assert '<html lang="zh-CN">' in page
        assert 'href="?page=1&amp;open=2&amp;lang=en"' in page
        assert '<html lang="en">' in await visitor.text(f"/library/world_books/{book}?page=1&open=2&lang=en")
        assert '<html lang="en">' in await visitor.text("/sessions")
        assert '<html lang="en">' in await visitor.text("/?lang=klingon")


@pytest.mark.parametrize("text", [*HOSTILE, "long 长 " * 14_000])
async def test_names_and_messages_are_only_text(tmp_path: Path, text: str) -> None:
    async with open_page(tmp_path, sample=True) as visitor:
        name = text[:100]
        card = {"spec": "chara_card_v2", "spec_version": "2.0", "data": {"name": name, "description": text}}
        reply = await visitor.upload((f"{name[:20].replace(chr(34), '')}.json", json.dumps(card).encode()))
        assert b"\xe2\x9c\x93 Imported" in reply.body
        character = (await visitor.served.tapster.library.characters.list())["characters"]
        await visitor.served.tapster.library.users.create({"name": name, "description": text})
        await answered_session(visitor, text, reply=text)
        chosen = next(item["id"] for item in character if item["name"] != "Mira")
        await visitor.served.tapster.select("s", {"characterCardId": chosen})
        opened = ["/", "/sessions", "/sessions/s", "/sessions/s/traces", f"/library/characters/{chosen}"]
        for path in opened:
            page = await visitor.text(path)
            for danger in ("<script>alert", "<img src=x", "49 {"):
                assert danger not in page
        assert shown(text).strip() in await visitor.text("/sessions/s")
        assert shown(name).strip() in await visitor.text("/")
        preview = await visitor.post("/sessions/s/preview", {"text": text})
        assert preview.status == 200
        assert b"<script>alert" not in preview.body


async def test_each_file_of_an_import_is_taken_or_refused_alone(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        good = files("tapster.api.sample").joinpath("mira.card.png").read_bytes()
        reply = await visitor.upload(("mira.png", good), ("cut.png", good[:200]), ("x.json", b"{"), ("e.json", b""))
        page = reply.body.decode()
        assert page.count("✓ Imported") == 1
        assert page.count("✗ Not imported") == 3
        assert len((await visitor.served.tapster.library.characters.list())["characters"]) == 1
        assert "No file was chosen" in (await visitor.upload()).body.decode()
        visitor.has_script = False
        whole = await visitor.upload(("again.png", good))
        assert b"<!doctype html>" in whole.body
        assert whole.body.decode().count("✓ Imported") == 1


async def test_why_a_file_was_refused_is_said_in_the_language_of_the_page(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        good = files("tapster.api.sample").joinpath("mira.card.png").read_bytes()
        parts = (
            ("cut.png", good[:200]),
            ("x.json", b"{"),
            ("e.json", b""),
            ("n.json", b"1"),
            ("b.json", b'{"entries":[1]}'),
        )
        english = (await visitor.upload(*parts)).body.decode()
        await visitor.get("/?lang=zh-CN")
        chinese = (await visitor.upload(*parts)).body.decode()
        for words in ("文件不完整", "不是有效的 JSON", "文件是空的", "不是角色卡", "有一个条目不是对象"):
            assert words in chinese
            assert words not in english
        assert "restore it from a backup" in english
        assert "restore it from a backup" in chinese


def test_every_check_of_a_file_has_its_words() -> None:
    found = {"invalid-json", *LIMIT_CODES}
    for path in Path(formats.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in CHECKS and call.args:
                first = call.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    found.add(first.value)
    assert len(found) > 80
    assert found <= FILE_WORDS.keys()


@pytest.mark.parametrize("kind", ["characters", "presets", "world_books", "users"])
async def test_made_renamed_exported_deleted(tmp_path: Path, kind: str) -> None:
    async with open_page(tmp_path) as visitor:
        made = await visitor.post(f"/library/{kind}/new", {"name": "First"})
        path = made.headers["hx-redirect"]
        assert path.startswith(f"/library/{kind}/")
        assert 'value="First"' in await visitor.text(path)
        saved = await visitor.post(path, {"name": "Second", "description": "a\r\nb"})
        assert "Saved" in saved.body.decode()
        assert 'value="Second"' in await visitor.text(path)
        exported = await visitor.get(path + "/export")
        assert exported.status == (404 if kind == "users" else 200)
        visitor.has_script = False
        gone = await visitor.post(path + "/delete")
        assert (gone.status, gone.headers["location"]) == (303, "/")
        assert (await visitor.get(path)).status == 404


async def test_saving_a_form_as_it_is_changes_nothing(tmp_path: Path) -> None:
    """What a form doesn't show survives, and line ends don't count as a change."""
    async with open_page(tmp_path, sample=True) as visitor:
        library = visitor.served.tapster.library
        preset = (await library.presets.list())[0]["id"]
        before = await library.presets.get(preset)
        sampling = before["sampling"]
        form = {
            "name": before["name"],
            "temperature": sampling["temperature"],
            "maxTokens": sampling["maxTokens"],
            "prompts": len(before["prompts"]),
            "enabled": [index for index, prompt in enumerate(before["prompts"]) if prompt["enabled"]],
        }
        await visitor.post(f"/library/presets/{preset}", form)
        assert unstamped(await library.presets.get(preset)) == unstamped(before)
        off = {**form, "enabled": [0]}
        await visitor.post(f"/library/presets/{preset}", off)
        assert [each["enabled"] for each in (await library.presets.get(preset))["prompts"]][:2] == [True, False]
        bad = await visitor.post(f"/library/presets/{preset}", {**form, "temperature": "warm"})
        assert (bad.status, b"temperature must be a number" in bad.body) == (400, True)

        card = (await library.characters.list())["characters"][0]["id"]
        before = await library.characters.get(card)
        texts = {"description": before["data"]["description"].replace("\n", "\r\n"), "name": "Mira"}
        await visitor.post(f"/library/characters/{card}", texts)
        assert unstamped(await library.characters.get(card)) == unstamped(before)


def unstamped(document: Json) -> Json:
    """A document without the time of its last change."""
    return {name: value for name, value in document.items() if name != "updatedAt"}


async def test_editing_one_entry_leaves_the_others_alone(tmp_path: Path) -> None:
    async with open_page(tmp_path, sample=True) as visitor:
        library = visitor.served.tapster.library
        book = (await library.world_books.list())[0]["id"]
        root = f"/library/world_books/{book}"
        before = (await library.world_books.get(book))["book"]["entries"]
        form = {"key": "1", "keys": "bell\r\n/d(eep|rown)/i\r\n", "content": "New\r\ntext", "comment": "Bell"}
        assert (await visitor.post(f"{root}/entries/1", form)).status == 200
        after = (await library.world_books.get(book))["book"]["entries"]
        assert (after[1]["keys"], after[1]["content"], after[1]["enabled"]) == (
            ["bell", "/d(eep|rown)/i"],
            "New\ntext",
            False,
        )
        assert [after[0], *after[2:]] == [before[0], *before[2:]]
        moved = await visitor.post(f"{root}/entries/2", {"key": "1"})
        assert (moved.status, b"ENTRY_MOVED" in moved.body) == (409, True)
        assert (await visitor.post(f"{root}/entries/99", {"key": "99"})).status == 409
        added = await visitor.post(f"{root}/entries")
        assert added.headers["hx-redirect"].endswith("?page=1&open=6#entry-6")
        assert (await visitor.post(f"{root}/entries/0/delete", {"key": "0"})).status == 204
        left = (await library.world_books.get(book))["book"]["entries"]
        assert [entry["comment"] for entry in left[:2]] == ["Bell", before[2]["comment"]]


async def test_a_long_book_is_paged(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        entries = {str(n): {"uid": n, "key": [f"k{n}"], "content": "c", "comment": f"Entry {n}."} for n in range(120)}
        await visitor.upload(("big.json", json.dumps({"name": "Big", "entries": entries}).encode()))
        book = (await visitor.served.tapster.library.world_books.list())[0]["id"]
        last = await visitor.text(f"/library/world_books/{book}?page=3")
        assert last.count('<details class="entry"') == 20
        assert "Entry 119." in last
        assert "3 / 3" in last
        assert await visitor.text(f"/library/world_books/{book}?page=99999") == last.replace(
            "page=3&amp;", "page=99999&amp;"
        )


async def test_the_list_of_sessions_names_what_is_bound(tmp_path: Path) -> None:
    async with open_page(tmp_path, sample=True) as visitor:
        assert "No session yet" in await visitor.text("/sessions")
        await bound_session(visitor)
        await visitor.post("/sessions/new")
        page = await visitor.text("/sessions")
        assert "<bdi>Mira</bdi>" in page
        assert "No character" in page
        assert "Tavern evening" in page


async def test_older_records_are_shown_as_far_as_they_go(tmp_path: Path) -> None:
    audits = [
        {"id": "1:0:1", "turn": 1, "step": 0, "attempt": 1, "recordedAt": 1, "updatedAt": 2, "worldBooks": odd}
        for odd in (None, 5, [5, {}, {"decisions": [7, {}, {"decision": "included"}], "budget": 3}])
    ]
    for number, audit in enumerate(audits):
        folder = tmp_path / str(number)
        folder.mkdir()
        AuditFile(folder, AtomicWriter(1, lambda: "1")).put("s", [audit])
        async with open_page(folder, legacy=LegacyTraces(folder)) as visitor:
            (path,) = re.findall(r'href="(/sessions/s/traces/[^"]+)"', await visitor.text("/sessions/s/traces"))
            page = await visitor.text(path)
            assert "✗ not verified" in page
            assert ("✓ in" in page) == (number == 2)


@pytest.mark.parametrize("locale", LOCALES)
def test_every_reason_has_words_in_both_modes(locale: str) -> None:
    texts = Texts(locale)
    reasons = [
        *((reason, "included") for reason in get_args(ActiveReason)),
        *((reason, "rejected") for reason in get_args(InactiveReason)),
        *((reason, "included") for reason in ("constant", "vector-match", "primary-key-match")),
    ]
    for reason, decision in reasons:
        assert texts.has(f"why_{reason}_{decision}") or texts.has(f"why_{reason}"), (reason, decision)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["sections", "audit", "worldBooks", "decisions", "sources", "kind"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.sampled_from(["sections", "contexts", "audit", "delivery", "recordedAt", "failure"]), JSON))
def test_no_record_is_too_odd_to_be_shown(record: Json) -> None:
    assert trace_view({"id": "r", "status": "assembled", **record})["id"] == "r"


async def test_a_message_while_it_answers_waits_and_stopping_keeps_the_beginning(tmp_path: Path) -> None:
    async with open_page(tmp_path, sample=True) as visitor:
        await bound_session(visitor)
        visitor.served.provider.add([TextDelta(0, "The bell "), TextDelta(0, "rang"), Pause(LONG_S)])
        async with listening(visitor, "/sessions/s/stream", "from=0") as tab:
            await visitor.post("/sessions/s/messages", {"text": "Hello"})
            await tab.until(b'"rang"')
            waiting = (await visitor.post("/sessions/s/messages", {"text": "And now?"})).body.decode()
            assert re.search(r'class="user queued".*And now\?', waiting, re.DOTALL)
            assert "answering" in waiting
            busy = await visitor.post("/sessions/s/bindings", {})
            assert (busy.status, b"It is in use or has changed" in busy.body) == (409, True)
            await visitor.post("/sessions/s/cancel")
            await tab.until(b'"turn/end"')
        page = await visitor.text("/sessions/s/messages")
        assert "The bell rang" in page
        assert 'data-end="aborted"' in page
        assert "And now?" not in page


async def test_a_failed_turn_says_why_and_what_to_do(tmp_path: Path) -> None:
    failure = Failure("NO_ADAPTER", "no model server is configured")
    async with open_page(tmp_path) as visitor:
        handle = await visitor.served.tapster.create_session("s")
        visitor.served.provider.add([Finish("error", failure)])
        await handle.send("Hello")
        await handle.when_idle()
        for locale, words in (("en", "No model server is configured: set"), ("zh-CN", "尚未配置模型服务")):
            page = await visitor.text(f"/sessions/s/messages?lang={locale}")
            assert 'data-end="error"' in page
            assert words in page
            assert "no model server is configured</span> <code>NO_ADAPTER</code>" in page


async def test_a_preview_takes_the_draft_and_changes_nothing(tmp_path: Path) -> None:
    async with open_page(tmp_path, sample=True) as visitor:
        await bound_session(visitor)
        events = (await visitor.served.tapster.history("s")).events
        without = (await visitor.post("/sessions/s/preview", {"text": " "})).body.decode()
        draft = (await visitor.post("/sessions/s/preview", {"text": "沉钟"})).body.decode()
        assert "Under the reef" not in without
        assert "Under the reef" in draft
        assert "Assembled with the draft" in draft
        assert (await visitor.served.tapster.history("s")).events == events


async def test_a_preview_lists_the_first_of_a_large_book_and_counts_the_rest(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        tapster = visitor.served.tapster
        entries = {str(uid): {"uid": uid, "key": [f"key{uid}."], "content": f"lore {uid}"} for uid in range(600)}
        book = await tapster.library.world_books.import_file(stringify({"entries": entries}).encode(), "large.json")
        await tapster.create_session("s", mode="tavern")
        await tapster.select("s", {"worldBookIds": [book["id"]]})
        shown = (await visitor.post("/sessions/s/preview", {"text": "key599."})).body.decode()
        assert shown.count("<tr class=") == 500
        assert 'data-entry="599"' in shown
        assert "100 more entries" in shown


async def test_a_long_conversation_shows_its_end_first(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        handle = await visitor.served.tapster.create_session("s")
        for number in range(101):
            visitor.served.provider.add([TextDelta(0, f"reply {number}."), Finish("stop")])
            await handle.send(f"message {number}.")
            await handle.when_idle()
        page = await visitor.text("/sessions/s")
        assert "Show earlier messages (2)" in page
        assert "message 0." not in page
        assert "message 0." in await visitor.text("/sessions/s?all=1")


async def test_the_stream_resumes_and_ends_with_its_tab(tmp_path: Path) -> None:
    async with open_page(tmp_path, sample=True) as visitor:
        await answered_session(visitor)
        agent = visitor.served.tapster.host.agent("s")
        assert agent is not None
        events = (await visitor.served.tapster.history("s")).events
        await trio.testing.wait_all_tasks_blocked()
        before = task_count()
        for headers, query, first in (
            ({}, "from=0", 0),
            ({}, f"from={len(events) - 1}", len(events) - 1),
            ({"last_event_id": "2"}, "from=0", 3),
        ):
            async with listening(visitor, "/sessions/s/stream", query, **headers) as tab:
                received = await tab.until(f"id: {len(events) - 1}\n".encode())
                assert [int(seq) for seq in re.findall(rb"id: (\d+)", received)] == list(range(first, len(events)))
                assert agent.log.subscriber_count == 1
                tab.leave()
                await tab.ended.wait()
                assert agent.log.subscriber_count == 0
            await until(lambda: task_count() == before)


async def test_a_tab_closed_at_any_moment_leaves_no_subscription(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        await visitor.served.tapster.create_session("s")
        agent = visitor.served.tapster.host.agent("s")
        assert agent is not None
        seen = 0
        for steps in range(60):
            async with listening(visitor, "/sessions/s/stream", "from=0") as tab:
                for _ in range(steps):
                    await trio.lowlevel.checkpoint()
                seen = max(seen, agent.log.subscriber_count)
                tab.leave()
                await tab.ended.wait()
            assert agent.log.subscriber_count == 0, steps
        assert seen == 1


UNKNOWN = [
    ("GET", "/nothing"),
    ("GET", "/library/spells/1"),
    ("POST", "/library/spells/new"),
    ("GET", "/library/presets/none"),
    ("POST", "/library/presets/none"),
    ("POST", "/library/users/none/delete"),
    ("GET", "/library/world_books/none/export"),
    ("POST", "/library/world_books/none/entries/0"),
    ("GET", "/sessions/none"),
    ("GET", "/sessions/none/messages"),
    ("POST", "/sessions/none/messages"),
    ("POST", "/sessions/none/bindings"),
    ("POST", "/sessions/none/preview"),
    ("POST", "/sessions/none/cancel"),
    ("GET", "/sessions/none/stream"),
    ("GET", "/sessions/none/traces"),
    ("GET", "/sessions/none/traces/00000000-0000-0000-0000-000000000000"),
]


@pytest.mark.parametrize(("method", "path"), UNKNOWN)
async def test_what_does_not_exist_is_said_in_both_languages(tmp_path: Path, method: str, path: str) -> None:
    async with open_page(tmp_path) as visitor:
        for locale, words in (("en", "There is nothing here"), ("zh-CN", "这里没有内容")):
            target = f"{path}?lang={locale}"
            send = visitor.get(target) if method == "GET" else visitor.post(target, {"text": "x", "name": "x"})
            reply = await send
            assert (reply.status, words in reply.body.decode()) == (404, True)
            assert reply.headers.get("hx-reswap") == (None if method == "GET" else "innerHTML")


async def test_a_wrong_method_and_a_blank_persona(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        assert (await visitor.get("/library/import")).status in (404, 405)
        assert (await visitor.post("/sessions")).status == 405
        reply = await visitor.post("/library/users/new", {"name": " "})
        assert (reply.status, b"can&#39;t be used" in reply.body) == (400, True)
        assert await visitor.served.tapster.library.users.list() == []


async def test_an_overlong_message_is_refused(tmp_path: Path) -> None:
    async with open_page(tmp_path) as visitor:
        await visitor.served.tapster.create_session("s")
        reply = await visitor.post("/sessions/s/messages", {"text": "x" * 200_001})
        assert (reply.status, b"too large" in reply.body) == (413, True)
        assert len((await visitor.served.tapster.history("s")).events) == 0


async def test_a_refusing_store_and_a_stop_are_said(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    async with open_page(folder, engine="files", sample=True) as visitor:
        users = await visitor.served.tapster.library.users.list()
        shutil.rmtree(folder)
        folder.write_text("in the way")
        reply = await visitor.post("/library/users/new", {"name": "Nobody"})
        assert (reply.status, b"Nothing was saved" in reply.body) == (503, True)
        assert await visitor.served.tapster.library.users.list() == users
        folder.unlink()
    async with open_page(tmp_path / "other") as visitor:
        visitor.served.tapster.lifecycle.advance(Phase.DRAINING)
        reply = await visitor.post("/sessions/new")
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert b"busy or stopping" in reply.body
