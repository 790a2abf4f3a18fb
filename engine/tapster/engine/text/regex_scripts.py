"""Regex scripts: which of them run on a text, and what they make of it, as SillyTavern does.

A script that can't run (its pattern is not JavaScript, is over its budget, or its replacement asks for something that
isn't text) leaves the text alone and is reported with its reason; the others go on.

Source: vectors/README "st_regex", "user_reports"; spec/resources §8.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence

import attrs

from tapster.engine.ecma import Json, has_astral, number_text, to_number

from .macros import MacroContext, expand
from .macros.context import Draw, Variables
from .ports import InvalidPattern, RegexEngine, RegexMatch, ScriptBudgetExceeded

USER, AI, SLASH, WORLD_INFO, REASONING = 1, 2, 3, 5, 6
SUBSTITUTE_NONE, SUBSTITUTE_RAW, SUBSTITUTE_ESCAPED = 0, 1, 2
# The first slash-delimited part with letters behind it; without one, the text itself.
_FIND = re.compile("(/?)([^\n\r\u2028\u2029]+)\\1([A-Za-z]*)")
_FLAGS = frozenset("gmixXsuUAJ")
_MATCH_MACRO = re.compile(r"\{\{match\}\}", re.IGNORECASE)
_REFERENCE = re.compile(r"\$([0-9]+)|\$<([^>]+)>")
_SPECIAL = re.compile(r"[\n\r\t\v\f\0.^$*+?{}\[\]\\/|()]")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\f": "\\f", "\0": "\\0"}
_MACRO_SIGNS = re.compile(r"\{\{|<(?:user|bot|char|group)|\\[{}]", re.IGNORECASE)


class ReplacementFailed(Exception):
    """A replacement refers to something that isn't text."""


@attrs.frozen
class RegexScript:
    """One regex script, normalised; ``minimum_depth``/``maximum_depth`` None are no limits."""

    name: str = ""
    find: str = ""
    replace: str = ""
    placements: tuple[int, ...] = ()
    trim: tuple[str, ...] = ()
    disabled: bool = False
    markdown_only: bool = False
    prompt_only: bool = False
    run_on_edit: bool = False
    substitute: int = SUBSTITUTE_NONE
    minimum_depth: float | None = None
    maximum_depth: float | None = None

    @property
    def has_depth_window(self) -> bool:
        return self.minimum_depth is not None or self.maximum_depth is not None


@attrs.frozen
class RegexUse:
    """What a text is and what it is prepared for; ``depth`` counts messages from the newest (0)."""

    placement: int | None
    is_markdown: bool = False
    is_prompt: bool = False
    is_edit: bool = False
    depth: int | None = None
    hidden: bool = False
    char_override: str | None = None


@attrs.frozen
class ScriptReport:
    """A script that was left out, or the number of replacements of one that ran."""

    script: str
    reason: str
    count: int = 0
    message: str = ""


@attrs.frozen
class RegexOutcome:
    """The text after all scripts, with the macro state and what each script did."""

    text: str
    variables: Variables
    global_variables: Variables
    draws: tuple[Draw, ...] = ()
    applied: tuple[ScriptReport, ...] = ()
    skipped: tuple[ScriptReport, ...] = ()


def parse_regex_script(raw: Json) -> RegexScript:
    """A script of SillyTavern's JSON; what has the wrong type counts as absent."""
    if not isinstance(raw, dict):
        raw = {}
    return RegexScript(
        name=_text(raw.get("scriptName")),
        find=_text(raw.get("findRegex")),
        replace=_text(raw.get("replaceString")),
        placements=tuple(item for item in _list(raw.get("placement")) if isinstance(item, int)),
        trim=tuple(item for item in _list(raw.get("trimStrings")) if isinstance(item, str)),
        disabled=raw.get("disabled") is True,
        markdown_only=raw.get("markdownOnly") is True,
        prompt_only=raw.get("promptOnly") is True,
        run_on_edit=raw.get("runOnEdit") is True,
        substitute=_whole(raw.get("substituteRegex")),
        minimum_depth=_depth(raw.get("minDepth"), -1),
        maximum_depth=_depth(raw.get("maxDepth"), 0),
    )


