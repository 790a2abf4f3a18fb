"""Watch what becomes of your prompt sections: read them where the prompt is made, look for them where it is sent.

``watch(host)`` listens on the embedded host's waterfalls and changes nothing. For each request it reports how often
each section's rendered text stands in the system text that went out: normally once, zero times when a later listener
or a complete section took it out, several times when its text isn't unique.
"""

from collections.abc import Callable

import attrs

from tapster.actors.hosts.embedded import (
    Assembly,
    EmbeddedHost,
    NamedText,
    Next,
    PromptContext,
    StepContext,
    StreamCall,
    interpolate,
)
from tapster.engine.assembly import text_of
from tapster.engine.errors import TapsterError


@attrs.frozen
class SectionReport:
    """What became of one section; ``matches`` is None when its text couldn't be rendered."""

    name: str
    matches: int | None


@attrs.frozen
class PromptReport:
    """One request: which step sent it, and its sections."""

    session_id: str
    turn: int
    step: int
    sections: tuple[SectionReport, ...]

    @property
    def odd(self) -> tuple[SectionReport, ...]:
        """Sections that aren't in the request exactly once."""
        return tuple(section for section in self.sections if section.matches != 1)


Report = Callable[[PromptReport], None]


@attrs.define(eq=False)
class PromptObserver:
    """Listens at both ends; holds the last prompt of each session until its request goes out."""

    report: Report
    _seen: dict[str, tuple[int, int, Assembly]] = attrs.field(factory=dict)

    async def on_assemble(self, value: Assembly, context: PromptContext, rest: Next[Assembly, Assembly]) -> Assembly:
        """Remember the prompt as it leaves the waterfall."""
        made = await rest(value)
        self._seen[context.agent.id] = (context.turn, context.step, made)
        return made

    async def on_stream(self, call: StreamCall, context: StepContext, rest: Next[StreamCall, None]) -> None:
        """Compare with what goes out, and let it go."""
        request = call.request
        turn, step, made = self._seen.get(request.session_id, (0, 0, None))
        # A retry of the step is another request with the same prompt; auxiliary calls have none of their own.
        if made is not None and (turn, step) == (request.turn, request.step) and request.purpose is None:
            system = "\n\n".join(text_of(message) for message in request.messages if message.get("role") == "system")
            sections = tuple(SectionReport(item.name, _matches(item, made, system)) for item in made.sections)
            self.report(PromptReport(request.session_id, request.turn, request.step, sections))
        await rest(call)


def _matches(item: NamedText, made: Assembly, system: str) -> int | None:
    try:
        text = interpolate(item, made.variables, "section")
    except TapsterError:
        return None
    return system.count(text) if text else 0


def watch(host: EmbeddedHost, report: Report) -> Callable[[], None]:
    """Begin to watch a host; call the result to stop."""
    observer = PromptObserver(report)
    disposers = (
        host.hooks.assemble.add(observer.on_assemble, prepend=True),
        host.hooks.stream.add(observer.on_stream),
    )

    def stop() -> None:
        for dispose in disposers:
            dispose()

    return stop
