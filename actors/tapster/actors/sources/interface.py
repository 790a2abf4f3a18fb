"""What the author of a source writes.

A source is any object with these attributes; subclassing ``Source`` gives the defaults. ``resolve`` and ``parse_text``
are asynchronous, ``render_text``, ``validate_resolved`` and ``module_available`` are not. The context is deeply
read-only and the same object for all sources of a request.

Source: spec/assembler §4-§6.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeAlias

import attrs

from tapster.engine.assembly import RenderInput, RequestContext, Rule, SourceDefinition, Stability, Strategy
from tapster.engine.assembly.preset import LIFETIMES, ROLES, Lifetime, Role
from tapster.engine.ecma import Json

Output: TypeAlias = Mapping[str, Json]
"""``{"blocks": [...], "macros": {...}, "diagnostics": [...]}``, as JSON."""

SOURCE_DEADLINE_S = 20.0
"""How long a source may take to resolve unless it says otherwise."""

_CALLABLES = ("resolve", "parse_text", "render_text", "validate_resolved", "module_available")
_FIELDS = tuple(field.name for field in attrs.fields(SourceDefinition))


class Source:
    """A source with every default of the contract; override what it does.

    Leaving a method out means that the source can't do it: a source without ``resolve`` is no module, one without
    ``parse_text`` takes no hand-written text.
    """

    id: ClassVar[str]
    plugin_id: ClassVar[str]
    name: ClassVar[str]
    version: ClassVar[int] = 1
    stability: ClassVar[Stability] = "conversation"
    dependencies: ClassVar[Sequence[str]] = ()
    multiple: ClassVar[bool] = False
    roles: ClassVar[Sequence[Role]] = ROLES
    lifetimes: ClassVar[Sequence[Lifetime]] = LIFETIMES
    depth: ClassVar[bool] = True
    content_guide: ClassVar[Mapping[str, Json] | None] = None
    positions: ClassVar[Sequence[Mapping[str, Json]] | None] = None
    deadline_s: ClassVar[float] = SOURCE_DEADLINE_S

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        """The module's blocks for this request.

        Cancellation: must end within a second of it, whatever it is waiting for.
        """
        raise NotImplementedError

    async def parse_text(self, context: RequestContext, rule: Rule) -> Output:
        """The blocks of the hand-written text in ``rule.text``."""
        raise NotImplementedError

    def render_text(self, given: RenderInput) -> str:
        """The final text of one of this source's blocks; an empty one drops the block."""
        raise NotImplementedError

    def validate_resolved(self, context: RequestContext) -> None:
        """Raise when what was resolved for this context no longer holds."""
        raise NotImplementedError

    def module_available(self, asked: Mapping[str, Json]) -> bool:
        """Whether the module has something to offer to ``asked["sessionId"]``; metadata, no permission."""
        raise NotImplementedError


@attrs.frozen(eq=False)
class SourcePlugin:
    """Everything one plug-in offers; what an entry point of the group ``tapster.sources`` gives."""

    sources: Sequence[object] = ()
    strategies: Sequence[Strategy] = ()
    presets: Sequence[Mapping[str, Json]] = ()


def definition_of(source: object) -> SourceDefinition:
    """The definition of a source object; a ``SourceDefinition`` is one already."""
    if isinstance(source, SourceDefinition):
        return source
    fields: dict[str, Any] = {}
    for name in _FIELDS:
        value = getattr(source, name, None)
        if name in _CALLABLES:
            value = value if is_overridden(source, name) else None
        if value is not None:
            fields[name] = value
    for name in ("id", "plugin_id", "name"):
        fields.setdefault(name, "")
    return SourceDefinition(**fields)


def is_overridden(source: object, name: str) -> bool:
    """Whether a source object has a method of its own, not the empty one of ``Source``."""
    given: Callable[..., object] | None = getattr(type(source), name, None) or getattr(source, name, None)
    return given is not None and given is not getattr(Source, name)


def deadline_of(source: object) -> float:
    """Seconds a source may take to resolve."""
    value = getattr(source, "deadline_s", SOURCE_DEADLINE_S)
    return float(value) if isinstance(value, int | float) and value > 0 else SOURCE_DEADLINE_S
