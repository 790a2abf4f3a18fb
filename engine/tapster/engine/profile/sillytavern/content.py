"""Text that knows where each of its characters came from."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import attrs

from tapster.engine.ecma import WHITE_SPACE


@attrs.frozen
class Origin:
    """Where a stretch of text came from.

    ``source`` is the itemisation's label: ``prompt:<identifier>``, ``world_info``, ``authors_note``, ``card:<field>``,
    ``persona``, ``injection:<source>`` or ``chat``. ``item`` names the single entry or message behind it.
    """

    source: str
    item: str | None = None

    @property
    def label(self) -> str:
        """How facts and comparisons call it: the entry, ``message:<n>``, or the source."""
        if self.item is None:
            return self.source
        return f"message:{self.item}" if self.source == CHAT else self.item


CHAT: Final = "chat"
WORLD_INFO: Final = "world_info"
AUTHORS_NOTE: Final = "authors_note"
PERSONA: Final = "persona"


def prompt_origin(identifier: str) -> Origin:
    """The origin of text from the preset."""
    return Origin(f"prompt:{identifier}")


def card_origin(field: str) -> Origin:
    """The origin of text from the card."""
    return Origin(f"card:{field}")


@attrs.frozen
class Span:
    """A stretch of text from one origin; ``literal`` text has no macros in it."""

    text: str
    origin: Origin
    literal: bool = False


@attrs.frozen
class Content:
    """A text as a sequence of spans without gap or overlap."""

    spans: tuple[Span, ...] = ()

    @classmethod
    def of(cls, text: str, origin: Origin, *, literal: bool = False) -> "Content":
        """A text from one origin."""
        return cls((Span(text, origin, literal),) if text else ())

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(span.text for span in self.spans)

    def __bool__(self) -> bool:
        return bool(self.spans)

    def __add__(self, other: "Content") -> "Content":
        return Content(self.spans + other.spans)

    def expanded(self, expand: Callable[[str], str]) -> "Content":
        """Each span with its macros replaced; literal spans stay."""
        return self._mapped(lambda span: span.text if span.literal else expand(span.text))

    def trimmed(self) -> "Content":
        """Without white space at both ends."""
        spans = list(self.spans)
        while spans and not (text := spans[0].text.lstrip(WHITE_SPACE)):
            del spans[0]
        if spans:
            spans[0] = attrs.evolve(spans[0], text=text)
        while spans and not (text := spans[-1].text.rstrip(WHITE_SPACE)):
            del spans[-1]
        if spans:
            spans[-1] = attrs.evolve(spans[-1], text=text)
        return Content(tuple(spans))

    def without(self, character: str) -> "Content":
        """With every occurrence of a character taken out."""
        return self._mapped(lambda span: span.text.replace(character, ""))

    def split_at(self, character: str) -> "tuple[Content, Content] | None":
        """What stands before and after the first occurrence of a character, or None."""
        for index, span in enumerate(self.spans):
            head, found, tail = span.text.partition(character)
            if found:
                before, after = attrs.evolve(span, text=head), attrs.evolve(span, text=tail)
                return (
                    Content((*self.spans[:index], before))._tidy(),
                    Content((after, *self.spans[index + 1 :]))._tidy(),
                )
        return None

    def _mapped(self, change: Callable[[Span], str]) -> "Content":
        return Content(tuple(attrs.evolve(span, text=change(span)) for span in self.spans))._tidy()

    def _tidy(self) -> "Content":
        return Content(tuple(span for span in self.spans if span.text))


def join(separator: str, contents: Iterable[Content]) -> Content:
    """Contents joined; a separator belongs to what follows it. Empty contents count, as in a plain join."""
    spans: list[Span] = []
    for index, content in enumerate(contents):
        if index and separator:
            origin = content.spans[0].origin if content.spans else (spans[-1].origin if spans else Origin("layout"))
            spans.append(Span(separator, origin, literal=True))
        spans.extend(content.spans)
    return Content(tuple(spans))


def join_filled(separator: str, contents: Iterable[Content]) -> Content:
    """Contents joined, the empty ones left out."""
    return join(separator, [content for content in contents if content])


def covers(contents: Sequence[Content], texts: Sequence[str]) -> bool:
    """Whether the spans give exactly these texts, without gap or overlap."""
    return [content.text for content in contents] == list(texts)
