"""What a source says of itself, and the checks at registration.

Source: spec/assembler §4.1, §10.3.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NoReturn

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, is_safe_integer

from .errors import InvalidAssembly
from .ids import is_sid
from .preset import LIFETIMES, ROLES, Lifetime, Role

STABILITIES = ("asset", "conversation", "evaluation", "assembly", "snapshot")
Stability = Literal["asset", "conversation", "evaluation", "assembly", "snapshot"]
GUIDE_FIELDS = ("contains", "origin", "editable", "editAt")
_MATCH_KEYS = frozenset({"field", "group", "depth"})
Names = tuple[str, str]
"""A text in Chinese and in English."""


@attrs.frozen
class ResourceAnchor:
    """The other source's content that a position stands beside."""

    source_id: str
    side: Literal["before", "after"]
    fields: tuple[str, ...] | None = None

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {"sourceId": self.source_id}
        if self.fields is not None:
            value["fields"] = list(self.fields)
        return {**value, "side": self.side}


@attrs.frozen
class Position:
    """A place of a source's blocks that users and strategies may name."""

    id: str
    name: Names
    match: Mapping[str, Json] | None = None
    anchor: ResourceAnchor | None = None
    macros: tuple[str, ...] | None = None
    configurable: bool | None = None
    note: Names | None = None

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {"id": self.id, "name": list(self.name)}
        if self.match is not None:
            value["match"] = dict(self.match)
        if self.anchor is not None:
            value["anchor"] = self.anchor.to_json()
        if self.macros is not None:
            value["macros"] = list(self.macros)
        if self.configurable is not None:
            value["configurable"] = self.configurable
        if self.note is not None:
            value["note"] = list(self.note)
        return value


CONTENT_POSITION = Position("content", ("内容", "Content"))
"""The one position of a source that declares none."""


@attrs.frozen(kw_only=True, eq=False)
class SourceDefinition:
    """One source as its plug-in registers it; ``register`` checks it.

    The callables are opaque here: the caller decides whether they are synchronous or asynchronous.

    Attributes:
        resolve: gives the module's blocks: ``(context, rule) -> output``.
        parse_text: gives the blocks of hand-written text: ``(context, rule) -> output``.
        render_text: gives the final text of a block, synchronously; see ``RenderInput``.
        validate_resolved: raises when what was resolved no longer holds, synchronously.
        module_available: tells whether the module has anything to offer, synchronously; metadata only.
        positions: declared positions as JSON.
        content_guide: what users are told about the content, as JSON.
    """

    id: str
    plugin_id: str
    name: str
    resolve: Callable[..., object] | None = None
    parse_text: Callable[..., object] | None = None
    version: int = 1
    stability: Stability = "conversation"
    dependencies: Sequence[str] = ()
    multiple: bool = False
    roles: Sequence[Role] = ROLES
    lifetimes: Sequence[Lifetime] = LIFETIMES
    depth: bool = True
    owns_slots: bool | None = None
    generation_requires_plugin: bool = True
    supports_module: bool = True
    module_available: Callable[..., object] | None = None
    render_text: Callable[..., object] | None = None
    validate_resolved: Callable[..., object] | None = None
    text_parser_alias_for: str | None = None
    content_guide: Mapping[str, Json] | None = None
    positions: Sequence[Mapping[str, Json]] | None = None


