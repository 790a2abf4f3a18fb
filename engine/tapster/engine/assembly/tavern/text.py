"""The Tavern text parser: references split out of hand-written text, and the ST macros at emission.

Source: spec/text_and_mvu A1-A4.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from tapster.engine.assembly.context import RequestContext
from tapster.engine.assembly.emission import RenderInput
from tapster.engine.assembly.errors import AssemblyRefused
from tapster.engine.assembly.messages import kind_of, source_of, text_of
from tapster.engine.assembly.preset import Rule
from tapster.engine.ecma import WHITE_SPACE, Json, trim, utf16_length
from tapster.engine.text.pairs import closed_part
from tapster.engine.text.tavern_macros import DEFAULT_CHARACTER, DEFAULT_USER, Draw, MacroContext, expand_macros

_SPACE = f"[{re.escape(WHITE_SPACE)}]*"
_REFERENCE = re.compile(
    r"\{\{" + _SPACE + r"(chatHistory|history|input|worldInfoBefore|worldInfoAfter|worldInfo)" + _SPACE + r"\}\}"
)
_MACRO = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_SUPPORTED = (
    "user", "char", "lastusermessage", "lastcharmessage", "trim", "random::", "roll ", "setvar::", "getvar::", "//",
)  # fmt: skip
REFERENCES: Mapping[str, tuple[tuple[str, str, str | None], ...]] = {
    "chatHistory": (("history", "history", None), ("input", "input", None)),
    "history": (("history", "history", None),),
    "input": (("input", "input", None),),
    "worldInfoBefore": (("before", "worldbook", "before"),),
    "worldInfoAfter": (("after", "worldbook", "after"),),
    "worldInfo": (("before", "worldbook", "before"), ("after", "worldbook", "after")),
}
"""Reference name -> (suffix, source, group) of the references it stands for."""

DrawSource = Callable[[RequestContext], Draw]
"""Gives the draws of one request; the same request must get the same ones."""


class TemplateRuntime(Protocol):
    """Runs restricted EJS over hand-written text; any failure refuses the request."""

    def render(self, context: RequestContext, rule: Rule) -> object:
        """The rendered text, or something to await for it."""

    def validate(self, context: RequestContext) -> None:
        """Raise when what a template read no longer holds."""

    def facts(self, context: RequestContext, rule: Rule, block_ids: Sequence[str]) -> list[dict[str, Json]]:
        """Diagnostics that name what a rule's template read, for each text block it became."""


def reference_blocks(base: str, owner: str, name: str, **more: Json) -> Iterator[dict[str, Json]]:
    """The reference blocks a reference name stands for."""
    for suffix, source_id, group in REFERENCES[name]:
        block: dict[str, Json] = {"type": "reference", "id": f"{base}:{suffix}", "sourceId": source_id, "owner": owner}
        yield block | ({} if group is None else {"group": group}) | more


def split_references(text: str, base: str, **more: Json) -> list[dict[str, Json]]:
    """The blocks of a text: itself, or the pieces around its references and the references.

    Args:
        text: hand-written text.
        base: the block id, and the start of the pieces' ids.
        more: fields of each text block; ``role`` goes to references too.
    """
    if _REFERENCE.search(text) is None:
        return [{"type": "text", "id": base, "text": text, **more}]
    role = {"role": more["role"]} if more.get("role") is not None else {}
    blocks: list[dict[str, Json]] = []
    position, offset = 0, 0
    for match in _REFERENCE.finditer(text):
        piece = text[position : match.start()]
        blocks.append({"type": "text", "id": f"{base}:text:{offset}", "text": piece, **more})
        blocks += reference_blocks(f"{base}:{offset}", f"{base}:{offset}", match.group(1), **role)
        offset += utf16_length(piece) + utf16_length(match.group())
        position = match.end()
    blocks.append({"type": "text", "id": f"{base}:text:{offset}", "text": text[position:], **more})
    return blocks


def rule_blocks(rule: Rule, text: str | None = None) -> list[dict[str, Json]]:
    """The blocks of a rule's hand-written text (after its template ran, when ``text`` is given)."""
    blocks = split_references(rule.text if text is None else text, rule.name or "custom", source={"field": rule.id})
    for block in blocks:
        if block["type"] == "text" and (stability := text_stability(block["text"])) is not None:
            block["stability"] = stability
    return blocks


def text_stability(text: str) -> str | None:
    """How often a text changes by the macros in it; None leaves it to the source."""
    if any(mark in text for mark in ("{{random::", "{{roll ", "{{getvar::")):
        return "evaluation"
    return "conversation" if "lastUserMessage" in text or "lastCharMessage" in text else None


def require_runtime(runtime: TemplateRuntime | None) -> TemplateRuntime:
    """The template runtime.

    Raises:
        AssemblyRefused: ``TAVERN_TEMPLATE_PARSER_UNAVAILABLE``: a template is never sent as plain text.
    """
    if runtime is None:
        raise AssemblyRefused(
            "this text holds a template, and no template runtime is available",
            code="TAVERN_TEMPLATE_PARSER_UNAVAILABLE",
        )
    return runtime


def macro_context(context: RequestContext) -> MacroContext:
    """The names and last messages that ST macros insert."""
    assets = context.assets
    texts = _record(assets.get("context"))
    character = _record(assets.get("character"))
    data = _record(character.get("data"))
    names = (data.get("nickname"), data.get("name"), character.get("name"))
    users = (_record(assets.get("user")).get("name"), texts.get("user"))
    return MacroContext(
        user=_first_text(users, DEFAULT_USER),
        character=_first_text(names, DEFAULT_CHARACTER),
        last_user_message=_last(context, "user"),
        last_character_message=_last(context, "assistant"),
    )


def _record(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, dict) else {}


def _first_text(values: tuple[Json, ...], default: str) -> str:
    return next((value for value in values if isinstance(value, str) and value), default)


def _last(context: RequestContext, role: str) -> str:
    for message in reversed(context.native_messages):
        is_own = role == "assistant" or not source_of(message) or kind_of(message) == "user"
        if message.get("role") == role and is_own:
            return text_of(message)
    return ""


def steady_draws(context: RequestContext) -> Draw:
    """The draw source of a caller that has none: always the middle."""
    return lambda: 0.5


def tavern_renderer(draws: DrawSource = steady_draws) -> Callable[[RenderInput], str]:
    """The renderer of Tavern's blocks: ST macros with variables and draws shared by the whole request."""

    def render(given: RenderInput) -> str:
        names = given.scratch.get(render)
        if names is None:
            names = (macro_context(given.context), draws(given.context))
            given.scratch[render] = names
        literals = given.block.get("literalMacros")
        literals = literals if isinstance(literals, dict) else {}
        _report_unsupported(given, literals)
        expansion = expand_macros(given.text, names[0], draw=names[1], variables=given.variables, literals=literals)
        given.variables.update(expansion.variables)
        return expansion.text

    return render


def _report_unsupported(given: RenderInput, literals: Mapping[str, Json]) -> None:
    for match in _MACRO.finditer(closed_part(given.text, "}}")):
        body = trim(match.group(1))
        if body not in literals and not body.lower().startswith(_SUPPORTED):
            given.diagnostics.append({"code": "UNSUPPORTED_MACRO", "macro": body, "owner": given.identity})
