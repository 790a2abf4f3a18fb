"""What the HTTP layer asks of Tapster; the actors behind it are provided by ``tapster.actors``.

Resources go over this border as the JSON documents that the contract shows: they are opaque JSON by nature. Every
method may raise a ``TapsterError`` (the caller's, a file's or the store's fault) or a ``RuntimeFault`` (try again).
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Literal, Protocol, TypeAlias

import attrs

from tapster.actors.contract import AuditReading, RpReading
from tapster.actors.introspection import RuntimeReading
from tapster.engine.activation.explanations import Language
from tapster.engine.ecma import Json
from tapster.engine.policy import RequestResult, Selection
from tapster.engine.trace import History, TraceSources


class Download(Protocol):
    """A file to save: its bytes, media type and suggested name."""

    @property
    def data(self) -> bytes: ...
    @property
    def media_type(self) -> str: ...
    @property
    def name(self) -> str: ...


@attrs.frozen
class Notice:
    """One live event; ``seq`` is where a client resumes."""

    seq: int
    event: str
    data: Json


class Presets(Protocol):
    """Presets (spec/http §5.1)."""

    async def list(self) -> Sequence[Json]: ...
    async def create(self, name: Json) -> Json: ...
    async def get(self, preset_id: str) -> Json: ...
    async def update(self, preset_id: str, patch: Json) -> Json: ...
    async def delete(self, preset_id: str) -> None: ...
    async def import_text(self, content: str, name: Json) -> Json: ...
    async def export(self, preset_id: str) -> Download: ...
    async def regex_scripts(self, preset_id: str) -> Sequence[Json]: ...
    async def set_regex_scripts(self, preset_id: str, scripts: Json) -> Sequence[Json]: ...
    async def default_id(self) -> str | None: ...
    async def set_default(self, preset_id: str | None) -> None: ...


class Characters(Protocol):
    """Character cards (spec/http §5.2)."""

    async def list(self) -> Json:
        """``{characters, sorting, missingCharacters}``."""

    async def create(self, name: Json) -> Json: ...
    async def import_file(self, data: bytes, media_type: str, file_name: str | None) -> Json:
        """``{character, compatibility, recovery?}``."""

    async def get(self, character_id: str) -> Json: ...
    async def update(self, character_id: str, patch: Json) -> Json: ...
    async def delete(self, character_id: str) -> None: ...
    async def export_json(self, character_id: str) -> Download: ...
    async def export_png(self, character_id: str) -> Download: ...
    async def set_book(self, character_id: str, book: Json) -> Json: ...
    async def regex_scripts(self, character_id: str) -> Sequence[Json]: ...
    async def set_regex_scripts(self, character_id: str, scripts: Json) -> Sequence[Json]: ...
    async def set_order(self, mode: Json, character_ids: Json) -> Json:
        """``{characters, sorting}``."""

    async def relink(self, previous_id: Json, character_id: Json) -> Json:
        """``{relinkedPlaythroughCount, relinkedSessionCount}``."""


class WorldBooks(Protocol):
    """Standalone world books (spec/http §5.3)."""

    async def list(self) -> Sequence[Json]: ...
    async def create(self, name: Json) -> Json: ...
    async def import_file(self, data: bytes, file_name: str | None) -> Json: ...
    async def get(self, book_id: str) -> Json: ...
    async def update(self, book_id: str, patch: Json) -> Json: ...
    async def delete(self, book_id: str) -> None: ...
    async def export(self, book_id: str) -> Download: ...


class Users(Protocol):
    """Personas (spec/http §5.3)."""

    async def list(self) -> Sequence[Json]: ...
    async def create(self, value: Json) -> Json: ...
    async def get(self, user_id: str) -> Json: ...
    async def update(self, user_id: str, patch: Json) -> Json: ...
    async def delete(self, user_id: str) -> None: ...


class Relations(Protocol):
    """Which books an owner brings along; ``owner`` is a kind and an id."""

    async def books(self, owner: Literal["user", "preset", "character"], owner_id: str) -> Sequence[str]: ...
    async def set_books(
        self, owner: Literal["user", "preset", "character"], owner_id: str, book_ids: Json
    ) -> Sequence[str]: ...


class Selections(Protocol):
    """What a session has bound."""

    async def get(self, session_id: str) -> Selection:
        """A session's selection, the defaults when it has none of its own."""

    async def select(self, session_id: str, patch: Mapping[str, Json]) -> Selection:
        """Write members of a selection after checking that the resources exist.

        Raises:
            RequestError: a resource is missing (404), the agent is running or the session's playthrough holds the
                card (409).
        """

    async def summary(self, kind: Literal["preset", "character", "user", "world-book"], resource_id: str) -> Json:
        """A resource's summary for display, None when it is gone."""