@attrs.frozen(eq=False)
class Registration:
    """A checked source, as requests capture it."""

    definition: SourceDefinition
    positions: tuple[Position, ...]
    dependencies: frozenset[str]
    owns_slots: bool

    @property
    def id(self) -> str:
        return self.definition.id

    @property
    def supports_module(self) -> bool:
        return self.definition.supports_module and self.definition.resolve is not None

    def descriptor(self) -> dict[str, Json]:
        """What lists and results tell of the source: no callables, detached from it."""
        source = self.definition
        value: dict[str, Json] = {
            "id": source.id,
            "pluginId": source.plugin_id,
            "name": source.name,
            "version": source.version,
        }
        if source.positions is not None:
            value["positions"] = [position.to_json() for position in self.positions]
        value |= {
            "stability": source.stability,
            "dependencies": list(source.dependencies),
            "multiple": source.multiple is True,
            "roles": list(source.roles),
            "lifetimes": list(source.lifetimes),
            "depth": source.depth is not False,
            "ownsSlots": self.owns_slots,
            "generationRequiresPlugin": source.generation_requires_plugin is not False,
            "recordedContentSurvivesRemoval": True,
        }
        if source.text_parser_alias_for is not None:
            value["textParserAliasFor"] = source.text_parser_alias_for
        if source.content_guide is not None:
            value["contentGuide"] = {field: list(source.content_guide[field]) for field in GUIDE_FIELDS}
        value["acceptsText"] = source.parse_text is not None
        value["supportsModule"] = self.supports_module
        return value


def check_definition(source: SourceDefinition, is_known: Callable[[str], bool]) -> Registration:
    """A source ready to be registered.

    Args:
        source: what the plug-in says.
        is_known: whether an id is already registered.

    Raises:
        InvalidAssembly: the first check that fails, in the contract's order.
    """
    _check_identity(source)
    if is_known(source.id):
        _fail("SOURCE_DUPLICATE", f"the source {source.id} is already registered")
    positions = _positions(source.positions)
    if not _is_list(source.dependencies) or not all(is_sid(item) for item in source.dependencies):
        _fail("SOURCE_DESCRIPTOR_INVALID", f"{source.id}: dependencies must be source ids")
    if source.stability not in STABILITIES:
        _fail("SOURCE_DESCRIPTOR_INVALID", f"{source.id}: stability must be one of {', '.join(STABILITIES)}")
    _check_capabilities(source)
    _check_callable(source, "validate_resolved", "SOURCE_CALLABLE_INVALID")
    alias = source.text_parser_alias_for
    if alias is not None and (not is_sid(alias) or alias == source.id):
        _fail("SOURCE_ALIAS_INVALID", f"{source.id}: textParserAliasFor must name another source")
    _check_guide(source)
    _check_callable(source, "parse_text", "SOURCE_CALLABLE_INVALID")
    _check_callable(source, "render_text", "SOURCE_CALLABLE_INVALID")
    if not isinstance(source.supports_module, bool):
        _fail("SOURCE_SUPPORTS_MODULE_INVALID", f"{source.id}: supportsModule must be true or false")
    if source.owns_slots is not None and not isinstance(source.owns_slots, bool):
        _fail("SOURCE_OWNS_SLOTS_INVALID", f"{source.id}: ownsSlots must be true or false")
    _check_callable(source, "module_available", "SOURCE_AVAILABILITY_INVALID")
    owns_slots = source.id == "preset" if source.owns_slots is None else source.owns_slots
    return Registration(source, positions, frozenset(source.dependencies), owns_slots)


def _fail(code: str, message: str) -> NoReturn:
    raise InvalidAssembly(message, code=code)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _check_identity(source: SourceDefinition) -> None:
    has_name = isinstance(source.name, str) and source.name != ""
    if not (is_sid(source.id) and is_sid(source.plugin_id) and has_name) or not (
        callable(source.resolve) or callable(source.parse_text)
    ):
        _fail("SOURCE_IDENTITY_INVALID", "a source needs id, pluginId, name and resolve or parseText")


def _check_capabilities(source: SourceDefinition) -> None:
    valid = (
        is_safe_integer(source.version)
        and source.version >= 1
        and _is_subset(source.roles, ROLES)
        and _is_subset(source.lifetimes, LIFETIMES)
    )
    if not valid:
        _fail("SOURCE_CAPABILITIES_INVALID", f"{source.id}: version, roles or lifetimes are not valid")


