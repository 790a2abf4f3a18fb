"""MVU: areas ``mvu.*`` of assembler.jsonl, ops ``mvu`` and ``mvu_init`` of user_reports.jsonl."""

from typing import Any

from tapster.engine import mvu
from tapster.engine.mvu.commands import ABSENT, Command
from tests.conformance.compare import differences
from tests.conformance.registry import adapter
from tests.conformance.user_reports_compare import compare_report, expand

Json = Any


def compare(expected: Json, actual: Json) -> list[str]:
    """Errors by their code; the slug of the failed check is informational."""
    if "error" not in expected:
        return differences(expected, actual)
    return differences(expected["error"].get("code"), (actual.get("error") or {}).get("code"), "$.error.code")


def command_json(command: Command) -> Json:
    value: dict[str, Json] = {"op": command.op, "path": list(command.path)}
    if command.source is not None:
        value["from"] = list(command.source)
    for name in ("value", "key", "target"):
        if getattr(command, name) is not ABSENT:
            value[name] = getattr(command, name)
    return value


@adapter("assembler", "mvu.path", compare=compare)
def run_path(given: Json) -> Json:
    parse = mvu.parse_pointer if given.get("pointer") else mvu.parse_path
    return {"parts": list(parse(given["path"]))}


@adapter("assembler", "mvu.parse", compare=compare)
def run_parse(given: Json) -> Json:
    return {"commands": [command_json(command) for command in mvu.parse_update(given["text"])]}


@adapter("assembler", "mvu.apply", compare=compare)
def run_apply(given: Json) -> Json:
    after = mvu.apply_update(given["variables"], given["text"])
    result = {"stat_data": after["stat_data"], "diagnostics": after.get("update_diagnostics", [])}
    names = {"schema": "schema", "delta": "delta_data", "display": "display_data"}
    return result | {names[want]: after[names[want]] for want in given.get("want", ())}


@adapter("assembler", "mvu.normalize", compare=compare)
def run_normalize(given: Json) -> Json:
    return {"variables": mvu.normalize_variables(given["variables"])}


@adapter("assembler", "mvu.init", compare=compare)
def run_init(given: Json) -> Json:
    return {"initial": {"stat_data": dict(mvu.initial_from_card(given["card"]).stat_data)}}


def without_bookkeeping(variables: Json) -> Json:
    return {key: value for key, value in variables.items() if key not in mvu.BOOKKEEPING}


@adapter("user_reports", "user.mvu", compare=compare_report)
def run_report(given: Json) -> Json:
    given = expand(given)
    after = mvu.apply_update(given["vars"], given["text"])
    return {"vars": without_bookkeeping(after), "history_text": mvu.history_text(given["text"])}


@adapter("user_reports", "user.mvu_init", compare=compare_report)
def run_init_report(given: Json) -> Json:
    given = expand(given)
    after = mvu.initialize_running(given.get("vars") or {}, mvu.merge_initial(given["initvar"]))
    return {"vars": without_bookkeeping(after)}
