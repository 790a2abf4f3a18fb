"""Why each prompt and each world-book entry is in a request or not, for a client or a person."""

from collections.abc import Iterable

from tapster.actors.session import Assembled
from tapster.engine.activation import Explanation, explain
from tapster.engine.activation.explanations import Language
from tapster.engine.activation.sillytavern import ScanResult
from tapster.engine.activation.tavern import AdapterResult
from tapster.engine.ecma import Json
from tapster.engine.profile import ProfileSnapshot
from tapster.engine.profile.explanations import PromptExplanation, explain_assembly, explain_profile
from tapster.engine.profile.sillytavern import Assembly


def explain_assembled(assembled: Assembled, language: Language) -> Json:
    """The explanation of what a session would send."""
    return explain_profile_with(assembled.lore or AdapterResult((), ()), assembled.snapshot, language)


def explain_profile_with(lore: AdapterResult | ScanResult, snapshot: ProfileSnapshot, language: Language) -> Json:
    """The explanation of the contract's profile, whichever mode its entries were activated in."""
    return _explained(
        "sillytavern" if isinstance(lore, ScanResult) else "tavern",
        language,
        explain_profile(snapshot, language),
        explain(lore, language),
        [diagnostic.to_json() for diagnostic in snapshot.diagnostics],
    )


def explain_sillytavern(assembly: Assembly, language: Language) -> Json:
    """The explanation of SillyTavern's own request."""
    return _explained(
        "sillytavern",
        language,
        explain_assembly(assembly, language),
        explain(assembly.scan, language),
        [warning.to_json() for warning in assembly.warnings],
    )


def _explained(
    mode: str,
    language: Language,
    prompts: Iterable[PromptExplanation],
    entries: Iterable[Explanation],
    diagnostics: Iterable[Json],
) -> Json:
    return {
        "mode": mode,
        "language": language,
        "prompts": [{**prompt.to_json(), "needed": prompt.needed} for prompt in prompts],
        "entries": [
            {
                "entry": entry.entry,
                "name": entry.name,
                "active": entry.active,
                "reason": entry.reason,
                "text": entry.text,
                "needed": entry.needed,
                "data": dict(entry.data),
            }
            for entry in entries
        ],
        "diagnostics": list(diagnostics),
    }
