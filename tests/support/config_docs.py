"""``docs/configuration.md``: every setting, from the class that holds them.

``python -m tests.support.config_docs --write`` writes the page anew; without ``--write`` it is printed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, get_args

import attrs

from tapster.api import config
from tapster.api.config import settings
from tapster.engine.ecma import stringify

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
HEAD: Final = """# Configuration

Made by `python -m tests.support.config_docs --write` from the settings themselves; a test compares them.

A setting comes from a TOML file, then the environment, then a flag of the command; later ones win. The file is
`tapster.toml` in the user's configuration folder (on Linux `~/.config/tapster/tapster.toml`), which need not exist, or
the one that `tapster --config FILE` names. `tapster config` shows every setting, its value and where it came from.
A key that isn't listed here, or a value of another kind, stops the start with one line that names it.

| in the file | in the environment | takes | default | what it does |
| --- | --- | --- | --- | --- |
"""
TAIL: Final = """
Example file:

```toml
{example}```

Lists are written as TOML arrays in the file and with commas in the environment. `provider.url` is the base address of
any OpenAI-compatible server and usually ends in `/v1`; without one, requests to a model fail with `NO_ADAPTER` and
everything else works. `server.allow_remote` opens Tapster to other machines: set `server.token` with it.
"""
EXAMPLE: Final = {
    "server.port": 7788,
    "provider.url": "http://127.0.0.1:11434/v1",
    "provider.model": "llama3.2",
    "page.locale": "en",
}


def kind_of(field: attrs.Attribute[Any]) -> str:
    """What a setting takes, in words."""
    name = str(field.type).removesuffix(" | None")
    words = {"Path": "a path", "bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
    if name == "tuple[str, ...]":
        return "a list of texts"
    choices = get_args(getattr(config, name, None))
    return " or ".join(f"`{choice}`" for choice in choices) if choices else words[name]


def default_of(field: attrs.Attribute[Any]) -> str:
    """A setting's default, without this machine's folders."""
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return "the user's data folder (on Linux `~/.local/share/tapster`)"
    if field.default is None or field.default == ():
        return "none"
    text = str(field.default)
    return f"`{text.lower() if isinstance(field.default, bool) else text}`"


def rows() -> Iterator[str]:
    """The table's rows."""
    for field in settings():
        given = field.metadata
        secret = " Shown as set or not set only." if given["secret"] else ""
        yield (
            f"| `{given['key']}` | `{given['env']}` | {kind_of(field)} | {default_of(field)} "
            f"| {given['help']}{secret} |\n"
        )


def example() -> str:
    """A file that sets what most people set."""
    lines: list[str] = []
    section = ""
    for key, value in EXAMPLE.items():
        table, name = key.split(".")
        if table != section:
            lines.append(f"{'' if not lines else chr(10)}[{table}]\n")
            section = table
        lines.append(f"{name} = {stringify(value)}\n")
    return "".join(lines)


def page() -> str:
    """The whole page."""
    return HEAD + "".join(rows()) + TAIL.format(example=example())


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        sys.stdout.write(page())
