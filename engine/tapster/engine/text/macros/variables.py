"""Local and global variables: the loose number, list and key rules of SillyTavern, over a copy-on-write store."""

from collections.abc import Mapping
from typing import TypeAlias

from tapster.engine import ecma
from tapster.engine.errors import FormatError

from .context import Json, Variables
from .registry import Call, MacroDefinition, aliases

Number: TypeAlias = float


class VariableStore:
    """Variables under change; the mapping it started from is never written to."""

    def __init__(self, values: Variables) -> None:
        self.values: Variables = values
        self._own: dict[str, Json] | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def set(self, name: str, value: Json) -> None:
        if self._own is None:
            self.values = self._own = dict(self.values)
        self._own[name] = value

    def delete(self, name: str) -> None:
        if name in self.values:
            self.set(name, None)
            assert self._own is not None
            del self._own[name]

    def get(self, name: str) -> Json:
        """The value, a numeric string as a number; an absent one is empty."""
        value = self.values.get(name)
        if isinstance(value, str):
            number = as_number(value) if ecma.trim(value) else None
            return value if number is None else number
        return "" if value is None else value

    def text(self, name: str) -> str:
        return as_text(self.get(name))

    def add(self, name: str, value: str) -> Json:
        """Append to a list, add numbers, join everything else; gives the new value."""
        current = self.get(name)
        current = 0 if current in ("", False) else current
        items = _list_in(current)
        if items is not None:
            self.set(name, ecma.stringify([*items, value]))
            return [*items, value]
        increment, base = as_number(value), as_number(current)
        if increment is None or base is None:
            joined = ("" if current == 0 else as_text(current)) + value
            self.set(name, joined)
            return joined
        total = tidy(base + increment)
        self.set(name, total)
        return total

    def subtract(self, name: str, value: str) -> None:
        """Subtract a number from a number; anything else changes nothing."""
        current = self.get(name)
        decrement, base = as_number(value), as_number(current if current != "" else 0)
        if decrement is not None and base is not None:
            self.set(name, tidy(base - decrement))

    def key(self, name: str, key: str) -> Json:
        """A member of a stored JSON list or object, empty when there is none."""
        container = _json_in(self.values.get(name))
        found: Json = None
        if isinstance(container, Mapping):
            found = container.get(key)
        elif isinstance(container, list) and key.isascii() and key.isdigit() and int(key) < len(container):
            found = container[int(key)]
        if isinstance(found, str):
            number = as_number(found) if ecma.trim(found) else None
            return found if number is None else number
        return "" if found is None else found

    def set_key(self, name: str, key: str, value: str) -> None:
        """Set a member of a stored JSON list or object; an absent one becomes a list for a number, else an object."""
        container = _json_in(self.values.get(name))
        index = int(key) if key.isascii() and key.isdigit() and len(key) < 5 else None
        if isinstance(container, list) and index is not None:
            items = [*container, *[None] * (index + 1 - len(container))]
            items[index] = value
            self.set(name, ecma.stringify(items))
        elif isinstance(container, Mapping):
            self.set(name, ecma.stringify({**container, key: value}))
        elif index is not None:
            self.set(name, ecma.stringify([*[None] * index, value]))
        else:
            self.set(name, ecma.stringify({key: value}))


def as_number(value: Json) -> Number | None:
    """``Number(value)``, or None for what is not a number."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    if isinstance(value, str):
        return ecma.to_number(value) if ecma.trim(value) else 0
    return None


def tidy(number: Number) -> Number:
    """A whole float as an int."""
    return int(number) if float(number).is_integer() and abs(number) <= ecma.MAX_SAFE_INTEGER else number


def as_text(value: Json) -> str:
    """What a macro prints for a value."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return ecma.number_text(value)
    return ecma.stringify(value)


def _json_in(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return ecma.parse_json(value)
    except FormatError:
        return None


def _list_in(value: Json) -> list[Json] | None:
    parsed = _json_in(value) if not isinstance(value, str) or value.lstrip()[:1] == "[" else None
    return parsed if isinstance(parsed, list) else None


def _store(call: Call) -> VariableStore:
    return call.run.globals if "global" in call.name else call.run.local


def _set(call: Call) -> str:
    _store(call).set(call.arguments[0], call.arguments[1])
    return ""


def _add(call: Call) -> str:
    _store(call).add(call.arguments[0], call.arguments[1])
    return ""


def _step(call: Call) -> str:
    return as_text(_store(call).add(call.arguments[0], "1" if call.name.startswith("inc") else "-1"))


def _delete(call: Call) -> str:
    _store(call).delete(call.arguments[0])
    return ""


def _set_key(call: Call) -> str:
    _store(call).set_key(*call.arguments)
    return ""


def _message_variable(call: Call) -> str:
    from tapster.engine.mvu.paths import read_path

    return as_text(read_path(call.run.context.message_variables, call.arguments[0]))


def _both(names: str, definition: MacroDefinition) -> dict[str, MacroDefinition]:
    """Local names (with ``*`` where ``global`` goes) for both stores."""
    return aliases(names.replace("*", "") + " " + names.replace("*", "global"), definition)


MACROS = {
    **_both("set*var", MacroDefinition(_set, 2, 2)),
    **_both("get*var", MacroDefinition(lambda call: _store(call).text(call.arguments[0]), 1, 1)),
    **_both("add*var", MacroDefinition(_add, 2, 2)),
    **_both("inc*var dec*var", MacroDefinition(_step, 1, 1)),
    **_both(
        "has*var *varexists",
        MacroDefinition(lambda call: as_text(call.arguments[0] in _store(call)), 1, 1),
    ),
    **_both("delete*var flush*var", MacroDefinition(_delete, 1, 1)),
    **_both("set*varkey set*varindex", MacroDefinition(_set_key, 3, 3)),
    **_both("get*varkey get*varindex", MacroDefinition(lambda call: as_text(_store(call).key(*call.arguments)), 2, 2)),
    **aliases("get_message_variable getMessageVariable", MacroDefinition(_message_variable, 1, 1)),
}
