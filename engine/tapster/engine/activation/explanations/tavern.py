"""Explanations of an activation in mode ``tavern``."""

from collections.abc import Iterator

from tapster.engine.activation.tavern import AdapterResult, BookReport, Decision
from tapster.engine.ecma import Json

from .explanation import Explanation, MatchPlace, write_explanation
from .words import Language

_WORDS = {
    "constant": "constant",
    "vector-match": "vector_match",
    "primary-key-match": "primary_key",
    "disabled": "disabled",
    "external-vector-match-required": "needs_external_match",
    "primary-key-miss": "no_key_match",
    "inclusion-group-loser": "group_lost",
    "probability-failed": "probability",
    "budget-exceeded": "budget",
    "empty-content": "empty_content",
    "outlet-unsupported": "outlet_unsupported",
}


def explain_books(result: AdapterResult, language: Language = "en") -> Iterator[Explanation]:
    """Why each entry of the matched books is in or out, book after book."""
    for report in result.reports:
        for decision in report.decisions():
            yield explain_book_decision(report, decision, language)


def explain_book_decision(report: BookReport, decision: Decision, language: Language = "en") -> Explanation:
    """Why one entry of a book is in or out."""
    candidate = decision.candidate
    entry, evaluation = candidate.entry, candidate.evaluation
    places = [
        MatchPlace(hit.key, "text", "", hit.start, hit.end) for hit in (*evaluation.primary, *evaluation.secondary)
    ]
    lost = candidate.lost
    values: dict[str, Json] = {
        "keys": entry.keys,
        "others": entry.secondary_keys,
        "logic": entry.selective_logic,
        "group": lost and lost.group,
        "winner": lost and lost.winner,
        "by": lost and lost.by,
        "chance": candidate.probability,
        "roll": candidate.roll,
        "budget": report.activation.budget.limit,
    }
    text, needed = write_explanation(language, _word(decision.reason), values, places)
    name = f"{report.resource_id}:{entry.uid}"
    data = {**decision.to_json(), "group": lost and {"name": lost.group, "winner": lost.winner, "by": lost.by}}
    return Explanation(name, entry.comment, decision.decision == "included", decision.reason, text, needed, data)


def _word(reason: str) -> str:
    if reason.startswith("secondary-"):
        return "secondary_match" if reason.endswith("-match") else "secondary_miss"
    return _WORDS[reason]