class Templates(Protocol):
    """Session templates and configurations (spec/http §5.5)."""

    async def list(self) -> Json:
        """``{selectedId, templates}`` with contents and diagnostics."""

    async def create(self, name: Json, source_session_id: Json) -> Json: ...
    async def get(self, template_id: str) -> Json:
        """``{template, contents, diagnostics}``."""

    async def update(self, template_id: str, patch: Json) -> Json:
        """As ``get``."""

    async def delete(self, template_id: str) -> None: ...
    async def select(self, template_id: str | None) -> Json:
        """``{selectedId, template}``."""

    async def preview(self, source: Json) -> Json:
        """``{selection, contents, diagnostics, available}``."""

    async def apply(self, target_session_id: Json, source: Json) -> Json:
        """``{selection, diagnostics}``."""


SettingsName: TypeAlias = Literal["ui-settings", "conversation-settings", "rp-policy"]


class Settings(Protocol):
    """Global settings documents; what a value may be is the engine's rule."""

    async def get(self, name: SettingsName) -> Json:
        """The stored value, None when there is none or it can't be used."""

    async def put(self, name: SettingsName, value: Json) -> object: ...
    async def delete(self, name: SettingsName) -> None: ...


class Roleplay(Protocol):
    """Roleplay mode of sessions (spec/http §5.4)."""

    async def get(self, session_id: str) -> RpReading: ...
    async def set(self, session_id: str, *, active: bool) -> tuple[RequestResult, RpReading]: ...
    async def alert(self, session_id: str, alert_id: str | None) -> Json: ...
    async def take_alert(self, session_id: str, alert_id: str | None) -> Json: ...


class Imports(Protocol):
    """Any file of a SillyTavern folder, recognised by its content."""

    async def import_file(self, file_name: str, data: bytes) -> Json:
        """``{fileName, resources, profile, notes}``."""


class Traces(Protocol):
    """Retained trace records; a read first waits for earlier writes of its session."""

    async def sources(self, session_id: str) -> TraceSources: ...
    async def history(self, record: Mapping[str, Json]) -> History:
        """What a detail of this record looks up in the host's log."""

    async def storage(self) -> Mapping[str, Json]: ...
    async def audits(self, session_id: str) -> AuditReading: ...


class Events(Protocol):
    """A session's events one by one: those missed first, then live ones; ends with ``trio.EndOfChannel``."""

    async def receive(self) -> Notice: ...


class Sessions(Protocol):
    """Sessions of the embedded host."""

    async def list(self) -> Sequence[Json]:
        """The sessions, newest first."""

    async def create(self, session_id: str | None) -> Json: ...
    async def get(self, session_id: str) -> Json:
        """One session with its messages; reading wakes nobody."""

    async def settings(self, session_id: str, patch: Json | None = None) -> Json:
        """How a session activates its world books, after a change if a patch is given.

        Raises:
            RequestError: a member of the patch doesn't fit; nothing was written.
        """

    async def send(self, session_id: str, text: str, *, mode: Literal["followup", "steer", "send"]) -> Json:
        """Queue a message; durable when answered."""

    async def cancel(self, session_id: str, *, keep_inbox: bool) -> None: ...
    async def preview(self, session_id: str, draft: str | None) -> Json:
        """What would be sent now: sections with text, messages, entries with reasons; nothing is recorded."""

    async def explain(self, session_id: str, draft: str | None, language: Language) -> Json:
        """Why each prompt and entry would be in the next request or not; nothing is recorded."""

    async def subscribe(self, session_id: str, after: int | None) -> AbstractContextManager[Events]:
        """Events from now on, those after a seq first; subscribed until the block ends."""

    async def active(self, session_id: str) -> Json:
        """The v1 ``/active`` body without ``ok``; runs an assembly and records nothing."""