def _is_subset(values: object, allowed: Sequence[str]) -> bool:
    return isinstance(values, list | tuple) and len(values) > 0 and all(value in allowed for value in values)


def _check_callable(source: SourceDefinition, field: str, code: str) -> None:
    value = getattr(source, field)
    if value is not None and not callable(value):
        _fail(code, f"{source.id}: {field} must be callable")


def _check_guide(source: SourceDefinition) -> None:
    guide = source.content_guide
    if guide is None:
        return
    if not isinstance(guide, Mapping) or not all(_is_names(guide.get(field)) for field in GUIDE_FIELDS):
        _fail(
            "SOURCE_GUIDE_INVALID", f"{source.id}: the content guide needs {', '.join(GUIDE_FIELDS)} in two languages"
        )


def _is_names(value: object) -> bool:
    return _is_list(value) and len(value) == 2 and all(isinstance(item, str) and item for item in value)  # type: ignore[arg-type,attr-defined]


def _positions(values: object) -> tuple[Position, ...]:
    if values is None:
        return (CONTENT_POSITION,)
    if not isinstance(values, list | tuple) or not 1 <= len(values) <= limits.SOURCE_POSITIONS:
        _fail("SOURCE_POSITIONS_INVALID", f"a source declares 1 to {limits.SOURCE_POSITIONS} positions")
    found: dict[str, Position] = {}
    for value in values:
        position = _position(value)
        if position.id in found:
            _fail("SOURCE_POSITION_INVALID", f"two positions have the id {position.id}")
        found[position.id] = position
    return tuple(found.values())


def _position(value: Json) -> Position:
    if not isinstance(value, Mapping) or not is_sid(value.get("id")) or not _is_names(value.get("name")):
        _fail("SOURCE_POSITION_INVALID", "a position needs an id and a name in two languages")
    where = f"position {value['id']}"
    match, macros = value.get("match"), value.get("macros")
    if match is not None and not _is_match(match):
        _fail("SOURCE_POSITION_MATCH_INVALID", f"{where}: match has field, group or depth only")
    if "configurable" in value and not isinstance(value["configurable"], bool):
        _fail("SOURCE_POSITION_CAPABILITY_INVALID", f"{where}: configurable must be true or false")
    if "note" in value and not _is_names(value["note"]):
        _fail("SOURCE_POSITION_NOTE_INVALID", f"{where}: note must be a text in two languages")
    anchor = None if value.get("anchor") is None else _anchor(value["anchor"], where)
    if macros is not None and not (_is_list(macros) and all(isinstance(name, str) and name for name in macros)):
        _fail("SOURCE_POSITION_MACROS_INVALID", f"{where}: macros must be a list of names")
    return Position(
        id=value["id"],
        name=(value["name"][0], value["name"][1]),
        match=None if match is None else dict(match),
        anchor=anchor,
        macros=None if macros is None else tuple(macros),
        configurable=value.get("configurable"),
        note=(value["note"][0], value["note"][1]) if "note" in value else None,
    )


def _is_match(value: object) -> bool:
    if not isinstance(value, Mapping) or not set(value) <= _MATCH_KEYS:
        return False
    texts = all(isinstance(value[key], str) for key in ("field", "group") if key in value)
    return texts and ("depth" not in value or isinstance(value["depth"], bool))


def _anchor(value: Json, where: str) -> ResourceAnchor:
    fields = value.get("fields") if isinstance(value, Mapping) else None
    valid = (
        isinstance(value, Mapping)
        and is_sid(value.get("sourceId"))
        and value.get("side") in ("before", "after")
        and (fields is None or (_is_list(fields) and all(isinstance(field, str) for field in fields)))
    )
    if not valid:
        _fail("SOURCE_ANCHOR_INVALID", f"{where}: an anchor needs sourceId, side and perhaps fields")
    return ResourceAnchor(value["sourceId"], value["side"], None if fields is None else tuple(fields))
