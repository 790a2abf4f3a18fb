"""Random but valid assembly requests, and small helpers to build one by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from hypothesis import strategies as st

from tapster.engine.assembly import (
    AssemblyResult,
    Carried,
    SourceDefinition,
    SourceRegistry,
    assemble_request,
    freeze_context,
    normalise_preset,
    register_host_sources,
)

Json = Any
HEAD = {"format": "dsh-tavern-request-assembly", "version": 1, "name": "Test"}
TEXTS = st.text(alphabet="abé😀 .\n", min_size=1, max_size=8)


def text(block_id: str, value: str, **more: Json) -> dict[str, Json]:
    return {"type": "text", "id": block_id, "text": value, **more}


def reference(block_id: str, source_id: str, **more: Json) -> dict[str, Json]:
    return {"type": "reference", "id": block_id, "sourceId": source_id, **more}


def message(message_id: str, role: str, value: str = "…", kind: str | None = None) -> dict[str, Json]:
    kinds = {"user": "user", "assistant": "model", "system": "system-prompt", "tool": "tool"}
    content = [{"type": "text", "text": value}]
    return {"id": message_id, "role": role, "content": content, "source": {"kind": kind or kinds[role]}}


def tool_pair(number: int, calls: int) -> list[dict[str, Json]]:
    """An assistant message that calls tools, and one result for each call."""
    ids = [f"c{number}-{index}" for index in range(calls)]
    blocks = [{"type": "tool-call", "id": call, "name": "probe", "arguments": {}} for call in ids]
    opening = {**message(f"a{number}", "assistant"), "content": blocks}
    return [opening, *({**message(f"t{call}", "tool"), "toolCallId": call} for call in ids)]


@attrs.frozen(eq=False)
class Case:
    """One request as plain data."""

    preset: dict[str, Json]
    sources: tuple[dict[str, Json], ...]
    native: tuple[dict[str, Json], ...]
    input_ids: tuple[str, ...]

    def registry(self) -> SourceRegistry:
        registry = SourceRegistry()
        register_host_sources(registry)
        for source in self.sources:
            registry.register(plain_source(**source))
        return registry

    def assemble(self, carried: Carried | None = None, *, preview: bool = False) -> AssemblyResult:
        context = freeze_context(normalise_preset(self.preset), self.native, input_ids=self.input_ids, preview=preview)
        return assemble_request(self.registry(), context, carried)


def plain_source(
    source_id: str, blocks: Sequence[Json], dependencies: Sequence[str] = (), macros: Mapping[str, str] | None = None
) -> SourceDefinition:
    return SourceDefinition(
        id=source_id,
        plugin_id="test.plugin",
        name=source_id,
        dependencies=dependencies,
        resolve=lambda context, rule: {"blocks": blocks, "macros": macros or {}},
    )


@st.composite
def native_histories(draw: st.DrawFn) -> tuple[dict[str, Json], ...]:
    messages: list[dict[str, Json]] = []
    for number in range(draw(st.integers(0, 6))):
        kind = draw(st.sampled_from(["user", "assistant", "tools"]))
        messages += tool_pair(number, draw(st.integers(1, 3))) if kind == "tools" else [message(f"m{number}", kind)]
    return tuple(messages)


@st.composite
def cases(draw: st.DrawFn, placement: str | None = None) -> Case:
    """Sources that refer to, claim and quote only those before them, so there are no circles."""
    count = draw(st.integers(1, 4))
    sources = []
    macros: list[str] = []
    for number in range(count):
        earlier = [f"s{index}" for index in range(number)]
        blocks: list[Json] = [_block(draw, f"b{index}", earlier, macros) for index in range(draw(st.integers(0, 4)))]
        names = {f"m{number}-{block['id']}": block["id"] for block in blocks if block["type"] == "text"}
        macros += names
        sources.append({"source_id": f"s{number}", "blocks": blocks, "dependencies": earlier, "macros": names})
    kinds = draw(st.permutations([f"s{number}" for number in range(count)]))
    listed = [kind for kind in kinds if draw(st.integers(0, 4))]
    rules = [{"id": kind, "kind": kind, "role": draw(_ROLES), "depth": draw(_DEPTHS)} for kind in listed]
    place = draw(st.integers(0, len(rules)))
    rules[place:place] = [{"id": "history", "kind": "history"}, {"id": "input", "kind": "input"}]
    native = draw(native_histories())
    users = [each["id"] for each in native if each["role"] == "user"]
    given = (users[-1],) if users and native[-1]["id"] == users[-1] and draw(st.booleans()) else ()
    where = placement or draw(st.sampled_from(["modules", "st"]))
    return Case({**HEAD, "placement": where, "rules": rules}, tuple(sources), native, given)


_ROLES = st.sampled_from(["preserve", "preserve", "system", "user", "assistant"])
_DEPTHS = st.sampled_from([None, None, None, 0, 1, 2, 7])


def _block(draw: st.DrawFn, block_id: str, earlier: Sequence[str], macros: Sequence[str]) -> dict[str, Json]:
    kind = draw(st.sampled_from(["text", "text", "reference", "macro", "claim"])) if earlier else "text"
    more: dict[str, Json] = {"depth": draw(_DEPTHS), "order": draw(st.sampled_from([10, 100]))}
    if draw(st.integers(0, 4)) == 0:
        more["referenceOnly"] = True
    if kind == "reference":
        wanted = draw(st.sampled_from([None, ["b0"], ["b1", "b2"]]))
        return reference(block_id, draw(st.sampled_from(earlier)), blockIds=wanted, useOwnerRule=draw(st.booleans()))
    if kind == "macro" and macros:
        return text(block_id, "{{ " + draw(st.sampled_from(macros)) + " }}" + draw(TEXTS), **more)
    if kind == "claim":
        more["claims"] = [{"sourceId": draw(st.sampled_from(earlier)), "blockId": "b0"}]
    return text(block_id, draw(TEXTS), **more)


@st.composite
def layouts(draw: st.DrawFn, sources: Sequence[str]) -> dict[str, Json]:
    """A layout over sources, some of which may not be there."""
    names = st.sampled_from([*sources, "ghost", "history"])
    settings: dict[str, Json] = {}
    for name in draw(st.lists(names, max_size=3)):
        anchor: Json = draw(st.sampled_from([None, "end", "beside"]))
        if anchor == "beside":
            other = draw(names)
            side = draw(st.sampled_from(["before", "after"]))
            anchor = None if other == name else {"sourceId": other, "positionId": "content", "side": side}
        settings[name] = {
            "sourceId": name,
            "positionId": "content",
            "enabled": draw(st.booleans()),
            "placement": draw(st.sampled_from(["source", "list"])),
        } | ({} if anchor is None else {"anchor": anchor})
    value: dict[str, Json] = {
        "version": 1,
        "source": draw(st.sampled_from(["manual", "preset-slots"])),
        "identity": draw(st.sampled_from(["preserve", "position"])),
        "fallback": draw(st.sampled_from(["source-order", "source-order", "error"])),
        "overrides": [],
        "positions": list(settings.values()),
    }
    if draw(st.booleans()):
        value["priority"] = draw(st.permutations(["preset", "resource", "default"]))
    return value


@st.composite
def laid_out_cases(draw: st.DrawFn) -> Case:
    """Cases with either backend, any placement, perhaps a layout, and a slot owner among the sources."""
    case = draw(cases())
    names = [source["source_id"] for source in case.sources]
    slots = [text("open", "open"), reference("h", "history"), text("mid", "mid"), reference("i", "input")]
    owned = [block for block in slots if draw(st.integers(0, 3))]
    owned += [reference(f"to-{name}", name) for name in names if draw(st.booleans())]
    owner = {"source_id": "preset", "blocks": owned, "dependencies": ["history", "input", *names]}
    lore = [text(f"w{depth}", f"w{depth}", depth=depth) for depth in (0, 1, 4)]
    book = {"source_id": "worldbook", "blocks": lore[: draw(st.integers(0, 3))]}
    preset = dict(case.preset)
    is_native = draw(st.booleans())
    rules = [dict(rule) for rule in preset["rules"]]
    for rule in rules:
        if is_native:
            rule["depth"] = None
    extra = [{"id": "preset", "kind": "preset"}, {"id": "worldbook", "kind": "worldbook"}]
    place = draw(st.integers(0, len(rules)))
    rules[place:place] = extra
    preset["rules"] = rules
    if is_native:
        preset |= {"backend": "native", "placement": draw(st.sampled_from(["native-roles", "native-slots"]))}
    if draw(st.booleans()):
        preset["layout"] = draw(layouts([*names, "preset", "worldbook"]))
    return attrs.evolve(case, preset=preset, sources=(*case.sources, owner, book))
