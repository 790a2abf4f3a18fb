"""The settings of a scan and everything it is given.

Source: the vectors' README, "st_world_info.jsonl"; docs/activation.md lists the quirks.
"""

import math
from collections.abc import Mapping
from typing import Literal

import attrs

from .compiled import CompiledScanBook
from .entry import MatchSource, ScanEntry
from .ports import ScanVariables
from .timed import TimedState

Quirks = Literal["exact", "repaired"]
Strategy = Literal["evenly", "character_first", "global_first"]
BookPlace = Literal["global", "character", "chat", "persona"]


@attrs.frozen
class ScanSettings:
    """SillyTavern's world-info settings.

    Attributes:
        depth: how many of the newest messages are scanned.
        budget_percent: share of the context; ``budget_cap`` bounds it in tokens, 0 is off.
        budget_tokens: a fixed budget that replaces both; infinite is no limit.
        max_recursion_steps: scan passes in all, 0 is no limit.
    """

    depth: int = 2
    budget_percent: float = 25
    budget_cap: int = 0
    budget_tokens: float | None = None
    min_activations: int = 0
    min_activations_depth_max: int = 0
    recursive: bool = False
    case_sensitive: bool = False
    match_whole_words: bool = False
    use_group_scoring: bool = False
    strategy: Strategy = "character_first"
    max_recursion_steps: int = 0
    quirks: Quirks = "repaired"

    def budget(self, max_context: int) -> float:
        """The token budget of a scan."""
        if self.budget_tokens is not None:
            return self.budget_tokens
        share = math.floor(self.budget_percent * max_context / 100 + 0.5) or 1
        return min(share, self.budget_cap) if self.budget_cap > 0 else share


@attrs.frozen(eq=False)
class BookUse:
    """A compiled book and where it comes from; ``copy_of`` names the loaded book a card's copy repeats."""

    place: BookPlace
    compiled: CompiledScanBook
    copy_of: str | None = None


@attrs.frozen
class Injection:
    """A text that isn't part of the chat but is searched; ``label`` says whose it is."""

    label: str
    text: str


@attrs.frozen
class ScanMessage:
    """One message that is scanned; ``name`` is None where speaker names don't count."""

    text: str
    name: str | None = None


@attrs.frozen(eq=False)
class ScanInput:
    """One scan's input.

    Attributes:
        messages: what is scanned of the chat, oldest first; hidden messages are left out.
        sources: the extra texts by name, macros already expanded.
        trigger: the kind of generation.
        character_file: the card's file name without extension, for filters.
        character_tags: the card's tag ids; None when tags aren't known, so that tag filters don't apply.
        forced: entries activated from outside; they replace the entry of the same name.
    """

    books: tuple[BookUse, ...]
    messages: tuple[ScanMessage, ...] = ()
    settings: ScanSettings = attrs.field(factory=ScanSettings)
    max_context: int = 4096
    sources: Mapping[MatchSource, str] = attrs.field(factory=dict)
    injections: tuple[Injection, ...] = ()
    trigger: str = "normal"
    character_file: str = ""
    character_tags: frozenset[str] | None = None
    forced: tuple[ScanEntry, ...] = ()
    timed: TimedState = attrs.field(factory=TimedState)
    variables: ScanVariables = attrs.field(factory=ScanVariables)
    dry_run: bool = False
