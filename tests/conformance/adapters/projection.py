"""Pending input and the greeting flag (``tavern_loader``: ``projection``, ``greeting.applies``)."""

from typing import Any

from tapster.engine.projection import (
    HistoryMessage,
    PendingInput,
    ProjectionLimits,
    activate,
    end_turn,
    greeting_applies,
    observe,
    replay,
)
from tests.conformance.registry import adapter

Json = Any


@adapter("tavern_loader", "greeting.applies")
def run_greeting(given: Json) -> Json:
    return {"applies": greeting_applies(HistoryMessage.from_json(host_message(m)) for m in given["messages"])}


@adapter("tavern_loader", "projection")
def run_projection(given: Json) -> Json:
    history = history_of(given.get("durable", []))
    preload = [host_event(splice) for splice in given.get("preload", [])][given.get("seedLength", 0) :]
    state = PendingInput(limits=ProjectionLimits.from_options(given.get("options", {})))
    opened = False
    results: list[Json] = []
    for step in given["steps"]:
        if not opened and "durable" not in step:
            state = replay(state, preload, before=step.get("splice", {}).get("seq"))
            opened = True
        if "splice" in step:
            state, accepted = observe(state, host_event(step["splice"]))
            results.append(accepted)
        elif "activate" in step:
            context, state = activate(state, history)
            results.append(context.to_json())
        else:
            history = history_of(step["durable"]) if "durable" in step else history
            state = end_turn(state) if "turnEnd" in step else state
            results.append(None)
    return {"results": results}


def history_of(messages: list[Json]) -> list[HistoryMessage]:
    return [HistoryMessage.from_json(host_message(message)) for message in messages]


def host_event(splice: Json) -> Json:
    data = {key: value for key, value in splice.items() if key not in ("seq", "type")}
    if isinstance(data.get("inserted"), list):
        data["inserted"] = [host_message(message) for message in data["inserted"]]
    return {"type": splice.get("type", "agent/inbox/spliced"), "seq": splice.get("seq"), "data": data}


def host_message(message: Json) -> Json:
    if not isinstance(message, dict):
        return message
    content = message["blocks"] if "blocks" in message else [{"type": "text", "text": message.get("text")}]
    return {"role": "user", **message, "content": content}
