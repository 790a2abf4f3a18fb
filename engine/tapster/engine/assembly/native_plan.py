"""The standard backend's delivery: a logical request as sections, contexts and pre-step messages of the host.

Source: spec/assembler §11.4.
"""

import re
from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json

from .errors import AssemblyRefused, unsupported
from .ids import derived_id
from .messages import Message, blocks_of, text_of, tool_calls
from .nodes import Node
from .result import AssemblyResult

OWNER = "dsh-prompt-assembler"
SYSTEM_MESSAGE_ID = "assembler-native-system"
PREVIEW_MESSAGE_ID = "preview-native-system"
_VARIABLE = re.compile(r"\{\{([a-z][a-z0-9_]*)\}\}")
_FIELD = re.compile(r"[^A-Za-z0-9_.:-]")


@attrs.frozen
class Section:
    """One section of the host's system prompt; ``interpolate`` False keeps ``{{`` as it is."""

    name: str
    text: str
    interpolate: bool = True

    def to_json(self) -> dict[str, Json]:
        value: dict[str, Json] = {"name": self.name, "text": self.text}
        return value if self.interpolate else {**value, "interpolate": False}


@attrs.frozen
class Part:
    """Where a node went, so that its evidence can be found in what was sent."""

    node_id: str
    name: str
    text: str
    delivery: str
    message_id: str | None = None


