"""Explanations of a scan in mode ``sillytavern``."""

from collections.abc import Iterator

import attrs

from tapster.engine.activation.sillytavern import ScanDecision, ScanResult
from tapster.engine.activation.sillytavern.entry import LOGICS
from tapster.engine.ecma import Json

from .explanation import Explanation, MatchPlace, write_explanation
from .words import Language


def explain_scan(result: ScanResult, language: Language = "en") -> Iterator[Explanation]:
    """Why each entry of the scanned books is in or out, in book order."""
    for decision in result.decisions():
        yield explain_decision(decision, language)


def explain_decision(decision: ScanDecision, language: Language = "en") -> Explanation:
    """Why one entry is in or out."""
    entry = decision.entry
    places = [MatchPlace(**attrs.asdict(place)) for place in (*decision.matched, *decision.secondary)]
    values: dict[str, Json] = {
        "keys": entry.keys,
        "others": entry.secondary_keys,
        "logic": LOGICS[entry.logic] if entry.logic in range(len(LOGICS)) else "-",
        **dict(decision.details),
    }
    word = _word(decision)
    text, needed = write_explanation(language, word, values, places, deeper=decision.by_min_activations)
    return Explanation(entry.name, entry.comment, decision.active, decision.reason, text, needed, decision.to_json())


def _word(decision: ScanDecision) -> str:
    if decision.reason == "secondary_keys":
        return "secondary_match" if decision.active else "secondary_miss"
    if decision.reason == "decorator":
        return "decorator_on" if decision.active else "decorator_off"
    return decision.reason
