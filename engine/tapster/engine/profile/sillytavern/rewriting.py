"""Regex scripts over what goes into a request: the chat's messages and placed world info, with what each script did."""

from collections.abc import Iterable, Sequence

import attrs

from tapster.engine.ecma import Json
from tapster.engine.text.ports import RegexEngine
from tapster.engine.text.regex_scripts import AI, USER, WORLD_INFO, RegexScript, RegexUse, run_regex_scripts

from .macros import MacroSession
from .model import ChatMessage, GenerationType


@attrs.frozen
class Fact:
    """One recorded fact about an entry, message or script; ``label`` names what it is about."""

    label: str
    reason: str
    details: tuple[tuple[str, Json], ...] = ()

    def to_json(self) -> Json:
        """The fact as data."""
        return {"reason": self.reason, **dict(self.details)}


def message_label(message: ChatMessage, index: int) -> str:
    """The label of a chat message in facts."""
    return f"message:{index if message.label is None else message.label}"


@attrs.define(eq=False)
class Rewriter:
    """Runs scripts on prompt texts and keeps what they did; without scripts or an engine texts stay."""

    scripts: Sequence[RegexScript]
    engine: RegexEngine | None
    macros: MacroSession
    facts: list[Fact] = attrs.field(factory=list)

    def run(self, text: str, label: str, placement: int, depth: int | None, *, hidden: bool = False) -> str:
        """The text after the scripts of its place."""
        if self.engine is None or not self.scripts:
            return text
        use = RegexUse(placement, is_prompt=True, depth=depth, hidden=hidden)
        done = run_regex_scripts(text, self.scripts, use, self.macros.context, self.engine)
        self.macros.context = attrs.evolve(
            self.macros.context, variables=done.variables, global_variables=done.global_variables
        )
        for report in done.applied:
            self.facts.append(Fact(label, report.reason, (("script", report.script), ("count", report.count))))
        for report in done.skipped:
            self.facts.append(Fact(report.script, report.reason, (("text", label), ("message", report.message))))
        return done.text

    def chat(self, messages: Iterable[ChatMessage], generation: GenerationType) -> tuple[ChatMessage, ...]:
        """The chat with its visible messages rewritten; depth counts them from the newest, 0 first."""
        listed = list(messages)
        visible = [index for index, message in enumerate(listed) if not message.hidden]
        newest = len(visible) - (2 if generation == "continue" else 1)
        for position, index in enumerate(visible):
            message = listed[index]
            placement = USER if message.role == "user" else AI
            text = self.run(message.text, message_label(message, index), placement, newest - position)
            listed[index] = attrs.evolve(message, text=text)
        return tuple(listed)

    def lore(self, text: str, entry: str, depth: int | None) -> str:
        """A world-info text on its way into the prompt; only entries among the messages have a depth."""
        return self.run(text, entry, WORLD_INFO, depth)
