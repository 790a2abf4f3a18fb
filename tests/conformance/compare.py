"""Structural comparison of JSON values with readable differences."""

import math
from typing import Any

Json = Any
SHOWN = 160


def differences(expected: Json, actual: Json, path: str = "$") -> list[str]:
    """Where two JSON values differ: numbers by value, lists in order, member order free, bool is not a number."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        found = [f"{path}.{key}: missing, expected {show(expected[key])}" for key in expected if key not in actual]
        found += [f"{path}.{key}: not expected, got {show(actual[key])}" for key in actual if key not in expected]
        for key in expected:
            if key in actual:
                found += differences(expected[key], actual[key], f"{path}.{key}")
        return found
    if isinstance(expected, list) and isinstance(actual, list):
        found = []
        if len(expected) != len(actual):
            found.append(f"{path}: expected {len(expected)} items, got {len(actual)}")
        for index, (left, right) in enumerate(zip(expected, actual, strict=False)):
            found += differences(left, right, f"{path}[{index}]")
        return found
    return [] if same_scalar(expected, actual) else [f"{path}: expected {show(expected)}, got {show(actual)}"]


def same_scalar(expected: Json, actual: Json) -> bool:
    """Equality of two JSON leaves; numbers within 1e-9."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return expected == actual or math.isclose(expected, actual, rel_tol=1e-9, abs_tol=1e-9)
    return type(expected) is type(actual) and bool(expected == actual)


def show(value: Json) -> str:
    """A value in ASCII, cut to one line; safe for any character, lone surrogates included."""
    text = ascii(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"
