"""World-book activation, mode ``sillytavern`` (``st_world_info``, quirks exact)."""

import math
from pathlib import PurePosixPath
from typing import Any

from tapster.actors.scripts import open_regex_engine
from tapster.engine.activation.sillytavern import (
    BookBindings,
    BookUse,
    DrawFor,
    Injection,
    MatchSource,
    PlacedText,
    Placement,
    ScanInput,
    ScanMessage,
    ScanPorts,
    ScanResult,
    ScanSettings,
    ScanVariables,
    Strategy,
    TimedState,
    bound_books,
    compile_scan_book,
    macro_port,
    note_is_due,
    place_entries,
    prompt_text_port,
    read_entry,
    scan_books,
    wrap_note,
)
from tapster.engine.ecma import ordered_members
from tapster.engine.text.macros import MacroContext
from tapster.engine.text.regex_scripts import parse_regex_script
from tests.conformance.adapters.st_macros import card_of, message_of, moment
from tests.conformance.compare import differences
from tests.conformance.registry import adapter

Json = Any
REGEX = open_regex_engine()
STRATEGIES: tuple[Strategy, ...] = ("evenly", "character_first", "global_first")


class Tape:
    """The recorded random numbers, and how many were taken."""

    def __init__(self, values: list[float]) -> None:
        self.values = values
        self.taken = 0

    def __call__(self, purpose: DrawFor | None = None) -> float:
        self.taken += 1
        return self.values[self.taken - 1]


def count_tokens(text: str) -> int:
    return math.ceil(len(text) / 4)


def settings_of(given: Json) -> ScanSettings:
    values = given["settings"]
    return ScanSettings(
        depth=values.get("world_info_depth", 2),
        budget_percent=values.get("world_info_budget", 25),
        budget_cap=values.get("world_info_budget_cap", 0),
        min_activations=values.get("world_info_min_activations", 0),
        min_activations_depth_max=values.get("world_info_min_activations_depth_max", 0),
        recursive=values.get("world_info_recursive", False),
        case_sensitive=values.get("world_info_case_sensitive", False),
        match_whole_words=values.get("world_info_match_whole_words", False),
        use_group_scoring=values.get("world_info_use_group_scoring", False),
        strategy=STRATEGIES[values.get("world_info_character_strategy", 1)],
        max_recursion_steps=values.get("world_info_max_recursion_steps", 0),
        quirks="exact",
    )


def books_of(given: Json, turn: Json, settings: ScanSettings) -> tuple[BookUse, ...]:
    books = given["books"] | turn.get("books", {})
    sources = given["sources"]
    own = [sources["character"]] if sources.get("character") else []
    bindings = BookBindings(
        tuple(sources.get("global", ())),
        (*own, *sources.get("character_extra", ())),
        sources.get("chat"),
        sources.get("persona"),
    )
    return tuple(
        BookUse(
            place,
            compile_scan_book(
                name,
                [read_entry(name, entry) for _, entry in ordered_members(books[name]["entries"])],
                case_sensitive=settings.case_sensitive,
                match_whole_words=settings.match_whole_words,
            ),
        )
        for place, name in bound_books(bindings, list(books))
    )


def context_of(given: Json, turn: Json, tape: Tape) -> MacroContext:
    return MacroContext(
        now=moment(given.get("now") or "2024-03-09T14:05:09Z", "UTC"),
        random=tape,
        user=given["user"],
        char=given["character"].get("name", ""),
        persona=given["persona_description"],
        card=card_of(given["character"]),
        chat=tuple(message_of(message) for message in turn["chat"]),
    )


