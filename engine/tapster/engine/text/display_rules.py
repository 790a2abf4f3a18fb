"""Display rules: regex scripts as they change what is shown, never a prompt or a stored message.

Source: spec/play §10, spec/resources §8.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import attrs

from tapster.engine.ecma import Json, is_number, is_record, to_number

from .ports import InvalidPattern, RegexEngine, RegexMatch, ScriptBudgetExceeded
from .regex_scripts import splice

Target = Literal["user", "assistant", "both"]
ScopeKind = Literal["global", "preset", "character"]
_TARGETS: dict[str, Target] = {"user": "user", "assistant": "assistant", "both": "both"}
_KINDS: dict[str, ScopeKind] = {"global": "global", "preset": "preset", "character": "character"}
_REFERENCE = re.compile(r"\$([0-9]+)|\$<([^>]+)>")
_MATCH_MACRO = re.compile(r"\{\{match\}\}", re.IGNORECASE)
_NAME_MACRO = re.compile(r"\{\{\s*(user|char)\s*\}\}", re.IGNORECASE)
_LEGACY_ALL = (1, 2, 3, 5, 6)
USER, AI, SLASH, LEGACY_MARKDOWN, LEGACY_SEND_AS = 1, 2, 3, 0, 4


@attrs.frozen
class DisplayScope:
    """Where a rule applies: everywhere, or with one preset or card."""

    kind: ScopeKind = "global"
    resource_id: str | None = None


@attrs.frozen
class DisplayRule:
    """One normalised rule."""

    id: str
    name: str
    enabled: bool
    find: str
    replace: str
    flags: str
    target: Target
    scope: DisplayScope
    placement: tuple[int, ...]
    trim_strings: tuple[str, ...]
    markdown_only: bool
    prompt_only: bool
    run_on_edit: bool
    substitute: int
    minimum_depth: float | None
    maximum_depth: float | None
    ext: Mapping[str, Json]

    @property
    def is_display_rule(self) -> bool:
        """Whether a native script takes part in display at all."""
        reaches = not self.placement or USER in self.placement or AI in self.placement
        return reaches and (not self.prompt_only or self.markdown_only)


@attrs.frozen
class DisplayOutcome:
    """The shown text and the rules that could not run (id → why)."""

    text: str
    failed: Mapping[str, str]


def normalize_display_rule(raw: Json, scope: DisplayScope, *, new_id: str = "regex-rule") -> DisplayRule:
    """A rule from any of the spellings in use; ``scope`` holds unless the rule names its own."""
    placement, legacy_all = _placement(raw.get("placement"))
    return DisplayRule(
        id=_first_text(raw, "id") or new_id,
        name=_first_text(raw, "name", "script_name", "scriptName") or "Regex",
        enabled=raw["enabled"] if isinstance(raw.get("enabled"), bool) else raw.get("disabled") is not True,
        find=_first_text(raw, "find", "findRegex", "find_regex", "regex"),
        replace=_first_text(raw, "replace", "replaceString", "replace_string", "replacement"),
        flags=_first_text(raw, "flags"),
        target=_target(raw, placement),
        scope=_scope(raw.get("scope"), scope),
        placement=placement,
        trim_strings=tuple(item for item in _trim_list(raw) if isinstance(item, str)),
        markdown_only=legacy_all or _flag(raw, "markdownOnly", "markdown_only"),
        prompt_only=legacy_all or _flag(raw, "promptOnly", "prompt_only"),
        run_on_edit=_flag(raw, "runOnEdit", "run_on_edit"),
        substitute=_substitute(raw),
        minimum_depth=_depth(raw, "minDepth", "min_depth"),
        maximum_depth=_depth(raw, "maxDepth", "max_depth"),
        ext=raw["ext"] if is_record(raw.get("ext")) else {},
    )


def display_rule_json(rule: DisplayRule) -> dict[str, Json]:
    """A rule as the workspace file and the page have it."""
    return {
        "id": rule.id,
        "name": rule.name,
        "enabled": rule.enabled,
        "find": rule.find,
        "replace": rule.replace,
        "flags": rule.flags,
        "target": rule.target,
        "scope": {"kind": rule.scope.kind, "resourceId": rule.scope.resource_id},
        "placement": list(rule.placement),
        "trimStrings": list(rule.trim_strings),
        "markdownOnly": rule.markdown_only,
        "promptOnly": rule.prompt_only,
        "runOnEdit": rule.run_on_edit,
        "substituteRegex": rule.substitute,
        "minDepth": rule.minimum_depth,
        "maxDepth": rule.maximum_depth,
        "ext": dict(rule.ext),
    }


def _first_text(raw: Json, *keys: str) -> str:
    return next((value for key in keys if isinstance(value := raw.get(key), str)), "")


def _trim_list(raw: Json) -> Sequence[Json]:
    return next((value for key in ("trimStrings", "trim_strings") if isinstance(value := raw.get(key), list)), ())


def _flag(raw: Json, *keys: str) -> bool:
    return any(raw.get(key) is True for key in keys)


def _placement(raw: Json) -> tuple[tuple[int, ...], bool]:
    """The placements without the withdrawn ones, and whether the old "display" placement (0) was among them."""
    items = tuple(int(item) for item in raw if is_number(item)) if isinstance(raw, list) else ()
    legacy = LEGACY_MARKDOWN in items
    if items == (LEGACY_MARKDOWN,):
        return _LEGACY_ALL, True
    if items == (LEGACY_SEND_AS,):
        return (SLASH,), False
    return tuple(item for item in items if item not in (LEGACY_MARKDOWN, LEGACY_SEND_AS)), legacy


def _target(raw: Json, placement: Sequence[int]) -> Target:
    for key in ("target", "placement"):
        value = raw.get(key)
        if isinstance(value, str) and value in _TARGETS:
            return _TARGETS[value]
    if USER in placement:
        return "both" if AI in placement else "user"
    return "assistant"


def _scope(raw: Json, default: DisplayScope) -> DisplayScope:
    kind = raw.get("kind") if is_record(raw) else None
    if default.kind != "global" or not isinstance(kind, str) or kind not in _KINDS:
        return default
    resource = raw.get("resourceId")
    return DisplayScope(_KINDS[kind], resource if isinstance(resource, str) else None)


def _substitute(raw: Json) -> int:
    value = raw.get("substituteRegex", raw.get("substitute_regex"))
    return int(value) if is_number(value) and value in (0, 1, 2) else 0


def _depth(raw: Json, *keys: str) -> float | None:
    value = next((raw[key] for key in keys if key in raw), None)
    number = to_number(value) if isinstance(value, str) else value
    return number if is_number(number) else None


def apply_display_rules(
    text: str,
    rules: Sequence[DisplayRule],
    *,
    target: Literal["user", "assistant"],
    regex: RegexEngine,
    preset_id: str | None = None,
    character_id: str | None = None,
    depth: int | None = None,
) -> DisplayOutcome:
    """The text as it is shown; a rule that can't run is passed over and named."""
    failed: dict[str, str] = {}
    for rule in rules:
        if not _applies(rule, target, depth, {"preset": preset_id, "character": character_id}):
            continue
        pattern, flags = _pattern(rule)
        try:
            matches = _matches(regex, pattern, flags, text, f"display rule {rule.name!r}")
        except (InvalidPattern, ScriptBudgetExceeded) as error:
            failed[rule.id] = error.message
            continue
        text = splice(text, matches, _replacer(rule))
    return DisplayOutcome(text, failed)


