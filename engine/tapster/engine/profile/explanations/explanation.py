"""One prompt's explanation: in words and as data."""

from collections.abc import Mapping

import attrs

from tapster.engine.activation.explanations import Language
from tapster.engine.ecma import Json

from .words import WORDS


@attrs.frozen
class PromptExplanation:
    """Why one prompt of a preset is in or out.

    Attributes:
        reason: the word of the rule that decided.
        text: the explanation in words; ``needed`` is what the prompt would have needed, empty when it was sent.
    """

    identifier: str
    sent: bool
    reason: str
    text: str
    needed: str = ""
    data: Mapping[str, Json] = attrs.field(factory=dict)

    def to_json(self) -> Json:
        """The explanation as data."""
        return {"prompt": self.identifier, "sent": self.sent, "reason": self.reason, "text": self.text, **self.data}


def explanation(identifier: str, reason: str, language: Language, **data: Json) -> PromptExplanation:
    """The explanation of a reason; a reason without a need is one of a prompt that was sent."""
    words = WORDS[language][reason]
    sent = reason in ("sent", "in_chat", "overridden")
    return PromptExplanation(identifier, sent, reason, words.said.format_map(data), words.needed, data)
