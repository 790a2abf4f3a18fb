"""World-book activation, mode ``tavern`` (``tavern_loader``: ``worldbook.key`` … ``worldbook.compose``)."""

from typing import Any

from tapster.actors.scripts import open_regex_engine
from tapster.engine import limits
from tapster.engine.activation.keys import KeyRules, match_key
from tapster.engine.activation.tavern import (
    ActivationOptions,
    BookRequest,
    BookSelection,
    Candidate,
    LibraryBook,
    MatchDefaults,
    activate_book,
    activate_books,
    compile_book,
    compose_books,
    embedded_book,
    evaluate_entry,
)
from tapster.engine.errors import TapsterError
from tapster.engine.formats.world_books import parse_world_book
from tapster.engine.projection import ActivationContext, ContextMessage, ContextMetadata
from tests.conformance.registry import adapter

Json = Any
REGEX = open_regex_engine()
RESOURCE_MEMBERS = "id kind entryCount matchedEntryCount activeEntryIds bindingSources"


def rules_of(options: Json) -> KeyRules:
    return KeyRules(
        options.get("allowUnsafeRegex") is True, options.get("maxRegexLength", limits.MAX_KEY_REGEX_CHARACTERS)
    )


def defaults_of(options: Json) -> MatchDefaults:
    return MatchDefaults(options.get("caseSensitive", False), options.get("matchWholeWords", False), rules_of(options))


@adapter("tavern_loader", "worldbook.key")
def run_key(given: Json) -> Json:
    options = given.get("options", {})
    match = match_key(
        given["key"],
        given["text"],
        case_sensitive=options.get("caseSensitive", False),
        whole_word=options.get("matchWholeWords", False),
        rules=rules_of(options),
        regex=REGEX,
    )
    return {"matched": match.matched, "kind": match.kind, "code": match.code}


@adapter("tavern_loader", "worldbook.evaluate")
def run_evaluate(given: Json) -> Json:
    defaults = given.get("defaults", {})
    entry = parse_world_book({"entries": {"0": given["entry"]}}).entries[0]
    evaluation = evaluate_entry(
        entry,
        given["text"],
        defaults_of(defaults),
        vector_matched=defaults.get("vectorMatched", False),
        regex=REGEX,
    )
    return {
        "eligible": evaluation.eligible,
        "reason": evaluation.reason,
        "score": evaluation.score,
        "primaryMatches": evaluation.primary_matches,
        "secondaryMatches": evaluation.secondary_matches,
        "invalidKeys": [
            {"key": invalid.key, "set": invalid.key_set, "code": invalid.code} for invalid in evaluation.invalid_keys
        ],
    }


@adapter("tavern_loader", "worldbook.candidates")
def run_candidates(given: Json) -> Json:
    options = given["options"]
    compiled = compile_book(parse_world_book(given["raw"]), defaults_of(options))
    named = {**options, "defaultTokenBudget": options.get("tokenBudget")}
    activation = activate_book(compiled, options["text"], ActivationOptions.from_options(named), regex=REGEX)
    return {
        "accepted": [accepted_json(candidate) for candidate in activation.accepted],
        "rejected": [
            {"key": candidate.key, "uid": candidate.entry.uid, "reason": candidate.reason}
            for candidate in activation.rejected
        ],
        "budget": {
            "limit": activation.budget.limit,
            "used": activation.budget.used,
            "remaining": activation.budget.remaining,
        },
    }


def accepted_json(candidate: Candidate) -> Json:
    return {
        "key": candidate.key,
        "uid": candidate.entry.uid,
        "reason": candidate.reason,
        "score": candidate.evaluation.score,
        "primaryMatches": candidate.evaluation.primary_matches,
        "secondaryMatches": candidate.evaluation.secondary_matches,
        "tokenCost": candidate.token_cost,
        "probability": candidate.probability,
        "roll": candidate.roll,
    }


@adapter("tavern_loader", "worldbook.adapter")
def run_adapter(given: Json) -> Json:
    options = given.get("options", {})
    defaults = defaults_of(options)
    result = activate_books(
        BookRequest(
            book_ids=tuple(given.get("worldBookIds", ())),
            books={book_id: library_book(book_id, raw, defaults) for book_id, raw in given["books"].items()},
            selection=selection_of(given["worldBookSelection"]) if given.get("worldBookSelection") else None,
            context=context_of(given["messages"]) if "messages" in given else None,
            conversation_text=given.get("conversationText", ""),
            embedded=embedded_book("c1", "Card", given["embedded"], defaults=defaults)
            if given.get("embedded") is not None
            else None,
            options=ActivationOptions.from_options(options),
        ),
        regex=REGEX,
    )
    return {
        "lore": [entry.to_json() for entry in result.lore],
        "resources": [
            {"bindingSources": None}
            | keep(resource, "id kind entryCount matchedEntryCount activeEntryIds bindingSources")
            for resource in result.resources()
        ],
        "diagnostics": [
            keep(diagnostic.to_json(), "code severity resourceId entryId") for diagnostic in result.diagnostics
        ],
        "decisions": [
            keep(decision.to_json(), "resourceId entryId decision reason appliedPosition approximatePosition")
            for decision in result.decisions()
        ],
    }


def context_of(texts: list[str]) -> ActivationContext:
    messages = tuple(ContextMessage(None, "user", text, "durable") for text in texts)
    joined = "\n".join(texts)
    return ActivationContext(messages, joined, ContextMetadata.of_plain_text(joined))


def library_book(book_id: str, raw: Json, defaults: MatchDefaults) -> LibraryBook | TapsterError:
    try:
        book = parse_world_book(raw)
        return LibraryBook(book_id, book.name, compile_book(book, defaults))
    except TapsterError as error:
        return error


def selection_of(selection: Json) -> BookSelection:
    return compose_books(
        selection.get("explicitIds", []),
        selection.get("userBoundIds", []),
        selection.get("presetBoundIds", []),
        selection.get("characterBoundIds", []),
    )


@adapter("tavern_loader", "worldbook.compose")
def run_compose(given: Json) -> Json:
    selection = compose_books(given["explicit"], given["user"], given["preset"], given["character"])
    return keep(selection.to_json(), "effectiveIds duplicateIds")


def keep(value: Json, names: str) -> Json:
    return {name: value[name] for name in names.split() if name in value}
