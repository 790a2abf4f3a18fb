"""How a line of ``user_reports`` is compared: one rule for each key of ``expect``.

An adapter returns the product's answer under the keys of the vectors' README and registers ``compare=compare_report``.
Keys that ``expect`` leaves out are not looked at. The product gives warnings and errors as ``{"code", "message"}``.

Source: the vectors' README, "user_reports.jsonl".
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tapster.engine.errors import TapsterError
from tests.conformance.compare import differences, show

Json = Any
Rule = Callable[[Json, Json, str, Json], list[str]]
"""(expected, actual value of the key, path, the whole answer) -> differences."""


def expand(value: Json) -> Json:
    """A line's input with every ``{"$repeat": [text, n]}`` written out."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, count = value["$repeat"]
            return text * count
        return {key: expand(item) for key, item in value.items()}
    return [expand(item) for item in value] if isinstance(value, list) else value


def report_error(error: TapsterError, words: Mapping[str, str] | None = None) -> Json:
    """An error in the shape this module compares; ``words`` maps the product's codes to the README's."""
    table = words or {}
    slug = str(getattr(error, "slug", ""))
    return {"error": {"code": table.get(slug) or table.get(error.code) or error.code, "message": error.message}}


def compare_report(expected: Json, actual: Json) -> list[str]:
    """Where an answer misses what a line expects, with the keys of ``wanted`` (the run is ``quirks = repaired``)."""
    expected = expand(expected)
    shared = {key: value for key, value in expected.items() if key not in ("st", "wanted", "bench")}
    return _object(shared | expected.get("wanted", {}), actual, "$")


def compare_exact_report(expected: Json, actual: Json) -> list[str]:
    """As ``compare_report`` for a run with ``quirks = exact``: the keys of ``st`` count."""
    return compare_report({**expected, "wanted": expected.get("st", {})}, actual)


