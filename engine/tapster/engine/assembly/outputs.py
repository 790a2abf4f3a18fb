"""Checking what a source returned.

Source: spec/assembler §6.1, §6.2.
"""

import json
from collections.abc import Mapping
from typing import Literal, NoReturn

import attrs

from tapster.engine import limits
from tapster.engine.ecma import Json, is_number, is_record, ordered_members, parse_json, stringify, utf8

from .definition import STABILITIES
from .errors import InvalidAssembly
from .ids import is_sid
from .plan import Job
from .preset import is_depth

BlockType = Literal["text", "native", "reference"]
BlockRole = Literal["system", "user", "assistant"]


@attrs.frozen
class Claim:
    """A block of another source that this one stands in for."""

    source_id: str
    block_id: str


@attrs.frozen(kw_only=True)
class Block:
    """One checked block; fields that belong to another type keep their defaults."""

    id: str
    type: BlockType
    name: str
    role: BlockRole | None = None
    text: str = ""
    message_ids: tuple[str, ...] = ()
    position_id: str | None = None
    group: str | None = None
    reference_only: bool = False
    depth: int | None = None
    order: float = 100
    stability: str | None = None
    resource_id: str | None = None
    field: str
    children: tuple[Json, ...] = ()
    claims: tuple[Claim, ...] = ()
    target_source_id: str | None = None
    literal_macros: Mapping[str, Json] | None = None
    source_id: str = ""
    block_ids: tuple[str, ...] | None = None
    honor_enabled: bool = True
    use_owner_rule: bool = False
    lock: bool = True
    owner: str | None = None
    raw: Mapping[str, Json]
    """The block as its source gave it, for the renderer."""


@attrs.frozen
class Output:
    """What one job gave."""

    blocks: tuple[Block, ...]
    macros: tuple[tuple[str, Json], ...] = ()
    diagnostics: tuple[dict[str, Json], ...] = ()


def accept_output(job: Job, raw: object) -> Output:
    """The checked, detached output of a job.

    Raises:
        InvalidAssembly: the first check that fails.
    """
    source = job.source_id
    blocks = raw.get("blocks") if isinstance(raw, Mapping) else None
    if not isinstance(raw, Mapping) or not isinstance(blocks, list | tuple) or len(blocks) > limits.SOURCE_BLOCKS:
        _fail("SOURCE_BLOCKS_INVALID", f"{source} must return at most {limits.SOURCE_BLOCKS} blocks")
    value = _round_trip(source, raw)
    seen: set[str] = set()
    checked = []
    for item in value["blocks"]:
        block = _block(source, item, seen)
        _check_declared(job, block)
        seen.add(block.id)
        checked.append(block)
    macros: Json = value.get("macros")
    diagnostics: Json = value.get("diagnostics")
    return Output(
        blocks=tuple(checked),
        macros=tuple(ordered_members(macros)) if is_record(macros) else (),
        diagnostics=tuple(item for item in diagnostics if is_record(item)) if isinstance(diagnostics, list) else (),
    )


def _fail(code: str, message: str) -> NoReturn:
    raise InvalidAssembly(message, code=code)


def _round_trip(source: str, raw: Mapping[str, Json]) -> dict[str, Json]:
    text = _json_text(source, raw)
    if len(utf8(text)) > limits.SOURCE_OUTPUT_BYTES:
        _fail("SOURCE_OUTPUT_TOO_LARGE", f"{source} returned more than {limits.SOURCE_OUTPUT_BYTES} bytes")
    value: dict[str, Json] = parse_json(text)
    return value


def _json_text(source: str, raw: Mapping[str, Json]) -> str:
    try:
        return json.dumps(raw, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        # Numbers without a JSON text, deep nesting and mappings that are no dicts: the slower writer knows them.
        pass
    try:
        return stringify(raw)
    except (TypeError, RecursionError) as error:
        raise InvalidAssembly(f"{source} returned something that is not JSON", code="SOURCE_BLOCKS_INVALID") from error


def _block(source: str, value: Json, seen: set[str]) -> Block:
    if (
        not is_record(value)
        or not isinstance(value.get("id"), str)
        or value["id"] == ""
        or value["id"] in seen
        or value.get("type") not in ("text", "native", "reference")
    ):
        _fail("SOURCE_BLOCK_INVALID", f"{source}: each block needs an id of its own and a known type")
    where = f"{source} block {value['id']}"
    kind: BlockType = value["type"]
    if kind == "text" and not isinstance(value.get("text"), str):
        _fail("BLOCK_TEXT_INVALID", f"{where}: a text block needs text")
    if kind == "native" and not _is_texts(value.get("messageIds")):
        _fail("BLOCK_NATIVE_INVALID", f"{where}: a native block needs a list of messageIds")
    if kind == "reference" and not (
        is_sid(value.get("sourceId")) and (value.get("blockIds") is None or _is_texts(value["blockIds"]))
    ):
        _fail("BLOCK_REFERENCE_INVALID", f"{where}: a reference needs a sourceId and perhaps blockIds")
    if value.get("depth") is not None and not is_depth(value["depth"]):
        _fail("BLOCK_DEPTH_INVALID", f"{where}: depth must be 0 to {limits.ASSEMBLY_DEPTH}")
    if value.get("role") is not None and value["role"] not in ("system", "user", "assistant"):
        _fail("BLOCK_ROLE_INVALID", f"{where}: role must be system, user or assistant")
    return _checked_block(value, kind)


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _checked_block(value: dict[str, Json], kind: BlockType) -> Block:
    origin = value["source"] if is_record(value.get("source")) else {}
    children: Json = value.get("children")
    order: Json = value.get("order")
    literals: Json = value.get("literalMacros")
    return Block(
        id=value["id"],
        type=kind,
        name=_text(value.get("name")) or value["id"],
        role=value.get("role"),
        text=value["text"] if kind == "text" else "",
        message_ids=tuple(value["messageIds"]) if kind == "native" else (),
        position_id=_text(value.get("positionId")),
        group=_text(value.get("group")),
        reference_only=value.get("referenceOnly") is True,
        depth=None if value.get("depth") is None else int(value["depth"]),
        order=order if is_number(order) else 100,
        stability=value["stability"] if value.get("stability") in STABILITIES else None,
        resource_id=_text(origin.get("resourceId")),
        field=_text(origin.get("field")) or value["id"],
        children=tuple(children) if isinstance(children, list) else (),
        claims=_claims(value.get("claims")) if kind == "text" else (),
        target_source_id=_text(value.get("targetSourceId")) if kind == "text" else None,
        literal_macros=literals if is_record(literals) else None,
        source_id=value["sourceId"] if kind == "reference" else "",
        block_ids=tuple(value["blockIds"]) if kind == "reference" and value.get("blockIds") is not None else None,
        honor_enabled=value.get("honorEnabled") is not False,
        use_owner_rule=value.get("useOwnerRule") is True,
        lock=value.get("lock") is not False,
        owner=_text(value.get("owner")),
        raw=value,
    )


def _claims(value: Json) -> tuple[Claim, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(Claim(str(item.get("sourceId")), str(item.get("blockId"))) for item in value if is_record(item))


def _check_declared(job: Job, block: Block) -> None:
    named = [claim.source_id for claim in block.claims]
    named += [source_id for source_id in (block.source_id, block.target_source_id) if source_id]
    for source_id in named:
        if source_id != job.source_id and source_id not in job.registration.dependencies:
            _fail(
                "SOURCE_DEPENDENCY_UNDECLARED",
                f"{job.source_id} uses {source_id} without declaring it as a dependency",
            )