def _list(value: Json) -> Sequence[Json]:
    return value if isinstance(value, list | tuple) else ()


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Json) -> float | None:
    if isinstance(value, str):
        return to_number(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: Json) -> int:
    number = _number(value)
    return int(number) if number is not None and math.isfinite(number) else 0


def _depth(value: Json, least: int) -> float | None:
    number = _number(value)
    return None if number is None or number < least else number


def scripts_in_force(
    global_scripts: Iterable[RegexScript],
    character_scripts: Iterable[RegexScript] = (),
    preset_scripts: Iterable[RegexScript] = (),
    *,
    character_allowed: bool = False,
    preset_allowed: bool = True,
) -> tuple[RegexScript, ...]:
    """The scripts in the order they run; those of a card only with the user's consent."""
    return (
        *global_scripts,
        *(character_scripts if character_allowed else ()),
        *(preset_scripts if preset_allowed else ()),
    )


def parse_find(find: str) -> tuple[str, str] | None:
    """Pattern and flags of a ``findRegex``: ``/pattern/flags``, or a plain pattern."""
    match = _FIND.search(find)
    if match is None:
        return None
    flags = match[3]
    if flags and (len(set(flags)) != len(flags) or set(flags) - _FLAGS):
        return find, ""
    return match[2], flags


def escape_pattern(text: str) -> str:
    """A macro's value as a literal inside a pattern."""
    return _SPECIAL.sub(lambda match: _ESCAPES.get(match[0], "\\" + match[0]), text)


def applies(script: RegexScript, use: RegexUse) -> str | None:
    """None when a script runs on this use, else the reason why not ("" for one that is nobody's concern)."""
    if script.disabled or not script.find or use.placement not in script.placements:
        return ""
    lasting = not script.markdown_only and not script.prompt_only and not use.is_markdown and not use.is_prompt
    if not (lasting or (script.markdown_only and use.is_markdown) or (script.prompt_only and use.is_prompt)):
        return ""
    if use.is_edit and not script.run_on_edit:
        return ""
    if use.depth is None:
        return "depth_unknown" if use.hidden and script.has_depth_window else None
    below = script.minimum_depth is not None and use.depth < script.minimum_depth
    above = script.maximum_depth is not None and use.depth > script.maximum_depth
    return "depth_window" if below or above else None


def run_regex_scripts(
    text: str, scripts: Sequence[RegexScript], use: RegexUse, macros: MacroContext, regex: RegexEngine
) -> RegexOutcome:
    """Run every script that applies, in order, each on what the one before it left."""
    run = _Run(macros, regex, use)
    applied: list[ScriptReport] = []
    skipped: list[ScriptReport] = []
    for script in scripts if text else ():
        reason = applies(script, use)
        if reason is not None:
            if reason:
                skipped.append(ScriptReport(script.name, reason))
            continue
        try:
            text, count = run.script(script, text)
        except InvalidPattern as error:
            skipped.append(ScriptReport(script.name, "invalid_pattern", message=error.message))
        except ScriptBudgetExceeded as error:
            skipped.append(ScriptReport(script.name, "over_budget", message=error.message))
        except ReplacementFailed:
            skipped.append(
                ScriptReport(script.name, "replacement_failed", message="the replacement names a group that isn't text")
            )
        else:
            if count:
                applied.append(ScriptReport(script.name, "regex_changed", count))
    context = run.macros
    return RegexOutcome(
        text, context.variables, context.global_variables, tuple(run.draws), tuple(applied), tuple(skipped)
    )


