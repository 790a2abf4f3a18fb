"""Sources that live in another process, reached through a port that the host link fills.

Source: design §7 rule 5 (``source.register``, ``source.resolve``, ``source.parse_text``).
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import attrs

from tapster.engine.assembly import RequestContext, Rule
from tapster.engine.assembly.frozen import thaw
from tapster.engine.assembly.preset import LIFETIMES, ROLES
from tapster.engine.ecma import Json
from tapster.engine.errors import SourceError

from .interface import SOURCE_DEADLINE_S, Output


class SourceCaller(Protocol):
    """Calls a source of the peer; cancelling it sends the peer a cancel."""

    async def resolve(self, source_id: str, context: Json, rule: Json) -> Json:
        """The module's output."""

    async def parse_text(self, source_id: str, context: Json, rule: Json) -> Json:
        """The output for the rule's text."""


class RemoteAnswerInvalid(SourceError):
    """A peer's source answered something that isn't an output."""

    code = "SOURCE_BLOCKS_INVALID"
    kind = "TypeError"


def context_json(context: RequestContext) -> dict[str, Json]:
    """A context as it travels to another process."""
    return {
        "sessionId": context.session_id,
        "turn": context.turn,
        "step": context.step,
        "preview": context.preview,
        "preset": context.preset.to_json(),
        "assets": thaw(context.assets),
        "nativeMessages": thaw(context.native_messages),
        "inputIds": list(context.input_ids),
    }


@attrs.frozen(eq=False)
class _Remote:
    """What every remote source has."""

    caller: SourceCaller
    id: str
    plugin_id: str
    name: str
    version: int = 1
    stability: str = "conversation"
    dependencies: Sequence[str] = ()
    multiple: bool = False
    roles: Sequence[str] = ROLES
    lifetimes: Sequence[str] = LIFETIMES
    depth: bool = True
    owns_slots: bool | None = None
    generation_requires_plugin: bool = True
    supports_module: bool = True
    text_parser_alias_for: str | None = None
    content_guide: Mapping[str, Json] | None = None
    positions: Sequence[Mapping[str, Json]] | None = None
    deadline_s: float = SOURCE_DEADLINE_S


@attrs.frozen(eq=False)
class RemoteModule(_Remote):
    """A remote source with a module."""

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        """The peer's blocks."""
        return _output(self.id, await self.caller.resolve(self.id, context_json(context), rule.to_json()))


@attrs.frozen(eq=False)
class RemoteParser(_Remote):
    """A remote source that parses hand-written text."""

    async def parse_text(self, context: RequestContext, rule: Rule) -> Output:
        """The peer's blocks of the rule's text."""
        return _output(self.id, await self.caller.parse_text(self.id, context_json(context), rule.to_json()))


@attrs.frozen(eq=False)
class RemoteBoth(RemoteModule, RemoteParser):
    """A remote source that does both."""


_FIELDS: Mapping[str, str] = {
    "id": "id",
    "pluginId": "plugin_id",
    "name": "name",
    "version": "version",
    "stability": "stability",
    "dependencies": "dependencies",
    "multiple": "multiple",
    "roles": "roles",
    "lifetimes": "lifetimes",
    "depth": "depth",
    "ownsSlots": "owns_slots",
    "generationRequiresPlugin": "generation_requires_plugin",
    "supportsModule": "supports_module",
    "textParserAliasFor": "text_parser_alias_for",
    "contentGuide": "content_guide",
    "positions": "positions",
}


def remote_source(caller: SourceCaller, descriptor: Mapping[str, Json]) -> RemoteModule | RemoteParser:
    """A source from the descriptor a peer registers; registering it checks the rest.

    Args:
        caller: calls the peer.
        descriptor: the fields of a registration, and ``acceptsText`` and ``resolves`` for what it can do.
    """
    fields = {ours: descriptor[theirs] for theirs, ours in _FIELDS.items() if theirs in descriptor}
    for name in ("id", "plugin_id", "name"):
        fields.setdefault(name, "")
    resolves = descriptor.get("resolves", True) is True
    if descriptor.get("acceptsText") is not True:
        return RemoteModule(caller, **fields)
    return RemoteBoth(caller, **fields) if resolves else RemoteParser(caller, **fields)


def _output(source_id: str, value: Json) -> Output:
    if not isinstance(value, dict):
        raise RemoteAnswerInvalid(f"{source_id} answered something that isn't an output")
    return value
