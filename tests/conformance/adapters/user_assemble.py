"""user_reports.jsonl: ops ``assemble``, ``assemble_twice``, ``count_tokens`` (renderer ``sillytavern``, repaired)."""

from typing import Any

import attrs

from tapster.actors.scripts import open_regex_engine
from tapster.engine.activation.sillytavern import Quirks, ScanInput
from tapster.engine.errors import TapsterError
from tapster.engine.profile.parts import Diagnostic
from tapster.engine.profile.sillytavern import (
    Assembly,
    AssemblyInput,
    AssemblyPorts,
    AssemblyRequest,
    AuthorsNote,
    CardFields,
    ChatMessage,
    Group,
    Injection,
    PresetReading,
    assemble,
    compare_requests,
    join_cards,
    read_prompt_preset,
)
from tapster.engine.profile.tokens import COUNTERS, count_tokens
from tapster.engine.text.macros import Group as MacroGroup
from tapster.engine.text.macros import MacroContext, MacroMessage
from tapster.engine.text.macros import expand as expand_macros
from tapster.engine.text.regex_scripts import parse_regex_script
from tests.conformance.adapters.st_macros import card_of, moment
from tests.conformance.adapters.user_activate import Case, settings_of
from tests.conformance.registry import adapter
from tests.conformance.user_reports_compare import compare_report, expand, report_error

Json = Any
REGEX = open_regex_engine()
WORDS = {
    "MANDATORY_PROMPTS_EXCEED_CONTEXT": "mandatory_prompts_exceed_context",
    "PRESET_WITHOUT_PROMPT_ORDER": "preset_without_prompt_order",
    "TOKENIZER_FALLBACK": "tokenizer_fallback",
}
"""The product's codes in the words of the vectors' README."""
MINIMAL = ("main", "worldInfoBefore", "worldInfoAfter", "chatHistory")
NAMED = {
    "minimal": MINIMAL,
    "minimal_with_examples": (*MINIMAL[:3], "dialogueExamples", "chatHistory"),
    "minimal_with_card": (
        "main", "worldInfoBefore", "charDescription", "charPersonality", "scenario", "worldInfoAfter",
        "dialogueExamples", "chatHistory",
    ),
}  # fmt: skip
SILENT = ("new_chat_prompt", "new_example_chat_prompt", "new_group_chat_prompt", "group_nudge_prompt")


def preset_of(given: Json) -> PresetReading:
    preset = given["preset"]
    if isinstance(preset, str):
        order = [{"identifier": identifier, "enabled": True} for identifier in NAMED[preset]]
        preset = {"prompts": [{"identifier": "main", "role": "system", "content": "Main."}], "prompt_order": order}
    raw = {
        **dict.fromkeys(SILENT, ""),
        **preset,
        "openai_max_context": given.get("context_tokens", 4096),
        "openai_max_tokens": given.get("reserve_tokens", 300),
    }
    if "prompt_order" in preset:
        raw["prompt_order"] = [{"character_id": 100001, "order": preset["prompt_order"]}]
    return read_prompt_preset(raw)


