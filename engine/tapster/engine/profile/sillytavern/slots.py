"""The request under construction: named collections of messages at their places, within a token budget.

A place is the index of its prompt in the prompt collection; what has no place goes behind everything placed so far.
"""

from collections.abc import Iterable
from typing import Literal

import attrs

from tapster.engine.errors import RequestError
from tapster.engine.profile.tokens import TokenCounter

from .model import Message


class MandatoryPromptsExceedContext(RequestError):
    """The fixed prompts alone don't fit the context; ``details`` names what didn't fit and the sizes."""

    code = "MANDATORY_PROMPTS_EXCEED_CONTEXT"
    kind = "Error"
    status = 413


@attrs.frozen
class Item:
    """A message at its place."""

    collection: str
    message: Message
    tokens: int


@attrs.define
class Collection:
    """Messages that share a place."""

    identifier: str
    messages: list[Message] = attrs.field(factory=list)


@attrs.define(eq=False)
class Slots:
    """Collections by place, and the tokens that are left."""

    counter: TokenCounter
    budget: int
    places: list[Collection | None] = attrs.field(factory=list)

    def tokens(self, *messages: Message) -> int:
        """Tokens of the messages' contents."""
        return sum(self.counter.count(message.content.text) for message in messages)

    def reserve(self, *messages: Message) -> None:
        """Keep room for messages that come later."""
        self.budget -= self.tokens(*messages)

    def free(self, *messages: Message) -> None:
        """Give reserved room back."""
        self.budget += self.tokens(*messages)

    def can_afford(self, *messages: Message) -> bool:
        """Whether the messages fit."""
        return self.tokens(*messages) <= self.budget

    def add(self, collection: Collection, place: int | None = None) -> None:
        """Put a collection at its place, or behind everything when it has none.

        Raises:
            MandatoryPromptsExceedContext: it doesn't fit.
        """
        self._pay(collection.identifier, collection.messages)
        if place is None or place < 0:
            self.places.append(collection)
            return
        while len(self.places) <= place:
            self.places.append(None)
        self.places[place] = collection

    def insert(self, message: Message, collection: str, at: Literal["start", "end"] = "end") -> None:
        """Put a message into a collection that is in place; an empty one is left out.

        Raises:
            MandatoryPromptsExceedContext: it doesn't fit.
        """
        target = self.find(collection)
        if target is None or not message.content:
            return
        self._pay(message.identifier or collection, [message])
        target.messages.insert(0 if at == "start" else len(target.messages), message)

    def find(self, identifier: str) -> Collection | None:
        """The collection of that identifier."""
        return next((place for place in self.places if place is not None and place.identifier == identifier), None)

    def items(self) -> tuple[Item, ...]:
        """Every message in reading order, empty ones included."""
        return tuple(
            Item(place.identifier, message, self.tokens(message))
            for place in self.places
            if place is not None
            for message in place.messages
        )

    def _pay(self, identifier: str, messages: Iterable[Message]) -> None:
        needed = self.tokens(*messages)
        if needed > self.budget:
            raise MandatoryPromptsExceedContext(
                f"the prompt {identifier!r} needs {needed} tokens, only {self.budget} are left for fixed prompts: "
                "raise the context size or switch prompts off",
                details={"prompt": identifier, "tokens": needed, "left": self.budget},
            )
        self.budget -= needed