class Runtime(Protocol):
    """The running program about itself."""

    def reading(self) -> RuntimeReading:
        """One look at everything that lives, made without waiting."""


@attrs.frozen
class StoreFacts:
    """What keeps the data and how it fares.

    Attributes:
        problem: code of the failure that writes meet now, None when they work.
        warnings: what the start went on without: code, subject, message.
    """

    engine: str
    location: str
    durability: str
    problem: str | None
    failures: int
    commits: int
    writes: int
    warnings: Sequence[tuple[str, str, str]] = ()


class StoreUpkeep(Protocol):
    """The data as a whole."""

    async def facts(self) -> StoreFacts: ...
    async def check(self) -> Sequence[str]:
        """What an integrity check finds wrong; empty when all is well."""

    async def backup(self) -> BinaryIO:
        """A complete copy, as a file that is gone when it is closed."""


class Strategies(Protocol):
    """Strategies, sources, history policies, variables and stored templates (spec/assembler §17)."""

    async def overview(self, session_id: str | None) -> Json:
        """``{presets, defaultPresetId, selection, capabilities, strategies, sources …}``."""

    async def create(self, value: Json) -> Json: ...
    async def get(self, preset_id: str) -> Json: ...
    async def update(self, preset_id: str, value: Json) -> Json: ...
    async def delete(self, preset_id: str) -> None: ...
    async def take_over(self, value: Json) -> bool:
        """Add what an older store's document has and this one lacks; whether something was added."""

    async def select(self, session_id: str, preset_id: str | None) -> Json:
        """The applied snapshot; None is off."""

    async def applied(self, session_id: str) -> Json:
        """``{selection, isDecided}``."""

    async def preview(self, session_id: str | None, preset_id: str | None, value: Json, draft: str | None) -> Json:
        """The request with its provenance; nothing is recorded."""

    async def actual(self, session_id: str) -> Json:
        """``{request, backend, recordKind, seq?}``."""

    async def policy(self, session_id: str) -> Json:
        """``{revision, policy, capabilities}``."""

    async def save_policy(self, session_id: str, value: Json, expected_revision: Json) -> Json:
        """As ``policy``."""

    async def preview_policy(self, session_id: str, value: Json, backend: str | None) -> Json: ...
    async def sources(self, session_id: str | None) -> Json:
        """``{sources, plugins}``."""

    async def variables(self, session_id: str) -> Json: ...
    async def set_variables_mode(self, session_id: str, mode: Literal["native", "managed"], expected: int) -> Json: ...
    async def patch_variables(self, session_id: str, operations: Json, expected: int, operation_id: str) -> Json: ...
    async def templates(self) -> Sequence[Json]: ...
    async def put_template(self, value: Json) -> Json: ...
    async def delete_template(self, template_id: str) -> None: ...


class Tapster(Protocol):
    """Everything the HTTP layer reaches."""

    @property
    def presets(self) -> Presets: ...
    @property
    def characters(self) -> Characters: ...
    @property
    def world_books(self) -> WorldBooks: ...
    @property
    def users(self) -> Users: ...
    @property
    def relations(self) -> Relations: ...
    @property
    def selections(self) -> Selections: ...
    @property
    def templates(self) -> Templates: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def roleplay(self) -> Roleplay: ...
    @property
    def traces(self) -> Traces: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def strategies(self) -> Strategies: ...
    @property
    def imports(self) -> Imports: ...
    @property
    def runtime(self) -> Runtime: ...
    @property
    def upkeep(self) -> StoreUpkeep: ...
    @property
    def is_draining(self) -> bool:
        """Whether a shutdown has begun."""
