"""The page's routes; every one asks the runtime and renders, and keeps nothing."""

from collections.abc import Awaitable, Callable
from typing import Final

from quart import Blueprint, Response
from quart_trio import QuartTrio
from werkzeug.exceptions import InternalServerError, MethodNotAllowed, NotFound, RequestEntityTooLarge

from tapster.actors.store.files.traces import LegacyTraces
from tapster.actors.tapster import Tapster
from tapster.api.backing import Backing
from tapster.api.config import Config
from tapster.engine.errors import TapsterError
from tapster.runtime import RuntimeFault

from .chat import SessionPages
from .door import ENTER_PATH, IMPORT_PATH, Door, with_page_headers
from .library import LibraryPages
from .runtime import RuntimePages
from .shell import Shell
from .traces import TracePages

Route = tuple[str, str, Callable[..., Awaitable[Response]]]
FRAMEWORK_REFUSALS: Final = (NotFound, MethodNotAllowed, RequestEntityTooLarge, InternalServerError)


def add_page(app: QuartTrio, tapster: Tapster, config: Config, legacy: LegacyTraces | None = None) -> None:
    """Put the page at the root of an application; ``legacy`` are older traces to show beside the present ones."""
    shell, door, backing = Shell(config), Door(config), Backing(tapster, legacy)
    library = LibraryPages(shell, backing)
    chat = SessionPages(shell, tapster, backing, library)
    traces = TracePages(shell, tapster, backing)
    blueprint = Blueprint(
        "page", __name__, template_folder="templates", static_folder="static", static_url_path="/static"
    )
    blueprint.before_request(door.admit)
    blueprint.after_request(with_page_headers)
    blueprint.register_error_handler(TapsterError, shell.refuse)
    blueprint.register_error_handler(RuntimeFault, shell.refuse)
    runtime = RuntimePages(shell, tapster)
    for method, rule, view in (*routes(door, library, chat, traces), ("GET", "/runtime", runtime.runtime)):
        blueprint.add_url_rule(rule, view.__name__, view, methods=[method])
    app.register_blueprint(blueprint)
    for refusal in FRAMEWORK_REFUSALS:
        app.register_error_handler(refusal, shell.fail)


def routes(door: Door, library: LibraryPages, chat: SessionPages, traces: TracePages) -> list[Route]:
    """Method, rule and view of each page."""
    return [
        ("POST", ENTER_PATH, door.enter),
        ("GET", "/", library.library),
        ("POST", IMPORT_PATH, library.import_files),
        ("POST", "/library/<kind>/new", library.create),
        ("GET", "/library/<kind>/<resource_id>", library.resource),
        ("POST", "/library/<kind>/<resource_id>", library.save),
        ("POST", "/library/<kind>/<resource_id>/delete", library.delete),
        ("GET", "/library/<kind>/<resource_id>/export", library.export),
        ("POST", "/library/world_books/<resource_id>/entries", library.add_entry),
        ("POST", "/library/world_books/<resource_id>/entries/<int:position>", library.save_entry),
        ("POST", "/library/world_books/<resource_id>/entries/<int:position>/delete", library.delete_entry),
        ("GET", "/sessions", chat.sessions),
        ("POST", "/sessions/new", chat.new_session),
        ("GET", "/sessions/<session_id>", chat.session),
        ("POST", "/sessions/<session_id>/bindings", chat.bind),
        ("GET", "/sessions/<session_id>/messages", chat.messages),
        ("POST", "/sessions/<session_id>/messages", chat.send),
        ("POST", "/sessions/<session_id>/cancel", chat.cancel),
        ("POST", "/sessions/<session_id>/preview", chat.preview),
        ("GET", "/sessions/<session_id>/stream", chat.stream),
        ("GET", "/sessions/<session_id>/traces", traces.traces),
        ("GET", "/sessions/<session_id>/traces/<record_id>", traces.trace),
    ]
