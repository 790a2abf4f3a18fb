"""user_reports.jsonl, op ``macro``."""

from typing import Any

from tapster.engine.text.macros import CardFields, Group, MacroContext
from tapster.engine.text.macros import expand as expand_macros
from tapster.engine.text.string_hash import string_hash
from tests.conformance.adapters.st_macros import card_of, moment, tape
from tests.conformance.registry import adapter
from tests.conformance.user_reports_compare import compare_report, expand

Json = Any


@adapter("user_reports", "user.macro", compare=compare_report)
def run(given: Json) -> Json:
    given = expand(given)
    names = given.get("names") or {}
    members = given.get("group") or []
    speaker = given.get("speaker") or (members[0]["name"] if members else names.get("char", "Char"))
    card = next((member for member in members if member["name"] == speaker), None)
    texts = []
    for _ in range(given.get("repeat", 1)):
        context = MacroContext(
            now=moment("2024-03-09T14:05:09Z", "UTC"),
            random=tape(given.get("rolls") or []),
            user=names.get("user", "User"),
            char=speaker,
            card=card_of(card) if card else CardFields(),
            group=Group(tuple(member["name"] for member in members)) if members else None,
            chat_id=given.get("chat_id", ""),
            chat_id_hash=string_hash(given.get("chat_id", "")),
            message_variables=given.get("message_vars") or {},
        )
        texts.append(expand_macros(given["text"], context).text)
    # Every repetition must give the text: one that differs from the first is the answer.
    return {"text": next((text for text in texts if text != texts[0]), texts[0])}