@attrs.define
class AssembleCase:
    """A line's inputs as the product's values."""

    given: Json
    quirks: Quirks = "repaired"

    def speaker(self) -> Json:
        members = self.given.get("group") or []
        name = self.given.get("speaker")
        card = next((member for member in members if member["name"] == name), members[0] if members else None)
        return card or self.given.get("card") or {}

    @property
    def char(self) -> str:
        names = self.given.get("names") or {}
        return str(self.speaker().get("name") or names.get("char", "Char"))

    @property
    def user(self) -> str:
        return str((self.given.get("names") or {}).get("user", "User"))

    def macros(self, messages: list[Json]) -> MacroContext:
        members = self.given.get("group") or []
        return MacroContext(
            now=moment("2024-03-09T14:05:09Z", "UTC"),
            random=lambda: 0.0,
            user=self.user,
            char=self.char,
            card=card_of(self.speaker()),
            group=MacroGroup(tuple(member["name"] for member in members)) if members else None,
            chat=tuple(MacroMessage(message["text"], message["role"] == "user") for message in messages),
            variables=self.given.get("vars") or {},
        )

    def card(self, context: MacroContext) -> CardFields:
        fields = self.fields(self.speaker(), self.char)
        if not self.given.get("join_cards"):
            return fields
        members = [self.fields(member, member["name"]) for member in self.given.get("group") or []]
        return join_cards(
            members, fields, lambda text, member: expand_macros(text, attrs.evolve(context, char=member.name)).text
        )

    def fields(self, card: Json, name: str) -> CardFields:
        values = card_of(card)
        return CardFields(
            name,
            values.description,
            values.personality,
            values.scenario,
            values.message_examples,
            values.system_prompt,
            values.post_history_instructions,
        )

    def message(self, given: Json) -> ChatMessage:
        present = given.get("present")
        return ChatMessage(
            given.get("name") or (self.user if given["role"] == "user" else self.char),
            given["text"],
            given["role"],
            hidden=bool(given.get("hidden")),
            present=None if present is None else tuple(present),
        )

    def request(self, messages: list[Json], case: Case) -> AssemblyRequest:
        given = self.given
        reading, context = preset_of(given), self.macros(messages)
        settings = given.get("settings") or {}
        members = given.get("group") or []
        return AssemblyRequest(
            AssemblyInput(
                reading.preset,
                self.card(context),
                self.user,
                tuple(self.message(message) for message in messages),
                note=self.note(),
                injections=self.injections(),
                group=Group(tuple(member["name"] for member in members)) if members else None,
                safety_margin=given.get("safety_margin", 0),
                quirks=self.quirks,
            ),
            ScanInput(case.books, settings=settings_of(settings, self.quirks)),
            context,
            tuple(parse_regex_script(script) for script in given.get("regex_scripts") or ()),
            names_in_scan=settings.get("include_names", False),
            present_only=given.get("history_filter") == "present",
            system_only_first=bool((given.get("target") or {}).get("system_only_first")),
            warnings=reading.warnings,
        )

    def note(self) -> AuthorsNote:
        note = self.given.get("authors_note")
        if note is None:
            return AuthorsNote()
        return AuthorsNote(note["text"], depth=note.get("depth", 4), role=note.get("role", "system"))

    def injections(self) -> tuple[Injection, ...]:
        return tuple(
            Injection(
                item["source"],
                item["text"],
                depth=item.get("depth", 4),
                role=item.get("role", "system"),
                literal=item.get("macros") is False,
                scan=bool(item.get("scan")),
            )
            for item in self.given.get("injections") or []
        )

    def run(self, messages: list[Json]) -> tuple[Assembly, Case]:
        case = Case(self.given, self.quirks)
        counter = COUNTERS[self.given.get("token_counter", "words")]
        return assemble(self.request(messages, case), AssemblyPorts(counter, case.draw, REGEX)), case


def warning(item: Diagnostic) -> Json:
    return {"code": WORDS.get(item.code, item.code), "message": item.message}


def trace(assembly: Assembly, case: Case) -> Json:
    found: dict[str, list[Json]] = {}
    for decision in assembly.scan.decisions():
        found[case.labels.ids[decision.entry.name]] = case.facts(decision.to_json())
    for fact in assembly.facts:
        found.setdefault(case.labels.ids.get(fact.label, fact.label), []).append(fact.to_json())
    return found


def answer(assembly: Assembly, case: Case) -> Json:
    itemisation = assembly.itemisation
    return {
        "messages": [message.to_json() for message in assembly.messages],
        "total_tokens": itemisation.total,
        "itemised": dict(itemisation.by_source),
        "itemised_sum_equals_total": sum(itemisation.by_source.values()) == itemisation.total,
        "every_character_has_source": itemisation.covers(assembly.messages),
        "trace": trace(assembly, case),
        "vars": dict(assembly.variables),
        "warnings": [warning(item) for item in assembly.warnings],
    }


@adapter("user_reports", "user.assemble", compare=compare_report)
def run_assemble(given: Json) -> Json:
    return assemble_report(given, "repaired")


def assemble_report(given: Json, quirks: Quirks) -> Json:
    given = expand(given)
    try:
        assembly, case = AssembleCase(given, quirks).run(given["messages"])
    except TapsterError as error:
        return report_error(error, WORDS)
    return answer(assembly, case)


@adapter("user_reports", "user.assemble_twice", compare=compare_report)
def run_assemble_twice(given: Json) -> Json:
    given = expand(given)
    whole = AssembleCase(given)
    first, case = whole.run(given["messages"])
    second, _ = whole.run([*given["messages"], *given["then"]])
    comparison = compare_requests(first.messages, second.messages)
    difference = comparison.first
    return {
        "first": [message.to_json() for message in first.messages],
        "second": [message.to_json() for message in second.messages],
        "common_prefix_messages": comparison.common_prefix,
        "first_difference": difference
        and {
            "message": difference.message,
            "source": case.labels.ids.get(difference.source, difference.source),
            "change": difference.change,
        },
    }


@adapter("user_reports", "user.count_tokens", compare=compare_report)
def run_count(given: Json) -> Json:
    given = expand(given)
    counted = count_tokens(given["text"], given["model"], given["available_counters"])
    return {
        "count": counted.count,
        "counter": counted.choice.counter.name,
        "fallback": counted.choice.fallback,
        "warnings": [warning(item) for item in counted.choice.warnings],
    }
