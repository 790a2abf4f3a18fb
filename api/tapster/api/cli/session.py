"""``tapster session``: sessions of the embedded host."""

from __future__ import annotations

from typing import Final

import click
import trio

from tapster.api.page.shown import messages_of
from tapster.engine.activation import ACTIVATION_MODES
from tapster.engine.ecma import Json, parse_json, stringify
from tapster.engine.errors import FormatError

from .client import CONTRACT, OWN, Api, run, segment
from .offline import describe_profile
from .output import write_lines, write_text

POLL_S: Final = 0.2
"""How often a waiting command looks whether the turn is over."""


@click.group("session")
def command() -> None:
    """List and begin sessions, bind resources, talk in them, and see what would be sent."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def list_(context: click.Context, as_json: bool) -> None:
    """All sessions, newest first."""
    sessions = run(context, lambda api: api.get(f"{OWN}/sessions"))["sessions"]
    if as_json:
        write_text(stringify(sessions, indent=2))
        return
    for session in sessions:
        write_text(f"{session['id']}  {session['status']}")


@command.command("new")
@click.argument("identity", required=False)
@click.pass_context
def new(context: click.Context, identity: str | None) -> None:
    """Begin a session and print its id."""
    body = {} if identity is None else {"id": identity}
    write_text(run(context, lambda api: api.call("POST", f"{OWN}/sessions", body))["session"]["id"])


@command.command("show")
@click.argument("identity")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def show(context: click.Context, identity: str, as_json: bool) -> None:
    """A session's bindings and messages."""
    session = run(context, lambda api: api.get(f"{OWN}/sessions/{segment(identity)}"))["session"]
    if as_json:
        write_text(stringify(session, indent=2))
        return
    for member, value in session["selection"].items():
        write_text(f"{member}: {', '.join(value) if isinstance(value, list) else value or 'none'}")
    for message in messages_of(session["messages"]):
        if not message["is_machinery"]:
            write_text(f"[{message['role']}] {message['text']}")


@command.command("send")
@click.argument("identity")
@click.argument("text")
@click.option("--no-wait", is_flag=True, help="Return once the message is kept, before the reply.")
@click.pass_context
def send(context: click.Context, identity: str, text: str, no_wait: bool) -> None:
    """Say TEXT in a session and print the reply; exit code 1 when the turn fails.

    Without a running server the turn runs in this command, so it always waits for the reply.
    """

    async def work(api: Api) -> tuple[list[Json], Json]:
        path = f"{OWN}/sessions/{segment(identity)}"
        known = len((await api.get(path))["session"]["messages"])
        await api.call("POST", f"{path}/messages", {"text": text})
        if no_wait and not api.is_in_process:
            return [], None
        while True:
            session = (await api.get(path))["session"]
            if session["status"] != "running":
                return messages_of(session["messages"][known:]), session["lastTurn"]
            await trio.sleep(POLL_S)

    replies, ending = run(context, work)
    for message in replies:
        if message["role"] == "assistant":
            write_text(message["text"])
    if ending is not None and ending["kind"] != "completed":
        raise click.ClickException(f"the turn ended with {stringify(ending)}")


@command.command("bind")
@click.argument("identity")
@click.option("--preset", help="Preset id; an empty string unbinds.")
@click.option("--character", help="Card id; an empty string unbinds.")
@click.option("--user", help="Persona id; an empty string unbinds.")
@click.option("--world-book", "books", multiple=True, help="World-book id; all that are named become the list.")
@click.option("--no-world-books", is_flag=True, help="Unbind every world book.")
@click.pass_context
def bind(
    context: click.Context,
    identity: str,
    preset: str | None,
    character: str | None,
    user: str | None,
    books: tuple[str, ...],
    no_world_books: bool,
) -> None:
    """Bind resources to a session; what isn't named stays."""

    async def work(api: Api) -> None:
        session = {"sessionId": identity}
        if preset is not None:
            await api.call("POST", f"{CONTRACT}/v1/select", {**session, "id": preset or None})
        if character is not None:
            body = {**session, "characterCardId": character or None}
            await api.call("POST", f"{CONTRACT}/v1/character-selection", body)
        if user is not None:
            await api.call("POST", f"{CONTRACT}/v1/user-selection", {**session, "userId": user or None})
        if books or no_world_books:
            chosen = [] if no_world_books else list(books)
            await api.call("POST", f"{CONTRACT}/v1/world-book-selection", {**session, "worldBookIds": chosen})

    run(context, work)
    write_text(f"session {identity} is bound; later requests use it")


@command.command("set")
@click.argument("identity")
@click.option("--mode", type=click.Choice(ACTIVATION_MODES), help="How world books are activated.")
@click.option("--quirks", type=click.Choice(["repaired", "exact"]), help="Of mode sillytavern: keep its plain defects?")
@click.option("--card-scripts/--no-card-scripts", default=None, help="Whether regex scripts of the card may run.")
@click.option("--scan", "scan", multiple=True, metavar="NAME=VALUE", help="A scan setting, such as depth=4.")
@click.pass_context
def set_(
    context: click.Context,
    identity: str,
    mode: str | None,
    quirks: str | None,
    card_scripts: bool | None,
    scan: tuple[str, ...],
) -> None:
    """Change how a session activates its world books, and show it; without options it is only shown."""
    given: dict[str, Json] = {"mode": mode, "quirks": quirks, "cardScripts": card_scripts}
    patch = {name: value for name, value in given.items() if value is not None}
    if scan:
        patch["scan"] = dict(_scan_setting(item) for item in scan)
    path = f"{OWN}/sessions/{segment(identity)}/settings"
    result: Json = run(context, lambda api: api.call("POST", path, patch))
    settings = result["settings"]
    for name, value in {**settings, **settings["scan"]}.items():
        if name != "scan":
            write_text(f"{name}: {stringify(value)}")


def _scan_setting(item: str) -> tuple[str, Json]:
    name, equals, value = item.partition("=")
    if not equals:
        raise click.BadParameter(f"{item} must be NAME=VALUE", param_hint="--scan")
    try:
        return name, parse_json(value)
    except FormatError:
        return name, value


@command.command("preview")
@click.argument("identity")
@click.option("--draft", help="A message that isn't sent yet.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_context
def preview(context: click.Context, identity: str, draft: str | None, as_json: bool) -> None:
    """What would be sent now; nothing is sent or recorded."""
    body = {} if draft is None else {"draft": draft}
    result: Json = run(context, lambda api: api.call("POST", f"{OWN}/sessions/{segment(identity)}/preview", body))
    if as_json:
        write_text(stringify(result["preview"], indent=2))
    else:
        write_lines(describe_profile(result["preview"]))
