"""Templates in hand-written text and stored templates: what they may read, and the leases on what they did read.

Source: spec/text_and_mvu B4, B5.
"""

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import attrs

from tapster.engine.errors import SourceError

from .ports import RegexEngine
from .templates import (
    Lookup,
    Surroundings,
    TemplateBook,
    TemplateData,
    TemplateEngine,
    TemplateEntry,
    TemplateError,
    TemplatePrompt,
    render_template,
)
from .templates.data import text_of

Json: TypeAlias = Any
WORLD_BOOK_ADAPTER, MVU_ADAPTER = "tavern.world-books", "tavern.mvu"
TEXT_SOURCE = "tavern.text"


class PolicyChanged(SourceError):
    """What a template read is no longer in force; the request starts again."""

    code = "SOURCE_POLICY_CHANGED"


@attrs.frozen
class DependencyProof:
    """A lease on a resource that was read; ``check_current`` answers at once whether it still holds."""

    adapter_id: str
    resource_id: str
    revision: int
    config_revision: int
    check_current: Callable[[], bool]


@attrs.frozen
class DependencyAnswer:
    """A text from a leased resource."""

    text: str
    proof: DependencyProof


class WorldBookAccess(Protocol):
    """The world books of a request, entry by entry, under leases."""

    def find(self, book: str | None, matches: Callable[[str, str], bool]) -> DependencyAnswer | None:
        """The first entry that ``matches(uid, comment)``; None when there is none.

        Raises:
            TemplateError: ``TEMPLATE_DEPENDENCY_NOT_ACTIVE`` for an entry that is not active.
        """


class TemplateRequest(Protocol):
    """What a template sees of the request it runs in."""

    @property
    def session_id(self) -> str: ...

    @property
    def assets(self) -> Mapping[str, Json]: ...