def _matches(regex: RegexEngine, pattern: str, flags: str, text: str, owner: str) -> Sequence[RegexMatch]:
    if "g" in flags:
        return regex.find_all(pattern, flags, text, owner=owner)
    first = regex.find(pattern, flags, text, owner=owner)
    return () if first is None else (first,)


def _applies(rule: DisplayRule, target: str, depth: int | None, current: Mapping[str, str | None]) -> bool:
    if not rule.enabled or rule.target not in (target, "both") or not rule.find:
        return False
    if rule.scope.kind != "global" and rule.scope.resource_id != current[rule.scope.kind]:
        return False
    if depth is None:
        return True
    least, most = rule.minimum_depth, rule.maximum_depth
    return not ((least is not None and least >= -1 and depth < least) or (most is not None and 0 <= most < depth))


def _pattern(rule: DisplayRule) -> tuple[str, str]:
    end = rule.find.rfind("/")
    if rule.find.startswith("/") and end > 0:
        return rule.find[1:end], rule.flags or rule.find[end + 1 :]
    return rule.find, rule.flags or "g"


def _replacer(rule: DisplayRule) -> Callable[[RegexMatch], str]:
    template = _MATCH_MACRO.sub("$0", rule.replace)

    def value(match: RegexMatch, reference: re.Match[str]) -> str:
        if reference[2] is not None:
            given = match.named.get(reference[2])
        else:
            index = int(reference[1])
            given = (match.text, *match.groups)[index] if index <= len(match.groups) else None
        for text in rule.trim_strings if given else ():
            given = (given or "").replace(text, "") if text else given
        return given or ""

    return lambda match: _REFERENCE.sub(partial(value, match), template)


def expand_names(text: str, *, user: str, char: str) -> str:
    """``{{user}}`` and ``{{char}}`` of a greeting that is shown. Source: spec/play §9."""
    names = {"user": user or "User", "char": char or "Assistant"}
    return _NAME_MACRO.sub(lambda match: names[match[1].lower()], text)
