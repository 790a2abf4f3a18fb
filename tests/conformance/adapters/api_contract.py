"""tavern_api: settings, mode, messages, titles, the operation log."""

import re
from collections.abc import Callable
from typing import Any

from tapster.engine.contract import (
    OperationLog,
    check_chrome,
    check_conversation_settings,
    check_ui_settings,
    has_incomplete_turn,
    project_messages,
    session_title,
)
from tapster.engine.contract.messages import messages_of_events
from tapster.engine.contract.operation_log import PREFIX
from tapster.engine.errors import RequestError
from tests.conformance.registry import adapter

Json = Any
STEM = "tavern_api"
CHECKS: dict[str, Callable[[Json], Any]] = {
    "settings.ui": check_ui_settings,
    "settings.conversation": check_conversation_settings,
    "chrome.validate": check_chrome,
}


def checked(area: str, given: Json) -> Json:
    try:
        return {"ok": True, "value": CHECKS[area](given).to_json()}
    except RequestError as error:
        return {"ok": False, "status": error.status or 400, "code": None}


@adapter(STEM, "settings.ui")
def run_ui(given: Json) -> Json:
    return checked("settings.ui", given)


@adapter(STEM, "settings.conversation")
def run_conversation(given: Json) -> Json:
    return checked("settings.conversation", given)


@adapter(STEM, "chrome.validate")
def run_chrome(given: Json) -> Json:
    return checked("chrome.validate", given)


@adapter(STEM, "messages.project")
def run_messages(given: Json) -> Json:
    derived = given.get("messages")
    messages = project_messages(messages_of_events(given["events"]) if derived is None else derived, given["events"])
    return {"messages": messages, "incompleteTurn": has_incomplete_turn(given["events"])}


@adapter(STEM, "messages.openTurn")
def run_open_turn(given: Json) -> Json:
    return {"incompleteTurn": has_incomplete_turn(given["events"])}


@adapter(STEM, "session.title")
def run_title(given: Json) -> Json:
    return {"title": session_title(given["characterName"], given["now"])}


@adapter(STEM, "operation.log")
def run_operation_log(given: Json) -> Json:
    """The clock is 0 at the start and so many ms later at each reading; a call is ``name(arguments)``."""
    step = re.search(r"([+-][0-9.]+) ms", given.get("clock", ""))
    per_reading = float(step[1]) if step else 5
    log = OperationLog(given["operationId"], given["operation"], 0)
    fields = given["fields"]
    readings = 0
    lines: list[Json] = []
    for text in given["calls"]:
        name, _, rest = text.removesuffix(")").partition("(")
        arguments = [part.strip() for part in rest.split(",") if part.strip()]
        named = dict(part.split(" ", 1) for part in arguments if " " in part)
        passed = fields if "fields" in arguments else {}
        match name:
            case "start":
                line = log.start(passed)
            case "stage":
                line = log.stage(arguments[0], passed)
            case "success":
                readings += 1
                line = log.success(per_reading * readings, passed, named.get("result", "ok"))
            case _:
                readings += 1
                status = int(named["status"]) if "status" in named else None
                line = log.failure(per_reading * readings, passed, named.get("code"), status)
        if line is not None:
            lines.append({"level": line.level, "prefix": PREFIX, "payload": dict(line.payload)})
    return {"lines": lines}
