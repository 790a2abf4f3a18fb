"""The host's own sources: system text, history, input, and host text with variables.

Source: spec/assembler §14, first table.
"""

import re
from collections.abc import Callable, Mapping
from typing import NoReturn

from tapster.engine.ecma import Json

from .context import RequestContext
from .definition import SourceDefinition
from .errors import AssemblyRefused
from .native_rules import CONTEXT_CONTROLS
from .preset import AssemblyPreset, Rule
from .registry import SourceRegistry

PLUGIN = "DSH"
_VARIABLE = re.compile(r"\{\{([^{}]*)\}\}")
_VARIABLE_NAME = re.compile(r"[a-z][a-z0-9_]*")


def is_source_enabled(preset: AssemblyPreset, kind: str) -> bool:
    """Whether an enabled rule of the preset asks for a source."""
    return any(rule.enabled and rule.kind == kind for rule in preset.rules)


def _enabled_conversation(context: RequestContext) -> set[str]:
    has_history, has_input = (is_source_enabled(context.preset, kind) for kind in ("history", "input"))
    inputs = frozenset(context.input_ids)
    return {
        str(message["id"])
        for message in context.native_messages
        if message.get("role") != "system" and (has_input if message["id"] in inputs else has_history)
    }


def _resolve_system(context: RequestContext, section_plugins: Mapping[str, str]) -> dict[str, Json]:
    enabled = _enabled_conversation(context)
    blocks: list[Json] = []
    before = 0
    for message in context.native_messages:
        if message["id"] in enabled:
            before += 1
        if message.get("role") != "system":
            continue
        is_first = not blocks
        block: dict[str, Json] = {
            "type": "native",
            "id": "native-system" if is_first else f"native-system:{message['id']}",
            "messageIds": [message["id"]],
        }
        if before:
            block["depth"] = len(enabled) - before
        if is_first:
            block["children"] = _sections(context, section_plugins)
        blocks.append(block)
    return {"blocks": blocks}


def _sections(context: RequestContext, section_plugins: Mapping[str, str]) -> list[Json]:
    sections = context.assets.get("officialSections")
    return [
        {
            "name": section.get("name"),
            "text": section.get("text"),
            "plugin": section_plugins.get(str(section.get("name"))),
        }
        for section in (sections if isinstance(sections, list) else [])
        if isinstance(section, dict)
    ]


def _resolve_conversation(kind: str) -> Callable[[RequestContext, Rule], dict[str, Json]]:
    def resolve(context: RequestContext, rule: Rule) -> dict[str, Json]:
        inputs = frozenset(context.input_ids)
        ids = [
            message["id"]
            for message in context.native_messages
            if message.get("role") != "system" and (message["id"] in inputs) == (kind == "input")
        ]
        return {"blocks": [{"type": "native", "id": kind, "messageIds": ids}]}

    return resolve


def fill_variables(text: str, variables: Json) -> str:
    """Host text with ``{{name}}`` replaced by the host's variables.

    Raises:
        AssemblyRefused: ``NATIVE_TEXT_VARIABLE_UNAVAILABLE`` (409) for a name the host doesn't have.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        found = variables.get(name) if isinstance(variables, Mapping) else None
        if _VARIABLE_NAME.fullmatch(name) is None or not isinstance(found, str):
            _unavailable(name)
        return found

    return _VARIABLE.sub(value, text)


def _unavailable(name: str) -> NoReturn:
    raise AssemblyRefused(
        f"the host has no variable {name}", code="NATIVE_TEXT_VARIABLE_UNAVAILABLE", status=409, details={"name": name}
    )


def _resolve_text(context: RequestContext, rule: Rule) -> dict[str, Json]:
    text = fill_variables(rule.text, context.assets.get("nativeVariables"))
    return {"blocks": [{"type": "text", "id": "text", "text": text, "source": {"field": rule.id}}]}


def host_sources(section_plugins: Mapping[str, str] | None = None) -> tuple[SourceDefinition, ...]:
    """The host's sources.

    Args:
        section_plugins: official section name -> plug-in shown for it; nothing is attributed without it.
    """
    plugins = section_plugins or {}

    def native(kind: str, name: str, resolve: Callable[..., object]) -> SourceDefinition:
        return SourceDefinition(
            id=kind,
            plugin_id=PLUGIN,
            name=name,
            resolve=resolve,
            roles=("preserve",),
            lifetimes=("request",),
            depth=False,
            generation_requires_plugin=False,
        )

    return (
        native("native-system", "DSH system", lambda context, rule: _resolve_system(context, plugins)),
        native("history", "History", _resolve_conversation("history")),
        native("input", "Input", _resolve_conversation("input")),
        # The switches for host contexts contribute nothing: that they are off is what counts.
        *(native(kind, kind, lambda context, rule: {"blocks": []}) for kind in CONTEXT_CONTROLS),
        SourceDefinition(
            id="dsh.text",
            plugin_id=PLUGIN,
            name="DSH text",
            resolve=_resolve_text,
            parse_text=_resolve_text,
            supports_module=False,
            multiple=True,
            roles=("user", "system", "assistant"),
            generation_requires_plugin=False,
        ),
    )


def register_host_sources(
    registry: SourceRegistry, section_plugins: Mapping[str, str] | None = None
) -> Callable[[], None]:
    """Register the host's sources; the disposer removes them again."""
    disposers = [registry.register(source) for source in host_sources(section_plugins)]

    def dispose() -> None:
        for disposer in disposers:
            disposer()

    return dispose