def part(expected: Json, actual: Json, path: str) -> list[str]:
    """Every key given is there and equal; lists item by item with the same length; other keys are free."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = []
        for key, value in expected.items():
            if key in actual:
                found += part(value, actual[key], f"{path}.{key}")
            else:
                found.append(f"{path}.{key}: missing, expected {show(value)}")
        return found
    if isinstance(expected, list) and isinstance(actual, list):
        if len(expected) != len(actual):
            return [f"{path}: expected {len(expected)} items, got {len(actual)}: {show(actual)}"]
        return [
            line
            for index, (left, right) in enumerate(zip(expected, actual, strict=True))
            for line in part(left, right, f"{path}[{index}]")
        ]
    return differences(expected, actual, path)


def among(expected: list[Json], actual: list[Json], path: str) -> list[str]:
    """Every item of the list is found, item by item as part; more may be there."""
    return [
        f"{path}: {show(item)} is not among {show(actual)}"
        for item in expected
        if all(part(item, other, path) for other in actual)
    ]


def as_set(expected: list[Json], actual: list[Json], path: str) -> list[str]:
    """The same items without order."""
    missing = [item for item in expected if all(differences(item, other) for other in actual)]
    extra = [item for item in actual if all(differences(item, other) for other in expected)]
    found = [f"{path}: {show(item)} is missing from {show(actual)}" for item in missing]
    found += [f"{path}: {show(item)} was not expected" for item in extra]
    return found or ([] if len(expected) == len(actual) else [f"{path}: an item occurs more than once: {show(actual)}"])


def mentioned(expected: Json, actual: Json, path: str) -> list[str]:
    """A warning or error: the code is equal, every string of ``mention`` is in the message."""
    if not isinstance(actual, dict) or expected["code"] != actual.get("code"):
        return [f"{path}: expected code {expected['code']!r}, got {show(actual)}"]
    message = str(actual.get("message", ""))
    return [
        f"{path}: {show(text)} is not in {show(message)}" for text in expected.get("mention", []) if text not in message
    ]


def _object(expected: Json, actual: Json, path: str) -> list[str]:
    if not isinstance(actual, dict):
        return [f"{path}: expected an object, got {show(actual)}"]
    if "error" in actual and "error" not in expected:
        return [f"{path}: an error that was not expected: {show(actual['error'])}"]
    found = []
    for key, value in expected.items():
        if key not in _RULES and key not in actual:
            found.append(f"{path}.{key}: missing, expected {show(value)}")
            continue
        found += _RULES.get(key, _equal)(value, actual.get(key), f"{path}.{key}", actual)
    return found


def _equal(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    return differences(expected, actual, path)


def _given_equal(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    """Objects: equal for the keys given. Lists: equal."""
    if not isinstance(expected, dict):
        return differences(expected, actual, path)
    return [
        line for key, value in expected.items() for line in differences(value, (actual or {}).get(key), f"{path}.{key}")
    ]


def _itemised(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    """Tokens of the sources given; one that has no part in the request has none."""
    return _given_equal(expected, dict.fromkeys(expected, 0) | (actual or {}), path, answer)


def _part(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    return part(expected, actual, path)


def _among(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    return among(expected, actual or [], path)


def _set(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    return as_set(expected, actual or [], path)


def _subset(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    return [f"{path}: {show(item)} is missing" for item in expected if item not in (actual or [])]


def _waves(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    waves = actual or []
    if len(expected) != len(waves):
        return [f"{path}: expected {show(expected)}, got {show(waves)}"]
    pairs = enumerate(zip(expected, waves, strict=True))
    return [line for index, (left, right) in pairs for line in as_set(left, right, f"{path}[{index}]")]


def _trace(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    facts = actual or {}
    return [line for label, given in expected.items() for line in among(given, facts.get(label, []), f"{path}.{label}")]


def _warnings(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    found = actual or []
    return [
        f"{path}: {show(item)} is not among {show(found)}"
        for item in expected
        if all(mentioned(item, other, path) for other in found)
    ]


def _error(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    return mentioned(expected, actual, path)


def _messages(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    given = [{"role": message["role"], "content": message["content"]} for message in actual or []]
    return differences(expected, given, path)


def _contents(answer: Json) -> list[str]:
    return [str(message["content"]) for message in answer.get("messages") or []]


def _contains(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    contents = _contents(answer)
    return [f"{path}: {show(text)} is in no message" for text in expected if not any(text in item for item in contents)]


def _not_contains(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    contents = _contents(answer)
    return [f"{path}: {show(text)} is in a message" for text in expected if any(text in item for item in contents)]


def _must_not_merge(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    contents = _contents(answer)
    return [
        f"{path}: {show(pair)} stand in one message"
        for pair in expected
        if any(all(text in item for text in pair) for item in contents)
    ]


def _json_equal(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    try:
        value = json.loads(answer.get("text", ""))
    except ValueError:
        return [f"{path}: {show(answer.get('text'))} is not JSON"]
    return differences(expected, value, path)


def _steps(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    steps = actual or []
    if len(expected) != len(steps):
        return [f"{path}: expected {len(expected)} steps, got {len(steps)}"]
    pairs = enumerate(zip(expected, steps, strict=True))
    return [line for index, (left, right) in pairs for line in _object(left, right, f"{path}[{index}]")]


def _result(expected: Json, actual: Json, path: str) -> list[str]:
    if not isinstance(actual, dict):
        return [f"{path}: expected {show(expected)}, got {show(actual)}"]
    if "error" in actual and "error" not in expected:
        return [f"{path}: an error that was not expected: {show(actual['error'])}"]
    found = []
    for key, value in expected.items():
        if key == "state_is_one_of":
            if actual.get("state") not in value:
                found.append(f"{path}.state: {show(actual.get('state'))} is none of {show(value)}")
        elif key in ("error", "warnings"):
            found += _RULES[key](value, actual.get(key), f"{path}.{key}", actual)
        else:
            found += part({key: value}, actual, path)
    return found


def _results(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    results = actual or []
    if len(expected) != len(results):
        return [f"{path}: expected {len(expected)} results, got {len(results)}"]
    pairs = enumerate(zip(expected, results, strict=True))
    return [line for index, (left, right) in pairs for line in _result(left, right, f"{path}[{index}]")]


def _final(expected: Json, actual: Json, path: str, answer: Json) -> list[str]:
    return [
        line
        for document, value in expected.items()
        for line in _result(value, (actual or {}).get(document), f"{path}.{document}")
    ]


_RULES: Mapping[str, Rule] = {
    "active_set": _set,
    "card_export": _part,
    "contains": _contains,
    "diagnostics": _among,
    "entries": _part,
    "error": _error,
    "final": _final,
    "first": _messages,
    "inactive": _part,
    "itemised": _itemised,
    "json_equal": _json_equal,
    "kept": _subset,
    "kept_aside": _given_equal,
    "matched": _given_equal,
    "messages": _messages,
    "must_not_merge": _must_not_merge,
    "not_contains": _not_contains,
    "results": _results,
    "second": _messages,
    "steps": _steps,
    "texts": _given_equal,
    "trace": _trace,
    "warnings": _warnings,
    "waves": _waves,
    "world_export": _part,
}
"""Key of ``expect`` → rule; every other key is compared as equal."""
