"""Counting tokens: the port, a labelled estimate, and which counter a model name gets.

Until a model's own tokenizer is there, an answer says which counter gave it.

Source: issue "Every format and every world-book rule", user reports "count_tokens".
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

import attrs

from tapster.engine.ecma import WHITE_SPACE
from tapster.engine.errors import RequestError

from .parts import Diagnostic

_WORD: Final = re.compile(f"[^{re.escape(WHITE_SPACE)}]+")
_CODE_POINTS_PER_TOKEN: Final = 4


class TokenCounter(Protocol):
    """Counts the tokens of one text; no overhead for messages or names."""

    @property
    def name(self) -> str:
        """What the counter is called in records and warnings."""

    def count(self, text: str) -> int:
        """Tokens of the text; 0 for the empty one."""


class NoTokenCounter(RequestError):
    """No counter is on offer."""

    code = "NO_TOKEN_COUNTER"


@attrs.frozen
class NamedCounter:
    """A counter made of a function."""

    name: str
    counting: Callable[[str], int]

    def count(self, text: str) -> int:
        """Tokens of the text."""
        return self.counting(text)


ESTIMATE: Final = NamedCounter("estimate", lambda text: math.ceil(len(text) / _CODE_POINTS_PER_TOKEN))
"""A rough guess, four code points a token; used until a real tokenizer is chosen."""

WORDS: Final = NamedCounter("words", lambda text: len(_WORD.findall(text)))
"""One token per run of non-blank characters; for tests and comparisons."""

COUNTERS: Final[Mapping[str, TokenCounter]] = {counter.name: counter for counter in (ESTIMATE, WORDS)}

_FAMILIES: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"gpt-(?:4o|4\.1|5|oss)|(?:^|/)o[134](?:-|$)|chatgpt"), "o200k"),
    (re.compile(r"gpt-(?:3\.5|4)"), "cl100k"),
    (re.compile(r"deepseek"), "deepseek"),
    (re.compile(r"qwen|qwq"), "qwen"),
    (re.compile(r"gemma|gemini"), "gemma"),
    (re.compile(r"claude"), "claude"),
    (re.compile(r"llama-?[34]"), "llama3"),
    (re.compile(r"llama"), "llama"),
    (re.compile(r"mistral|mixtral|nemo"), "mistral"),
    (re.compile(r"command"), "command"),
)


@attrs.frozen
class CounterChoice:
    """The counter a model gets; ``fallback`` when it isn't the model's own."""

    counter: TokenCounter
    fallback: bool
    warnings: tuple[Diagnostic, ...] = ()


@attrs.frozen
class TokenCount:
    """A count with the counter that gave it."""

    count: int
    choice: CounterChoice


def own_counter(model: str) -> str | None:
    """The name of the tokenizer a model was trained with, None when the name is not known."""
    name = model.lower()
    return next((counter for pattern, counter in _FAMILIES if pattern.search(name)), None)


def choose_counter(
    model: str, available: Sequence[str], registry: Mapping[str, TokenCounter] = COUNTERS
) -> CounterChoice:
    """The best counter on offer for a model; a fallback always comes with a warning.

    Args:
        available: names on offer, best first; a name without a counter in the registry is passed over.

    Raises:
        NoTokenCounter: none of the names has a counter.
    """
    usable = [name for name in available if name in registry]
    if not usable:
        raise NoTokenCounter(f"no token counter is on offer for {model!r}: install one or allow the estimate")
    own = own_counter(model)
    if own in usable:
        return CounterChoice(registry[own], fallback=False)
    used = usable[0]
    warning = Diagnostic(
        "TOKENIZER_FALLBACK",
        "warning",
        f"the model {model} has no tokenizer here: tokens are counted by {used!r}, so budgets are approximate",
        (("model", model), ("counter", used)),
    )
    return CounterChoice(registry[used], fallback=True, warnings=(warning,))


def count_tokens(
    text: str, model: str, available: Sequence[str], registry: Mapping[str, TokenCounter] = COUNTERS
) -> TokenCount:
    """Count a text for a model.

    Raises:
        NoTokenCounter: none of the names has a counter.
    """
    choice = choose_counter(model, available, registry)
    return TokenCount(choice.counter.count(text), choice)
