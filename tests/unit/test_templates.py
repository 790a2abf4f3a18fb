"""Templates: syntax, helpers, refusals, places of errors, isolation."""

from typing import Any

import pytest

from tapster.actors.scripts import QuickJsTemplateEngine, open_regex_engine
from tapster.engine.text.templates import (
    Lookup,
    RegexArgument,
    Surroundings,
    TemplateBook,
    TemplateData,
    TemplateEntry,
    TemplateError,
    TemplateSyntaxError,
    render_template,
)

ENGINE = QuickJsTemplateEngine(budget_ms=500)
BOOKS = (
    TemplateBook("b1", "First", (TemplateEntry("1", "Inn", "warm"), TemplateEntry("2", "Road", "long"))),
    TemplateBook("b2", "Second", (TemplateEntry("1", "Inn", "cold"),)),
)
DATA = TemplateData(BOOKS, (), "c1", "Bo", "a fox").resolver(open_regex_engine())
VARIABLES = {"a": {"b": [1, {"c d": "x"}]}, "n": None, "t": "<&>", "e": ""}


def render(source: str, variables: Any = VARIABLES, **more: Any) -> str:
    return render_template(source, variables, DATA, ENGINE, name="card", **more)


def failure(source: str, **more: Any) -> TemplateError:
    with pytest.raises(TemplateError) as caught:
        render(source, **more)
    return caught.value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plain {{user}} %>", "plain {{user}} %>"),
        ("<%= variables.t %><%- variables.t; %>", "&lt;&amp;&gt;<&>"),
        ("<%- variables.n %>|<%- undefined %>|<%- 0 %>", "||0"),
        ("a<% // note %>b", "ab"),
        ("a \t<%_ %>b<% -%>\r\n\nc<% _%>\n \n d", "ab\ncd"),
        ("<% print('x', 1, null) %>", "x1"),
        ("<%- getvar('a.b[1][\"c d\"]') %><%- getvar('a.zz', {defaults: 'no'}) %>", "xno"),
        ("<%- getvar('').t %><%- typeof getvar('a', {clone: true}) %><%- getvar('n', 'cache') %>", "<&>object"),
        (
            "<%- await getwi('Second', 'Inn') %> <%- await getWorldInfo('b1', 2) %> <%- getwi(/^ro/i) %>",
            "cold long long",
        ),
        (
            "<%- await getchar() %><%- await getChara('Bo') %><%- await getchar('Al') %><%- await getpreset('x') %>",
            "a foxa fox",
        ),
        ("<% variables.a.b.push(2) ; %>", None),
        ('é😀<% if (true) { %>\u2028"\\<% } %>', 'é😀\u2028"\\'),
    ],
)
def test_rendering(source: str, expected: str | None) -> None:
    if expected is None:
        assert "TypeError" in failure(source).message
    else:
        assert render(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "<% setvar('a', 1) %>", "<% execute('x') %>", "<% getvar('a', {other: 1}) %>", "<% getvar('a', 'global') %>",
        "<% getvar('__proto__') %>", "<% getvar('a.') %>", "<% await getwi('a', 'b', {}) %>",
        "<% await getpreset('a', 1) %>",
    ],
)  # fmt: skip
def test_refusals(source: str) -> None:
    assert failure(source).code == "TEMPLATE_EXECUTION_FAILED"


def test_lookups_are_checked_and_counted() -> None:
    assert failure("<% try { getwi({}) } catch {} %>").code == "TEMPLATE_DEPENDENCY_INVALID"
    assert failure("<% getwi('x'.repeat(5000)) %>").code == "TEMPLATE_DEPENDENCY_INVALID"
    assert failure("<% for (let i = 0; i < 600; i++) getwi('x') %>").code == "TEMPLATE_DEPENDENCY_LIMIT"
    seen: list[Lookup] = []

    def resolve(lookup: Lookup) -> str:
        seen.append(lookup)
        return "answer"

    assert render_template("<%- await getwi(/a/gi, 7) %>", {}, resolve, ENGINE) == "answer"
    assert seen == [Lookup("getwi", (RegexArgument("a", "gi"), 7))]