@attrs.frozen(eq=False)
class NativePlan:
    """What the host is given for one prompt assembly.

    Attributes:
        sections: the whole system prompt, official sections in their place.
        system_text: the rendered system prompt.
        variables: prompt variables that carry context texts.
        contexts: context sections to add, each naming one of the variables.
        before: messages that go before the accepted input.
        after: messages that go after it.
        parts: where each node went.
        reconciles_system: whether the host must start a new request series for its system text.
    """

    sections: tuple[Section, ...]
    system_text: str
    variables: Mapping[str, str]
    contexts: tuple[Section, ...]
    before: tuple[Message, ...]
    after: tuple[Message, ...]
    parts: tuple[Part, ...]
    reconciles_system: bool

    def accept(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The pre-step decision's messages with the contributions around them."""
        return (*self.before, *messages, *self.after)


def official_text(sections: Sequence[Section], variables: Mapping[str, str]) -> str:
    """The host's sections as one text, variables filled in.

    Raises:
        AssemblyRefused: ``NATIVE_PREVIEW_VARIABLE_UNAVAILABLE`` (409).
    """

    def value(match: re.Match[str]) -> str:
        if match.group(1) not in variables:
            raise AssemblyRefused(
                f"the host has no variable {match.group(1)}", code="NATIVE_PREVIEW_VARIABLE_UNAVAILABLE", status=409
            )
        return variables[match.group(1)]

    texts = [_VARIABLE.sub(value, section.text) if section.interpolate else section.text for section in sections]
    return "\n\n".join(text for text in texts if text)


def native_messages(
    durable: Sequence[Message], text: str, claimed: Sequence[Message] = (), system_id: str = SYSTEM_MESSAGE_ID
) -> tuple[Message, ...]:
    """What the assembler takes as native: the official text, the durable conversation, this step's input.

    Args:
        durable: the session's messages; system ones are left out.
        text: the rendered official sections.
        claimed: the input the step has claimed.
        system_id: the synthetic system message's id.
    """
    system: Message = {
        "id": system_id,
        "role": "system",
        "content": [{"type": "text", "text": text}],
        "source": {"kind": "system-prompt"},
    }
    return (system, *(message for message in durable if message.get("role") != "system"), *claimed)


def plan_native(
    result: AssemblyResult,
    native: Sequence[Message],
    durable: Sequence[Message],
    sections: Sequence[Section],
    variables: Mapping[str, str],
    *,
    turn: int,
    step: int,
    reconciles: bool,
) -> NativePlan:
    """The delivery of a logical request.

    Args:
        result: the logical request.
        native: the messages it was made from.
        durable: the session's messages with their system texts.
        sections: the official sections.
        variables: the host's prompt variables.
        turn: the host's turn.
        step: the host's step; with the turn it makes ids of durable messages unique.
        reconciles: whether placement or preset replace the host's own system text.

    Raises:
        AssemblyRefused: 409 for an assistant contribution or a changed conversation order.
    """
    _check_order(result, native)
    builder = _Builder(result, sections, variables, turn, step)
    for node in result.nodes:
        builder.add(node)
    text = official_text(builder.sections, variables)
    return NativePlan(
        sections=tuple(builder.sections),
        system_text=text,
        variables=builder.variables,
        contexts=tuple(builder.contexts),
        before=tuple(builder.before),
        after=tuple(builder.after),
        parts=tuple(builder.parts),
        reconciles_system=reconciles and _differs(durable, text, is_adaptive=result.placement_controls is not None),
    )


def _check_order(result: AssemblyResult, native: Sequence[Message]) -> None:
    wanted = [str(message["id"]) for message in native if message.get("role") != "system"]
    known = set(wanted)
    found = [str(message["id"]) for message in result.messages if message["id"] in known]
    if found != wanted:
        raise unsupported("the native conversation's order must stay as it is")


def _differs(durable: Sequence[Message], text: str, *, is_adaptive: bool) -> bool:
    systems = [index for index, message in enumerate(durable) if message.get("role") == "system"]
    if any(text_of(durable[index]) != text for index in systems):
        return True
    return is_adaptive and any(index != 0 for index in systems)


@attrs.define(eq=False)
class _Builder:
    result: AssemblyResult
    official: Sequence[Section]
    host_variables: Mapping[str, str]
    turn: int
    step: int
    sections: list[Section] = attrs.field(factory=list)
    contexts: list[Section] = attrs.field(factory=list)
    variables: dict[str, str] = attrs.field(factory=dict)
    before: list[Message] = attrs.field(factory=list)
    after: list[Message] = attrs.field(factory=list)
    parts: list[Part] = attrs.field(factory=list)
    _seen_input: bool = False
    _ordinal: int = 0

    def add(self, node: Node) -> None:
        if node.recorded:
            if node.module == "native-system":
                self.sections += self.official
            self._seen_input = self._seen_input or node.module == "input"
            return
        self._ordinal += 1
        name = f"{OWNER}:part:{self._ordinal:04d}:{node.module}:{_FIELD.sub('_', str(node.source['field']))}"
        if node.role == "system":
            self.sections.append(Section(name, node.text, interpolate=False))
            self.parts.append(Part(node.id, name, node.text, "system"))
        elif node.role == "user":
            self._add_user(node, name)
        else:
            raise unsupported(f"{node.name} would be an assistant contribution")

    def _add_user(self, node: Node, name: str) -> None:
        delivery = node.native_delivery or self._rule_delivery(node)
        if delivery == "context":
            variable = self._free_variable()
            self.variables[variable] = node.text
            self.contexts.append(Section(name, "{{" + variable + "}}"))
            self.parts.append(Part(node.id, name, node.text, "context"))
            return
        seed = {"id": node.request_message_ids[0], "turn": self.turn, "step": self.step}
        message: Message = {
            "id": derived_id(seed),
            "role": "user",
            "content": [{"type": "text", "text": node.text}],
            "source": {
                "kind": OWNER,
                "form": "instructions",
                "delivery": "pre-step",
                "ruleId": node.rule_id,
                "blockId": node.id.partition(":")[2],
            },
        }
        (self.after if self._seen_input else self.before).append(message)
        self.parts.append(Part(node.id, name, node.text, "pre-step", str(message["id"])))

    def _rule_delivery(self, node: Node) -> str:
        return self.result.deliveries.get(node.rule_id, "context")

    def _free_variable(self) -> str:
        name = f"dsh_prompt_assembler_context_{len(self.contexts)}"
        while name in self.host_variables or name in self.variables:
            name += "_"
        return name


def joins_step(kind: str, accepted: Sequence[Message], step: int, history: Sequence[Message]) -> bool:
    """Whether a pre-step decision gets the contributions: entered, with input or as a tool continuation."""
    if kind != "enter":
        return False
    last = next((message for message in reversed(history) if message.get("role") == "assistant"), None)
    return bool(accepted) or (step > 1 and last is not None and bool(tool_calls(last)))


def observed_nodes(plan: NativePlan, messages: Sequence[Message], contexts: Sequence[Section]) -> frozenset[str]:
    """Ids of the nodes that are in a sent request; it proves inclusion, not delivery.

    Args:
        plan: the plan of the step.
        messages: the frozen request messages, equal to the session's.
        contexts: the context sections of the newest runtime context in them.
    """
    systems = [text_of(message) for message in messages if message.get("role") == "system"]
    has_system = bool(systems) and systems[-1] == plan.system_text
    sent = {str(message["id"]): text_of(message) for message in messages}
    shown = {(section.name, section.text) for section in contexts}
    return frozenset(
        part.node_id
        for part in plan.parts
        if (part.delivery == "system" and has_system)
        or (part.delivery == "pre-step" and sent.get(str(part.message_id)) == part.text)
        or (part.delivery == "context" and (part.name, part.text) in shown)
    )


def context_sections(message: Message) -> tuple[Section, ...]:
    """The named sections of a runtime-context message."""
    source = message.get("source")
    sections = source.get("sections") if isinstance(source, dict) else None
    if not isinstance(sections, list) or not blocks_of(message):
        return ()
    return tuple(
        Section(str(section.get("name")), str(section.get("text"))) for section in sections if isinstance(section, dict)
    )
