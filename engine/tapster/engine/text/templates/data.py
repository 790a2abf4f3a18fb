"""Answers to lookups from frozen resources: active world-book entries, preset prompts, the bound card.

Source: spec/text_and_mvu B2.
"""

from collections.abc import Iterator

import attrs

from tapster.engine.ecma import number_text
from tapster.engine.text.ports import RegexEngine

from .engine import Lookup, RegexArgument
from .errors import TemplateError


@attrs.frozen
class TemplateEntry:
    """A world-book entry a template may read."""

    uid: str
    comment: str
    content: str


@attrs.frozen
class TemplateBook:
    """A world book with the entries that are active."""

    id: str
    name: str
    entries: tuple[TemplateEntry, ...] = ()


@attrs.frozen
class TemplatePrompt:
    """A prompt of the bound preset, raw."""

    identifier: str
    name: str
    content: str


@attrs.frozen
class TemplateData:
    """Everything a template's helpers can reach."""

    books: tuple[TemplateBook, ...] = ()
    prompts: tuple[TemplatePrompt, ...] = ()
    character_id: str = ""
    character_name: str = ""
    character_description: str = ""

    def resolver(self, regex: RegexEngine) -> "DataResolver":
        return DataResolver(self, regex)


@attrs.frozen
class DataResolver:
    """Answers lookups from ``TemplateData``; what is not there is empty text."""

    data: TemplateData
    regex: RegexEngine

    def __call__(self, lookup: Lookup) -> str:
        if lookup.helper == "getwi":
            return self._entry(lookup)
        name = text_of(lookup.arguments[0]) if lookup.arguments else None
        if lookup.helper == "getpreset":
            return next((prompt.content for prompt in self._prompts(name)), "")
        bound = name in (None, "", self.data.character_name, self.data.character_id)
        return self.data.character_description if bound else ""

    def _prompts(self, name: str | None) -> Iterator[TemplatePrompt]:
        yield from (prompt for prompt in self.data.prompts if prompt.identifier == name)
        yield from (prompt for prompt in self.data.prompts if prompt.name == name)

    def _entry(self, lookup: Lookup) -> str:
        if not lookup.arguments:
            return ""
        *book, title = lookup.arguments
        wanted = text_of(book[0]) if book else None
        for candidate in self.data.books:
            if wanted is None or wanted in (candidate.id, candidate.name):
                for entry in candidate.entries:
                    if self.matches(entry, title):
                        return entry.content
        return ""

    def matches(self, entry: TemplateEntry, title: object) -> bool:
        """Whether a title (uid, comment or pattern) means this entry."""
        if isinstance(title, RegexArgument):
            return any(
                self.regex.find(title.pattern, title.flags, text, owner="getwi of a template") is not None
                for text in (entry.comment, entry.uid)
            )
        return text_of(title) in (entry.uid, entry.comment)


def text_of(value: object) -> str:
    """A plain argument as text.

    Raises:
        TemplateError: a pattern where a name belongs.
    """
    if isinstance(value, RegexArgument):
        raise TemplateError("a book or prompt is named by text, not by a pattern", code="TEMPLATE_DEPENDENCY_INVALID")
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: ""}[value]
    return number_text(value) if isinstance(value, int | float) else str(value)
