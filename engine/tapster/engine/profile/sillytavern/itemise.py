"""What each source costs: token counts by source, and where each stretch of text came from."""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.profile.tokens import TokenCounter

from .content import Origin
from .model import Message


@attrs.frozen
class SourceSpan:
    """A stretch of one message's content, in code points from ``start`` to ``end``."""

    message: int
    start: int
    end: int
    origin: Origin
    tokens: int


@attrs.frozen
class Itemisation:
    """A request's tokens by source; the spans cover every message without gap or overlap."""

    spans: tuple[SourceSpan, ...]
    total: int

    @property
    def by_source(self) -> Mapping[str, int]:
        """Tokens by source; they add up to the total."""
        sums: dict[str, int] = {}
        for span in self.spans:
            sums[span.origin.source] = sums.get(span.origin.source, 0) + span.tokens
        return sums

    def covers(self, messages: Sequence[Message]) -> bool:
        """Whether the spans cover every content from its first to its last character, in order."""
        ends = [0] * len(messages)
        for span in self.spans:
            if span.start != ends[span.message] or span.end <= span.start:
                return False
            ends[span.message] = span.end
        return ends == [len(message.content.text) for message in messages]


def itemise(messages: Sequence[Message], counter: TokenCounter) -> Itemisation:
    """Split every message's tokens between the sources of its text.

    A span's share is what the text up to its end costs more than the text up to its start, so shares add up to the
    count of the whole even where a tokenizer joins letters across a border.
    """
    spans: list[SourceSpan] = []
    total = 0
    for index, message in enumerate(messages):
        text, counted = "", 0
        for span in message.content.spans:
            start, text = len(text), text + span.text
            tokens = counter.count(text)
            spans.append(SourceSpan(index, start, len(text), span.origin, tokens - counted))
            counted = tokens
        total += counted
    return Itemisation(tuple(spans), total)