class TemplateRule(Protocol):
    """A rule with hand-written text."""

    @property
    def id(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...


def data_of_assets(assets: Mapping[str, Json]) -> TemplateData:
    """The frozen preset and card of a request, and its active world-book entries."""
    preset, character = _record(assets.get("preset")), _record(assets.get("character"))
    data = _record(character.get("data"))
    return TemplateData(
        books=_books(_records(assets.get("loreEntries"))),
        prompts=tuple(
            TemplatePrompt(_text(prompt.get("identifier")), _text(prompt.get("name")), _text(prompt.get("content")))
            for prompt in _records(preset.get("prompts"))
        ),
        character_id=_text(character.get("id")),
        character_name=_text(data.get("name")) or _text(character.get("name")),
        character_description=_text(data.get("description")),
    )


def _books(entries: Iterable[Mapping[str, Json]]) -> tuple[TemplateBook, ...]:
    found: dict[str, list[Mapping[str, Json]]] = {}
    for entry in entries:
        found.setdefault(_text(entry.get("resourceId")), []).append(entry)
    return tuple(
        TemplateBook(
            book_id,
            _text(members[0].get("resourceName")) or book_id,
            tuple(
                TemplateEntry(_uid(entry), _text(entry.get("comment")), _text(entry.get("content")))
                for entry in members
            ),
        )
        for book_id, members in found.items()
    )


def _entry(entry: Mapping[str, Json]) -> TemplateEntry:
    return TemplateEntry(_uid(entry), _text(entry.get("comment")), _text(entry.get("content")))


def _uid(entry: Mapping[str, Json]) -> str:
    uid = entry.get("uid", entry.get("id"))
    return uid if isinstance(uid, str) else "" if uid is None else str(uid)


def _record(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _records(value: Json) -> list[Mapping[str, Json]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, Sequence) else []


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


@attrs.define(eq=False)
class LeasedLookups:
    """Answers a template's lookups and keeps the leases; all of them are checked again before each further one."""

    data: TemplateData
    regex: RegexEngine
    books: WorldBookAccess | None = None
    still_selected: Callable[[], bool] = lambda: True
    proofs: list[DependencyProof] = attrs.field(factory=list)

    def __call__(self, lookup: Lookup) -> str:
        self.check()
        if lookup.helper != "getwi" or self.books is None:
            return self.data.resolver(self.regex)(lookup)
        if not lookup.arguments:
            return ""
        *book, title = lookup.arguments
        resolver = self.data.resolver(self.regex)
        answer = self.books.find(
            text_of(book[0]) if book else None,
            lambda uid, comment: resolver.matches(TemplateEntry(uid, comment, ""), title),
        )
        if answer is None:
            return ""
        self.accept(answer.proof, WORLD_BOOK_ADAPTER)
        return answer.text

    def accept(self, proof: DependencyProof, adapter_id: str) -> None:
        """Keep a lease.

        Raises:
            TemplateError: ``TEMPLATE_DEPENDENCY_UNAVAILABLE`` for a proof of something else, or one that is stale.
        """
        if proof.adapter_id != adapter_id or not proof.resource_id or not proof.check_current():
            raise TemplateError("a dependency has no valid lease", code="TEMPLATE_DEPENDENCY_UNAVAILABLE")
        self.proofs.append(proof)

    def check(self) -> None:
        """Check every lease and the selection.

        Raises:
            PolicyChanged: one no longer holds.
        """
        if not self.still_selected():
            raise PolicyChanged("the selection changed while a template was rendered")
        for proof in self.proofs:
            if not proof.check_current():
                raise PolicyChanged(f"{proof.resource_id} changed after a template read it")

    def facts(self, source_id: str, block_ids: Sequence[str], consumer: Mapping[str, Json]) -> list[dict[str, Json]]:
        """One diagnostic for each dependency and each piece of text it went into."""
        return [
            {
                "code": "TAVERN_MEMORY_DEPENDENCY_VERSION",
                "adapterId": proof.adapter_id,
                "resourceId": proof.resource_id,
                "revision": proof.revision,
                "configRevision": proof.config_revision,
                "blockId": block_id,
                "sourceId": source_id,
                **consumer,
            }
            for block_id in block_ids
            for proof in self.proofs
        ]


@attrs.define(eq=False)
class TavernTemplateRuntime:
    """Runs the templates of hand-written text; the assembler's template runtime.

    ``books`` opens the leased world books of a request (None: the active entries of its assets, which are frozen);
    ``surroundings`` gives its clock reading and seed.
    """

    engine: TemplateEngine
    regex: RegexEngine
    books: Callable[[TemplateRequest], WorldBookAccess | None] = lambda request: None
    still_selected: Callable[[TemplateRequest], bool] = lambda request: True
    surroundings: Callable[[TemplateRequest], Surroundings] = lambda request: Surroundings()
    _used: "weakref.WeakKeyDictionary[TemplateRequest, dict[str, LeasedLookups]]" = attrs.field(
        factory=weakref.WeakKeyDictionary, init=False
    )

    def render(self, context: TemplateRequest, rule: TemplateRule) -> str:
        """The text after its template ran.

        Raises:
            TemplateError: ``TEMPLATE_SESSION_REQUIRED`` outside a session, or why it failed; the request is refused.
            PolicyChanged: a lease ended.
        """
        if not context.session_id:
            raise TemplateError("a template needs a session", code="TEMPLATE_SESSION_REQUIRED", template=rule.name)
        lookups = LeasedLookups(
            data_of_assets(context.assets),
            self.regex,
            self.books(context),
            lambda: self.still_selected(context),
        )
        output = render_template(
            rule.text,
            dict(_record(context.assets.get("context"))),
            lookups,
            self.engine,
            name=rule.name or rule.id,
            surroundings=self.surroundings(context),
        )
        lookups.check()
        self._used.setdefault(context, {})[rule.id] = lookups
        return output

    def validate(self, context: TemplateRequest) -> None:
        """Check every lease of a request again, before it is handed over.

        Raises:
            PolicyChanged: one no longer holds.
        """
        for lookups in self._used.get(context, {}).values():
            lookups.check()

    def facts(self, context: TemplateRequest, rule: TemplateRule, block_ids: Sequence[str]) -> list[dict[str, Json]]:
        """The diagnostics of a rule's dependencies, for each text block it became."""
        lookups = self._used.get(context, {}).get(rule.id)
        consumer = {"consumerId": None, "consumerField": rule.id}
        return [] if lookups is None else lookups.facts(TEXT_SOURCE, block_ids, consumer)
