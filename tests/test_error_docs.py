"""The page of error codes says what the classes say."""

import re

from tapster.api.contract import ROUTES
from tapster.api.errors import CODE_STATUS, GENERIC_CODES, SHAPES
from tests.support.error_table import PAGE, page

HTTP_PAGE = PAGE.with_name("http.md")


def test_every_error_class_is_on_the_page() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.support.error_table"


def test_every_contract_route_is_on_the_page() -> None:
    text = HTTP_PAGE.read_text(encoding="utf-8")
    missing = [f"{route.method} {route.pattern}" for route in ROUTES if f"`{route.pattern}`" not in text]
    assert missing == []


def test_the_codes_of_the_table_are_on_the_page() -> None:
    text = HTTP_PAGE.read_text(encoding="utf-8")
    codes = {*CODE_STATUS, *(code for shape in SHAPES.values() for code in (shape.invalid, shape.failed) if code)}
    assert sorted(code for code in codes if f"`{code}`" not in text) == []
    assert not codes & GENERIC_CODES


def test_no_code_of_the_page_is_invented() -> None:
    from tests.support.error_table import classes

    known = {kind.code for kind in classes()} | set(CODE_STATUS)  # type: ignore[attr-defined]
    known |= {code for shape in SHAPES.values() for code in (shape.invalid, shape.failed) if code}
    known |= PASSED_CODES
    listed = re.findall(r"^\| `([A-Z][A-Z_]+)` \|", HTTP_PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(set(listed) - known) == []


PASSED_CODES = {
    "ASSEMBLY_NOT_FOUND",
    "PROMPT_SESSION_INVALID",
    "PRESET_AGENT_RUNNING",
    "CHARACTER_AGENT_RUNNING",
    "USER_AGENT_RUNNING",
    "WORLD_BOOK_AGENT_RUNNING",
    "PRESET_NOT_FOUND",
    "INTERNAL_ERROR",
}
"""Codes that are passed when an error is raised."""