def run_turn(given: Json, turn: Json, timed: TimedState, variables: ScanVariables) -> tuple[Json, ScanResult]:
    settings = settings_of(given)
    tape = Tape(turn["random"])
    context = context_of(given, turn, tape)
    macros = macro_port(context)

    def plain(text: str) -> str:
        return macros(text, variables).text

    character = given["character"]
    sources: dict[MatchSource, str] = {
        "persona_description": given["persona_description"],
        "character_description": character.get("description", ""),
        "character_personality": character.get("personality", ""),
        "character_depth_prompt": (character.get("depth_prompt") or {}).get("prompt", ""),
        "scenario": character.get("scenario", ""),
        "creator_notes": character.get("creator_notes", ""),
    }
    note = given.get("authors_note")
    users = sum(message["is_user"] for message in turn["chat"])
    due = note is not None and note_is_due(users, note["interval"])
    injections = [Injection(f"inject {number}", text) for number, text in enumerate(given.get("scan_injects", []))]
    if due and given.get("note_allow_wi_scan"):
        injections.append(Injection("note", plain(note["prompt"])))
    with_names = given["settings"].get("world_info_include_names", True)
    result = scan_books(
        ScanInput(
            books=books_of(given, turn, settings),
            messages=tuple(
                ScanMessage(message["mes"], message["name"] if with_names else None) for message in turn["chat"]
            ),
            settings=settings,
            max_context=given.get("max_context", 4096),
            sources={name: plain(text) for name, text in sources.items()},
            injections=tuple(injections),
            trigger=turn.get("trigger", "normal"),
            character_file=PurePosixPath(character.get("avatar", "")).stem,
            character_tags=frozenset(character.get("tags", ())),
            forced=tuple(read_entry(entry["world"], entry) for entry in turn.get("force_activate", [])),
            timed=timed,
            variables=variables,
            dry_run=turn.get("dry_run", False),
        ),
        ScanPorts(tape, count_tokens, macros, REGEX),
    )
    scripts = [parse_regex_script(script) for script in given.get("regex_scripts", [])]
    placement = place_entries(result.active, prompt_text_port(scripts, context, REGEX))
    value = turn_json(result, placement)
    value["random_consumed"] = tape.taken
    value["variables"] = dict(result.variables.chat)
    if note is not None:
        value["authors_note_value"] = wrap_note(note["prompt"], placement) if due else ""
    return value, result


def turn_json(result: ScanResult, placement: Placement) -> Json:
    return {
        "activated": [each.entry.name for each in result.active],
        "activated_uids": [each.entry.uid for each in result.active],
        "world_info_before": "\n".join(texts(placement.before)),
        "world_info_after": "\n".join(texts(placement.after)),
        "depth_entries": [
            {"depth": group.depth, "role": group.role, "entries": texts(group.texts)} for group in placement.depths
        ],
        "an_top": texts(placement.note_top),
        "an_bottom": texts(placement.note_bottom),
        "em_entries": [
            {"position": int(example.after), "content": example.text.text} for example in placement.examples
        ],
        "outlet_entries": {name: texts(placed) for name, placed in placement.outlets},
        "timed_effects": result.timed.to_json(),
        "scan_loops": [
            {
                "state": int(each.state),
                "next": int(each.following),
                "new": list(each.new),
                "successful": list(each.successful),
                "activated_total": each.active_total,
                "overflowed": each.overflowed,
                "budget": result.budget,
            }
            for each in result.passes
        ],
    }


def texts(placed: Any) -> list[str]:
    found: list[PlacedText] = list(placed)
    return [each.text for each in found]


def compare(expected: Json, actual: Json) -> list[str]:
    """What a turn states; ``variables`` are only stated where the case is about them."""
    found = []
    for number, (left, right) in enumerate(zip(expected["turns"], actual["turns"], strict=True)):
        found += differences(left, {key: right[key] for key in right if key in left}, f"$[{number}]")
    return found


@adapter("st_world_info", compare=compare)
def run(given: Json) -> Json:
    timed = TimedState()
    variables = ScanVariables(given.get("variables", {}), given.get("global_variables", {}))
    turns = []
    for turn in given["turns"]:
        value, result = run_turn(given, turn, timed, variables)
        timed, variables = result.timed, result.variables
        turns.append(value)
    return {"turns": turns}
