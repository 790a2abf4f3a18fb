"""The page in a real headless Chromium against a real server: from a card's file to the record that proves it."""

import os
import shutil
from collections.abc import Iterator
from importlib.resources import as_file, files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.support.served import model_server_thread, served

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = [
    "--no-sandbox",  # root in a container has no other way
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LIMIT_MS = 10_000
BROWSER = os.environ.get("TAPSTER_TEST_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        BROWSER is None,
        reason=f"no browser: none of {', '.join(BROWSERS)} is on the PATH (Debian: apt-get install chromium)",
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    with (
        model_server_thread() as model,
        served(folder, TAPSTER_PROVIDER_URL=model, TAPSTER_MODEL="stand-in:slow", TAPSTER_LOCALE="en") as address,
    ):
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab in a fresh profile; an error of the page's own script fails the test."""
    context = browser.new_context()
    context.set_default_timeout(LIMIT_MS)
    tab = context.new_page()
    errors: list[str] = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    yield tab
    context.close()
    assert errors == []


def test_from_a_card_to_its_proof(page: Page, url: str, tmp_path: Path) -> None:
    """Import a PNG card and a book among a bad file, bind them, talk, and read the record."""
    broken = tmp_path / "broken.json"
    broken.write_text("{nope")
    page.goto(url)
    with as_file(files("tapster.api.sample")) as sample:
        chosen = [sample / "mira.card.png", sample / "greywater.world.json", broken]
        page.get_by_label("Import files").set_input_files(chosen)
        page.get_by_role("button", name="Import", exact=True).click()
        reports = page.locator(".reports > li")
        expect(reports).to_have_count(3)
    expect(reports.nth(0)).to_contain_text("Imported mira.card.png")
    expect(reports.nth(2)).to_contain_text("Not imported broken.json")
    expect(page.locator("section", has=page.locator("#characters"))).to_contain_text("Mira")

    page.get_by_role("link", name="Sessions").click()
    page.get_by_role("button", name="New session").click()
    page.get_by_label("Character", exact=True).select_option(label="Mira")
    page.get_by_label("Greywater harbour").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#bound")).to_contain_text("Bound")

    page.get_by_label("Message", exact=True).fill("Is that the bell I hear?")
    page.get_by_role("button", name="What would be sent").click()
    expect(page.locator("#preview-out")).to_contain_text("Under the reef lies the bell")
    page.evaluate(WATCH_THE_REPLY)
    page.get_by_label("Message", exact=True).press("Control+Enter")
    expect(page.locator("#messages article.assistant")).to_contain_text("0 replies before.")
    expect(page.locator("#live")).to_be_hidden()
    expect(page.locator("#state")).to_have_text("ready")
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    streamed = page.evaluate("seen.filter(each => !each.isStored).map(each => each.text)")
    whole = page.locator("#messages article.assistant .text").inner_text()
    parts = [text for text in streamed if text and whole.startswith(text) and "replies before" not in text]
    assert len(set(parts)) > 1, streamed

    page.get_by_role("link", name="Traces").click()
    page.get_by_role("link", name="Turn 1.1").click()
    expect(page.locator("#verification")).to_contain_text("Every text was found in the session's own history")
    description = page.locator(".section", has_text="Character: Description")
    expect(description.locator(".verified")).to_have_text("✓ verified")
    expect(description.locator("pre")).to_contain_text("Mira keeps the lighthouse of Greywater harbour")
    decided = page.locator("tr", has_text="The drowned bell")
    expect(decided).to_contain_text("✓ in")
    expect(decided).to_contain_text("a key matched")
    expect(decided.locator("td").last).to_have_text("bell")
    expect(page.locator("tr", has_text="The smugglers")).to_contain_text("no key is in the searched text")

    page.get_by_role("link", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator("#verification")).to_contain_text("所有文本都在会话自身的历史中找到")


def test_stopping_keeps_what_was_said(page: Page, url: str) -> None:
    """A message during a reply waits; Stop ends the reply and keeps its beginning; a bound card can't go meanwhile."""
    page.goto(url + "/sessions")
    page.get_by_role("button", name="New session").click()
    message = page.get_by_label("Message", exact=True)
    message.fill("Take your time. " * 20)
    page.get_by_role("button", name="Send").click()
    expect(page.locator("#live .text")).to_contain_text("(offline stand-in)")

    page.get_by_role("button", name="Save").click()
    expect(page.locator("#notice")).to_contain_text("It is in use or has changed")
    message.fill("And another thing.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator("article.queued")).to_contain_text("And another thing.")
    expect(page.locator("#live")).to_be_visible()

    page.get_by_role("button", name="Stop").click()
    expect(page.locator("[data-end=aborted]")).to_be_visible()
    kept = page.locator("#messages article.assistant .text")
    expect(kept).to_contain_text("(offline stand-in)")
    expect(kept).not_to_contain_text("replies before")
    expect(page.locator("#live")).to_be_hidden()
    expect(page.locator("article.queued")).to_have_count(0)


def test_hostile_names_and_keys_and_keyboard(page: Page, url: str) -> None:
    """A card's name is text, an entry can be edited, a deletion asks first."""
    name = "<img src=x onerror=alert(1)>\u202e😀"
    page.goto(url)
    opened = page.locator("section", has=page.locator("#users"))
    opened.get_by_text("New persona").press("Enter")
    opened.get_by_label("Name").fill(name)
    opened.get_by_label("Name").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(name)
    page.get_by_label("Description").fill("line one\nline two")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#saved")).to_contain_text("Saved")
    page.reload()
    expect(page.get_by_label("Description")).to_have_value("line one\nline two")

    page.get_by_role("link", name="Library").first.click()
    row = page.locator("#lists li", has_text=name)
    with page.expect_event("dialog") as refused:
        page.once("dialog", lambda dialog: dialog.dismiss())
        row.get_by_role("button").click()
    assert name in refused.value.message
    expect(row).to_have_count(1)
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button").click()
    expect(row).to_have_count(0)


def test_editing_a_world_book(page: Page, url: str) -> None:
    """An entry is added, edited, switched off and deleted."""
    page.goto(url)
    opened = page.locator("section", has=page.locator("#world_books"))
    opened.get_by_text("New world book").click()
    opened.get_by_label("Name").fill("Tides")
    opened.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Add an entry").click()
    entry = page.locator("details.entry")
    entry.get_by_label("Keys, one a line", exact=True).fill("tide\n/ebb,?/i")
    entry.get_by_label("Content").fill("The tide turns at six.")
    entry.get_by_label("switched on").uncheck()
    entry.get_by_role("button", name="Save").click()
    expect(entry).to_contain_text("Saved")
    page.reload()
    expect(entry.get_by_label("Keys, one a line", exact=True)).to_have_value("tide\n/ebb,?/i")
    expect(entry.get_by_label("Content")).to_have_value("The tide turns at six.")
    expect(entry.get_by_label("switched on")).not_to_be_checked()
    page.once("dialog", lambda dialog: dialog.accept())
    entry.get_by_role("button", name="Delete").click()
    expect(entry).to_have_count(0)


def test_every_page_fits_a_phone_and_names_its_controls(browser: Browser, url: str) -> None:
    """No page is wider than a phone, and every control has a name."""
    context = browser.new_context(viewport={"width": 360, "height": 720}, color_scheme="dark")
    page = context.new_page()
    page.goto(url + "/sessions")
    page.get_by_role("button", name="New session").click()
    expect(page.locator("#chat")).to_be_visible()
    for path in ("/", "/sessions", page.url.removeprefix(url), "/sessions/none"):
        page.goto(url + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        unnamed = page.evaluate(UNNAMED_CONTROLS)
        assert unnamed == [], path
    context.close()


WATCH_THE_REPLY = """() => {
  window.seen = [];
  const live = document.querySelector("#live .text");
  const note = () => seen.push({ text: live.textContent, isStored: !!document.querySelector("#messages .assistant") });
  new MutationObserver(note).observe(live, { childList: true, subtree: true, characterData: true });
}"""

UNNAMED_CONTROLS = """() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a")]
  .filter(each => !(each.labels?.length || each.ariaLabel || each.textContent.trim())).map(each => each.outerHTML)"""