class _Run:
    """Scripts at work on one text; the macro context moves on with every expansion."""

    def __init__(self, macros: MacroContext, regex: RegexEngine, use: RegexUse) -> None:
        self.macros = macros
        self.regex = regex
        self.use = use
        self.draws: list[Draw] = []

    def expand(self, text: str, *, char: str | None = None, post_process: Callable[[str], str] | None = None) -> str:
        if not _MACRO_SIGNS.search(text):
            return text
        context = self.macros
        if char is not None or post_process is not None:
            context = attrs.evolve(context, char=context.char if char is None else char, post_process=post_process)
        result = expand(text, context)
        self.draws += result.draws
        if result.variables is not context.variables or result.global_variables is not context.global_variables:
            self.macros = attrs.evolve(
                self.macros, variables=result.variables, global_variables=result.global_variables
            )
        return result.text

    def script(self, script: RegexScript, text: str) -> tuple[str, int]:
        """The text after one script and the number of replacements."""
        find = script.find
        if script.substitute == SUBSTITUTE_RAW:
            find = self.expand(find)
        elif script.substitute == SUBSTITUTE_ESCAPED:
            find = self.expand(find, post_process=escape_pattern)
        parsed = parse_find(find)
        if parsed is None:
            return text, 0
        pattern, flags = parsed
        owner = f"regex script {script.name!r}"
        if "g" in flags:
            matches = self.regex.find_all(pattern, flags, text, owner=owner)
        else:
            first = self.regex.find(pattern, flags, text, owner=owner)
            matches = () if first is None else (first,)
        replacement = _Replacement(self, script, text)
        return splice(text, matches, replacement), len(matches)


class _Replacement:
    """What one script puts in place of each match."""

    def __init__(self, run: _Run, script: RegexScript, text: str) -> None:
        self.run = run
        self.script = script
        self.text = text
        self.template = _MATCH_MACRO.sub("$0", script.replace)
        references = _REFERENCE.findall(self.template)
        self.has_references = bool(references)
        # Macros may stand in the template, in what is captured, or come about where the two meet.
        may_join = any(sign in self.template for sign in "{<\\") or ("<" in text and len(references) > 1)
        self.may_hold_macros = may_join or "{" in text or "\\" in text or _MACRO_SIGNS.search(text) is not None

    def __call__(self, match: RegexMatch) -> str:
        if not self.has_references:
            filled = self.template
        elif self.template == "$0" and not self.script.trim:
            filled = match.text
        else:
            filled = _REFERENCE.sub(lambda reference: self.value(reference, match), self.template)
        return self.run.expand(filled) if self.may_hold_macros else filled

    def value(self, reference: re.Match[str], match: RegexMatch) -> str:
        given = _referenced(reference, match, self.text)
        if given is None or given in ("", 0):
            return ""
        if not isinstance(given, str):
            if self.script.trim:
                raise ReplacementFailed
            return number_text(given)
        for trim in self.script.trim:
            removed = self.run.expand(trim, char=self.run.use.char_override)
            given = given.replace(removed, "") if removed else given
        return given


def _referenced(reference: re.Match[str], match: RegexMatch, text: str) -> str | int | None:
    """What ``$n`` or ``$<name>`` stands for: behind the groups come the offset and the whole text, as in a callback."""
    if reference[2] is not None:
        return match.named.get(reference[2])
    index = int(reference[1])
    values: tuple[str | int | None, ...] = (match.text, *match.groups, match.start, text)
    if index < len(values):
        return values[index]
    if index == len(values) and match.named:
        raise ReplacementFailed
    return None


def splice(text: str, matches: Sequence[RegexMatch], replacement: Callable[[RegexMatch], str]) -> str:
    """The text with every match replaced."""
    if not matches:
        return text
    wide = has_astral(text)
    units = text.encode("utf-16-le", "surrogatepass") if wide else b""
    parts: list[str] = []
    position = 0
    for match in matches:
        parts.append(_cut(units, position, match.start) if wide else text[position : match.start])
        parts.append(replacement(match))
        position = match.end
    parts.append(_cut(units, position, len(units) // 2) if wide else text[position:])
    joined = "".join(parts)
    # Halves of a surrogate pair that meet again are one character.
    return joined.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") if wide else joined


def _cut(units: bytes, start: int, end: int) -> str:
    return units[2 * start : 2 * end].decode("utf-16-le", "surrogatepass")
