"""The table of every error class of the product, as ``docs/errors.md`` holds it.

``python -m tests.support.error_table`` writes the page anew.
"""

import importlib
import pkgutil
from pathlib import Path

import tapster.actors
import tapster.api
import tapster.engine
import tapster.runtime
from tapster.api.errors import FAULT_STATUS, status_of
from tapster.engine.errors import TapsterError
from tapster.runtime import RuntimeFault

PAGE = Path(__file__).resolve().parents[2] / "docs" / "errors.md"
HEAD = """# Error codes

Made by `python -m tests.support.error_table` from the classes themselves; a test compares them.
`status` is the HTTP status when the error reaches a border and its code isn't listed in
`tapster.api.errors.CODE_STATUS`; a class that serves many rows of the contract (its code is passed when it's raised) is
listed once with its default. Where each family of routes puts the code stands in [http.md](http.md).

| code | status | class | means |
| --- | --- | --- | --- |
"""


def classes() -> list[type[Exception]]:
    """Every error class, after every module was imported."""
    for package in (tapster.engine, tapster.runtime, tapster.actors, tapster.api):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    found: set[type[Exception]] = set()
    waiting: list[type[Exception]] = [TapsterError, RuntimeFault]
    while waiting:
        known = waiting.pop()
        if known not in found and known.__module__.startswith("tapster."):
            found.add(known)
            waiting += known.__subclasses__()
    return sorted(found, key=lambda item: (str(vars(item).get("code", item.code)), item.__name__))  # type: ignore[attr-defined]


def status_text(kind: type[Exception]) -> str:
    """The HTTP status of a class."""
    if issubclass(kind, TapsterError):
        blank = kind.__new__(kind)
        return str(status_of(blank))
    return str(next((status for fault, status in FAULT_STATUS.items() if issubclass(kind, fault)), 500))


def page() -> str:
    """The whole page."""
    rows = []
    for kind in classes():
        meaning = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".").replace("|", "\\|")
        place = f"{kind.__module__.removeprefix('tapster.')}.{kind.__name__}"
        rows.append(f"| `{kind.code}` | {status_text(kind)} | `{place}` | {meaning} |\n")  # type: ignore[attr-defined]
    return HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
