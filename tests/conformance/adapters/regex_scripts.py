"""Regex scripts: st_regex.jsonl, op ``regex`` of user_reports.jsonl, display rules of tavern_api.jsonl."""

from typing import Any

import attrs

from tapster.actors.scripts import open_regex_engine
from tapster.engine.text.display_rules import (
    DisplayScope,
    apply_display_rules,
    display_rule_json,
    expand_names,
    normalize_display_rule,
)
from tapster.engine.text.macros import MacroContext
from tapster.engine.text.regex_scripts import (
    RegexUse,
    parse_regex_script,
    run_regex_scripts,
    scripts_in_force,
)
from tests.conformance.adapters.st_macros import card_of, moment, tape
from tests.conformance.compare import differences
from tests.conformance.registry import adapter
from tests.conformance.user_reports_compare import compare_report, expand

Json = Any
REGEX = open_regex_engine()


def macro_context(given: Json) -> MacroContext:
    character = given.get("character") or {}
    return MacroContext(
        now=moment("2024-03-09T14:05:09Z", "UTC"),
        random=tape(given.get("random") or []),
        user=given.get("user") or "",
        char=character.get("name") or "",
        persona=given.get("persona_description") or "",
        card=card_of(character),
        variables=given.get("variables") or {},
    )


def use_of(call: Json) -> RegexUse:
    return RegexUse(
        placement=call.get("placement"),
        is_markdown=call.get("isMarkdown", False),
        is_prompt=call.get("isPrompt", False),
        is_edit=call.get("isEdit", False),
        depth=call.get("depth"),
        char_override=call.get("characterOverride"),
    )


def compare_outputs(expected: Json, actual: Json) -> list[str]:
    """All but the text of an exception, which is informational."""
    return differences({key: value for key, value in expected.items() if key != "error"}, actual)


@adapter("st_regex", compare=compare_outputs)
def run(given: Json) -> Json:
    scripts = scripts_in_force(
        map(parse_regex_script, given["scripts"]),
        map(parse_regex_script, given.get("character_scripts") or []),
        character_allowed=given.get("allow_character_regex", False),
    )
    macros = macro_context(given)
    outputs: list[str | None] = []
    for call in given["calls"]:
        result = run_regex_scripts(call["text"], scripts, use_of(call), macros, REGEX)
        macros = attrs.evolve(macros, variables=result.variables, global_variables=result.global_variables)
        # Where SillyTavern throws the whole text away, the product skips the script and says so.
        failed = any(report.reason == "replacement_failed" for report in result.skipped)
        outputs.append(None if failed else result.text)
    return {"outputs": outputs, "variables": dict(macros.variables)}


@adapter("user_reports", "user.regex", compare=compare_report)
def run_report(given: Json) -> Json:
    given = expand(given)
    names = given.get("names") or {}
    regex = open_regex_engine(budget_ms=given["limit_ms"]) if "limit_ms" in given else REGEX
    texts, skips = [], []
    for case in given["cases"]:
        script = parse_regex_script(case.get("script") or given["script"])
        macros = MacroContext(
            now=moment("2024-03-09T14:05:09Z", "UTC"),
            random=tape([]),
            user=names.get("user", "User"),
            char=names.get("char", "Char"),
            variables=case.get("vars") or {},
        )
        use = RegexUse(
            placement=script.placements[0],
            is_prompt=given["target"] == "prompt",
            depth=case.get("depth"),
            hidden=case.get("hidden", False),
        )
        result = run_regex_scripts(case["text"], (script,), use, macros, regex)
        texts.append(result.text)
        skips.append([{"script": report.script, "reason": report.reason} for report in result.skipped])
    return {"texts": texts, "skips": skips}


@adapter("tavern_api", "display.regex")
def run_display(given: Json) -> Json:
    rules = tuple(normalize_display_rule(rule, DisplayScope()) for rule in given["rules"])
    result = apply_display_rules(
        given["text"],
        rules,
        target=given["target"],
        regex=REGEX,
        preset_id=given["bindings"].get("presetId"),
        character_id=given["bindings"].get("characterId"),
        depth=given.get("depth"),
    )
    return {"text": result.text, "diagnosticRuleIds": list(result.failed)}


@adapter("tavern_api", "display.regexNormalize")
def run_normalize(given: Json) -> Json:
    rule = normalize_display_rule(given["rule"], DisplayScope())
    return {"rule": display_rule_json(rule), "importedCount": 1}


@adapter("tavern_api", "display.nameMacros")
def run_names(given: Json) -> Json:
    return {"text": expand_names(given["text"], user=given["user"], char=given["character"])}
