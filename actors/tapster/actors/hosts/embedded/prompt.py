"""Named sections, contexts and variables, and the strict rendering of what they become.

Source: spec/dsh_host §3 (providers, assembly, rendering), §14.9.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, final

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import RequestError

from .waterfall import Disposer

if TYPE_CHECKING:
    from .agent import Agent

_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
SNAPSHOT_SOURCE: Final = "runtime-context"
SNAPSHOT_HEAD: Final = "Runtime context as of this step; it takes the place of every earlier one."
NO_CONTEXT: Final = "No runtime context applies any longer."


class PromptError(RequestError):
    """A text of the prompt can't be rendered, or a name is taken."""

    code = "UNKNOWN"


@attrs.frozen
class PromptContext:
    """For whom a prompt is made.

    Attributes:
        preview: nobody sends it; a listener must change nothing.
    """

    agent: "Agent"
    turn: int
    step: int
    preview: bool = False


Provider: TypeAlias = str | Callable[[PromptContext], str]


@attrs.frozen
class NamedText:
    """A section or context of an assembly; ``interpolate`` False keeps its text as it is."""

    name: str
    text: str
    interpolate: bool = True


@attrs.frozen
class Assembly:
    """What the prompt waterfall works on; a listener returns a changed copy.

    Attributes:
        sections: the system prompt, in order.
        contexts: the runtime-context message, in order.
        tools: ``{name, description, parameters}`` each.
        variables: values for ``{{name}}``.
    """

    sections: tuple[NamedText, ...] = ()
    contexts: tuple[NamedText, ...] = ()
    tools: tuple[Json, ...] = ()
    variables: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class _Registered:
    name: str
    order: float
    text: Provider
    complete: bool = False

    def named(self, context: PromptContext) -> NamedText:
        return NamedText(self.name, self.text if isinstance(self.text, str) else self.text(context))


@final
@attrs.define(eq=False)
class PromptRegistry:
    """Who contributes to every prompt of a host; providers are called once per step."""

    _sections: list[_Registered] = attrs.field(factory=list)
    _contexts: list[_Registered] = attrs.field(factory=list)
    _variables: dict[str, Provider] = attrs.field(factory=dict)

    def section(self, name: str, text: Provider, *, order: float = 0, complete: bool = False) -> Disposer:
        """Add a section; ``complete`` makes it the only one, whatever the waterfall does.

        Raises:
            PromptError: the name is taken.
        """
        return _register(self._sections, _Registered(name, order, text, complete))

    def context(self, name: str, text: Provider, *, order: float = 0) -> Disposer:
        """Add a part of the runtime-context message.

        Raises:
            PromptError: the name is taken.
        """
        return _register(self._contexts, _Registered(name, order, text))

    def variable(self, name: str, value: Provider) -> Disposer:
        """Add a value for ``{{name}}``.

        Raises:
            PromptError: the name is taken or isn't ``[a-z][a-z0-9_]*``.
        """
        if not _NAME.fullmatch(name):
            raise PromptError(f"{name!r} can't name a prompt variable", code="INVALID_NAME")
        if name in self._variables:
            raise PromptError(f"prompt variable {name!r} is registered already", code="NAME_TAKEN")
        self._variables[name] = value
        return lambda: _forget(self._variables, name)

    def collect(self, context: PromptContext, tools: Sequence[Json]) -> Assembly:
        """The assembly before the waterfall: every provider called once, in order."""
        complete = self.complete()
        sections = [item.named(context) for item in self._sections if complete is None or item is complete]
        return Assembly(
            tuple(sections),
            tuple(item.named(context) for item in self._contexts),
            tuple(tools),
            {name: value if isinstance(value, str) else value(context) for name, value in self._variables.items()},
        )

    def restore(self, before: Assembly, after: Assembly) -> Assembly:
        """The assembly after the waterfall; a complete section stands alone again."""
        return after if self.complete() is None else attrs.evolve(after, sections=before.sections)

    def complete(self) -> _Registered | None:
        """The section that stands alone, if one is registered."""
        return next((item for item in self._sections if item.complete), None)


def _register(items: list[_Registered], item: _Registered) -> Disposer:
    if any(other.name == item.name for other in items):
        raise PromptError(f"{item.name!r} is registered already", code="NAME_TAKEN")
    items.append(item)
    items.sort(key=lambda each: each.order)
    return lambda: items.remove(item) if item in items else None


def _forget(variables: dict[str, Provider], name: str) -> None:
    variables.pop(name, None)


def interpolate(item: NamedText, variables: Mapping[str, str], what: str) -> str:
    """A text with every ``{{name}}`` replaced once; values aren't looked through again.

    Raises:
        PromptError: a reference is malformed or nobody registered its name.
    """
    if not item.interpolate:
        return item.text
    parts: list[str] = []
    rest = item.text
    while (start := rest.find("{{")) >= 0 and (end := rest.find("}}", start + 2)) >= 0:
        name = rest[start + 2 : end]
        parts += (rest[:start], _value(name, variables, f'{what} "{item.name}"'))
        rest = rest[end + 2 :]
    return "".join((*parts, rest))


def _value(name: str, variables: Mapping[str, str], where: str) -> str:
    if not _NAME.fullmatch(name):
        raise PromptError(f'malformed prompt variable reference "{{{{{name}}}}}" in {where}; names are [a-z][a-z0-9_]*')
    if name not in variables:
        known = ", ".join(variables) or "none"
        raise PromptError(f'unknown prompt variable "{{{{{name}}}}}" in {where}; registered variables: {known}')
    return variables[name]


def system_text(assembly: Assembly) -> str:
    """The system prompt: the sections rendered, empty ones dropped, joined by a blank line.

    Raises:
        PromptError: a section can't be rendered.
    """
    texts = (interpolate(item, assembly.variables, "section") for item in assembly.sections)
    return "\n\n".join(text for text in texts if text)


def context_sections(assembly: Assembly) -> tuple[NamedText, ...]:
    """The contexts rendered, empty ones dropped.

    Raises:
        PromptError: a context can't be rendered.
    """
    rendered = (NamedText(item.name, interpolate(item, assembly.variables, "context")) for item in assembly.contexts)
    return tuple(item for item in rendered if item.text)


def snapshot_message(message_id: str, sections: Sequence[NamedText]) -> Json:
    """The runtime-context message."""
    texts = [SNAPSHOT_HEAD, *(item.text for item in sections)] if sections else [SNAPSHOT_HEAD, NO_CONTEXT]
    return {
        "id": message_id,
        "role": "user",
        "content": [{"type": "text", "text": "\n\n".join(texts)}],
        "source": {
            "kind": SNAPSHOT_SOURCE,
            "form": "snapshot",
            "sections": [{"name": item.name, "text": item.text} for item in sections],
        },
    }


def last_snapshot(messages: Sequence[Json]) -> list[Json] | None:
    """The sections of the newest runtime-context message of a history, or None."""
    for message in reversed(messages):
        source = message.get("source")
        if isinstance(source, dict) and source.get("form") == "snapshot":
            sections: list[Json] = source.get("sections") or []
            return sections
    return None


def due_snapshot(message_id: str, sections: Sequence[NamedText], history: Sequence[Json]) -> tuple[Json, ...]:
    """The runtime-context message of a step, none while the history's newest one still holds."""
    now = [{"name": item.name, "text": item.text} for item in sections]
    return () if now == (last_snapshot(history) or []) else (snapshot_message(message_id, sections),)
