"""Which public function of the product answers a vector line.

An adapter takes a line's ``input`` and returns what the product gives, in the vector's field names. It only translates
names. It is found by (file stem, area); an adapter without an area answers every line of its file, unknown areas too.
"""

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import attrs

from tapster.engine.errors import FormatError, TapsterError

Json = Any
Run = Callable[[Json], Json]
Compare = Callable[[Json, Json], list[str]]
"""(expected, actual) -> readable differences, empty when they agree."""


@attrs.frozen
class Adapter:
    run: Run
    compare: Compare | None = None


_ADAPTERS: dict[tuple[str, str | None], Adapter] = {}


def adapter(stem: str, area: str | None = None, *, compare: Compare | None = None) -> Callable[[Run], Run]:
    """Register a function as the adapter of (stem, area); ``area=None`` answers the whole file."""

    def register(run: Run) -> Run:
        if (stem, area) in _ADAPTERS:
            raise ValueError(f"two adapters for {stem} {area}")
        _ADAPTERS[stem, area] = Adapter(run, compare)
        return run

    return register


def find_adapter(stem: str, area: str) -> Adapter | None:
    """The adapter of one line, or None when there is none."""
    load_adapters()
    return _ADAPTERS.get((stem, area)) or _ADAPTERS.get((stem, None))


def load_adapters() -> None:
    """Import every module below ``adapters`` once."""
    package = importlib.import_module("tests.conformance.adapters")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def error_value(error: TapsterError) -> Json:
    """An error as the vectors write it: kind, code (null for a format slug), slug and status where there are any."""
    value: dict[str, Json] = {"type": error.kind, "code": error.code}
    if isinstance(error, FormatError):
        value["slug"] = error.slug
        if error.code == FormatError.code:
            value["code"] = None
    if error.status is not None:
        value["status"] = error.status
    return {"error": value}