def test_errors_name_file_line_and_column() -> None:
    error = failure("one\ntwo <% missing() %>")
    assert (error.details["template"], error.details["line"], error.details["column"]) == ("card", 2, 8)
    assert error.message.startswith("card:2:8: ReferenceError")
    assert failure("<% ok = 1 %>\n\n<% let 5 %>").details["line"] == 3
    with pytest.raises(TemplateSyntaxError) as caught:
        render("a\nb <% open")
    assert (caught.value.details["line"], caught.value.details["column"], caught.value.kind) == (2, 3, "TypeError")


def test_limits_of_input_and_output() -> None:
    assert failure("x" * 131_073).code == "TEMPLATE_INPUT_LIMIT"
    assert failure("", variables={"x": "y" * 2_100_000}).code == "TEMPLATE_INPUT_LIMIT"
    assert failure("<%- 'x'.repeat(524289) %>").code == "TEMPLATE_OUTPUT_LIMIT"
    assert failure("<%- 'é'.repeat(300000) %>").code == "TEMPLATE_OUTPUT_LIMIT"
    with pytest.raises(TemplateError) as caught:
        render_template("<%- await getwi('x') %>", {}, lambda lookup: "y" * 2_100_000, ENGINE)
    assert caught.value.code == "TEMPLATE_INPUT_LIMIT"


def test_the_clock_and_the_dice_are_given() -> None:
    source = "<%- Date.now() %> <%- new Date().getTime() %> <%- Math.random() %> <%- new Date(5).getTime() %>"
    first = render(source, surroundings=Surroundings(1000, 7))
    assert first.startswith("1000 1000 0.")
    assert first == render(source, surroundings=Surroundings(1000, 7))
    assert first != render(source, surroundings=Surroundings(1000, 8))


@pytest.mark.parametrize(
    "probe",
    [
        "require",
        "process",
        "std",
        "os",
        "fetch",
        "XMLHttpRequest",
        "WebSocket",
        "setTimeout",
        "Deno",
        "__import__",
        "print.mod",
    ],
)
def test_nothing_of_the_outside_is_reachable(probe: str) -> None:
    assert render(f"<%- typeof {probe} %>") == "undefined"


def test_imports_are_refused() -> None:
    assert failure("<%- await import('os') %>").code == "TEMPLATE_EXECUTION_FAILED"
    assert failure("<% import fs from 'fs' %>").code == "TEMPLATE_EXECUTION_FAILED"
    assert render("<%- (() => { try { return Function('return import.meta')() } catch { return 'no' } })() %>") == "no"


def test_no_state_is_kept_between_runs() -> None:
    render("<% globalThis.kept = 1; Array.prototype.kept = 2; String.prototype.trim = () => 'bent'; %>")
    assert render("<%- typeof kept %> <%- [].kept %> <%- ' x '.trim() %>") == "undefined  x"


@pytest.mark.parametrize(
    "tampering",
    [
        "Object.prototype.toJSON = () => ({helper: 'evil', id: 1}); getwi('x')",
        "Object.prototype.toJSON = () => 5; getwi('x')",
        "Array.prototype.toJSON = () => 'x'; getwi('x')",
        "JSON.stringify = () => '[]'; JSON.parse = () => ({}); print('fine')",
        "Promise.prototype.then = () => {}; print('x')",
        "Object.defineProperty(Object.prototype, 'state', {get() { return 'done' }})",
    ],
)
def test_bent_built_ins_hurt_only_the_template_itself(tampering: str) -> None:
    try:
        outcome = f"{render(f'<% {tampering} %>')!r}"
    except TemplateError as error:
        outcome = error.code
    assert outcome in ("''", "'x'", "'fine'", "TEMPLATE_EXECUTION_FAILED", "TEMPLATE_UNSETTLED")


def test_a_checkpoint_cancels_between_entries() -> None:
    class Cancelled(Exception):
        pass

    calls = 0

    def checkpoint() -> None:
        nonlocal calls
        calls += 1
        if calls > 20:
            raise Cancelled

    with pytest.raises(Cancelled):
        render("<% for (let i = 0; i < 100; i++) await getwi('x' + i) %>", checkpoint=checkpoint)
