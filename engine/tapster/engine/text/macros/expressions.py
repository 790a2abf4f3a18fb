"""Variable expressions: ``{{.name}}``, ``{{$name += 3}}``, ``{{.name ?? fallback}}``."""

from typing import TYPE_CHECKING

from tapster.engine.ecma import WHITE_SPACE

from .syntax import VariableExpression
from .variables import as_number, as_text

if TYPE_CHECKING:
    from .evaluate import Run

_FALSY = ("", 0, False, "0", "false", "off")


def variable_expression(run: "Run", node: VariableExpression) -> str:
    """What the expression prints, after its effect on the store."""
    store = run.globals if node.is_global else run.local
    operator, name = node.operator, node.name
    if operator == "":
        return store.text(name)
    if operator in ("++", "--"):
        return as_text(store.add(name, "1" if operator == "++" else "-1"))
    exists = name in store
    current = store.get(name)
    if operator.startswith("??") and exists:
        return as_text(current)
    if operator.startswith("||") and not is_falsy(current):
        return as_text(current)
    value = run.plain(node.value.nodes).strip(WHITE_SPACE) if node.value is not None else ""
    if operator in ("??", "||"):
        return value
    if operator in ("??=", "||="):
        store.set(name, value)
        return value
    if operator in ("=", "+=", "-="):
        change = {"=": store.set, "+=": store.add, "-=": store.subtract}[operator]
        change(name, value)
        return ""
    return "true" if compare(operator, as_text(current), value) else "false"


def is_falsy(value: object) -> bool:
    text = value.strip(WHITE_SPACE).lower() if isinstance(value, str) else value
    return text in _FALSY


def compare(operator: str, left: str, right: str) -> bool:
    """Equality of texts; order of numbers, false when either is none."""
    if operator in ("==", "!="):
        return (left == right) == (operator == "==")
    first, second = as_number(left), as_number(right)
    if first is None or second is None:
        return False
    return {">": first > second, ">=": first >= second, "<": first < second, "<=": first <= second}[operator]
