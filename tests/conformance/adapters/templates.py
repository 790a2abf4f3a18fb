"""Templates: area ``ejs.render`` of assembler.jsonl."""

from typing import Any

from tapster.actors.scripts import QuickJsTemplateEngine, open_regex_engine
from tapster.engine.text.templates import (
    TemplateBook,
    TemplateData,
    TemplateEntry,
    TemplatePrompt,
    render_template,
)
from tests.conformance.compare import differences
from tests.conformance.registry import adapter

Json = Any
ENGINE = QuickJsTemplateEngine(budget_ms=1000)
REGEX = open_regex_engine()


def compare(expected: Json, actual: Json) -> list[str]:
    """Errors by their code where the line gives one; the slug of the failed check is informational."""
    if "error" not in expected:
        return differences(expected, actual)
    if "error" not in actual:
        return [f"$: expected an error, got {actual}"]
    code = expected["error"].get("code")
    return [] if code is None else differences(code, actual["error"].get("code"), "$.error.code")


def data_of(given: Json) -> TemplateData:
    character = given.get("character") or {}
    return TemplateData(
        books=tuple(
            TemplateBook(
                book["id"],
                book["name"],
                tuple(
                    TemplateEntry(str(entry["uid"]), entry.get("comment", ""), entry.get("content", ""))
                    for entry in book["entries"]
                ),
            )
            for book in given.get("worldBooks") or ()
        ),
        prompts=tuple(
            TemplatePrompt(prompt["identifier"], prompt.get("name", ""), prompt.get("content", ""))
            for prompt in (given.get("preset") or {}).get("prompts") or ()
        ),
        character_id=character.get("id", ""),
        character_name=character.get("name", ""),
        character_description=(character.get("data") or {}).get("description", ""),
    )


@adapter("assembler", "ejs.render", compare=compare)
def run(given: Json) -> Json:
    data = given.get("data") or {}
    resolve = data_of(data).resolver(REGEX)
    return {"output": render_template(given["template"], data.get("variables") or {}, resolve, ENGINE)}
