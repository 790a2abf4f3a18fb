"""The memory as a source: reads while a request is made, never writes."""

from collections.abc import Mapping
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import trio

from tapster.actors.sources import Output, Source
from tapster.engine.assembly import AssemblyRefused, RequestContext, Rule, text_of

from .facts import Fact, FactFile, FactsUnreadable

SCANNED_MESSAGES = 8
MAX_CHARACTERS = 4_000


class MemoryFacts(Source):
    """Facts whose keys stand in the last messages, the newest first."""

    id: ClassVar[str] = "example.memory"
    plugin_id: ClassVar[str] = "tapster-memory-example"
    name: ClassVar[str] = "Memory"
    roles = ("preserve", "system", "user")
    content_guide: ClassVar[Mapping[str, Any]] = {
        "contains": ["对话中提到的事实", "Facts that the conversation touches"],
        "origin": ["事实文件", "The file of facts"],
        "editable": ["可以追加", "Facts can be added"],
        "editAt": ["命令 tapster-memory", "The command tapster-memory"],
    }

    def __init__(self, facts: FactFile) -> None:
        self._facts = facts
        self._read_at: WeakKeyDictionary[RequestContext, tuple[int, int]] = WeakKeyDictionary()

    async def resolve(self, context: RequestContext, rule: Rule) -> Output:
        # The revision first: a fact added while the file is read makes the lease stale, never the other way round.
        self._read_at[context] = self._facts.revision()
        try:
            facts = await trio.to_thread.run_sync(self._facts.read, abandon_on_cancel=True)
        except FactsUnreadable as error:
            raise AssemblyRefused(str(error), code=error.code) from error
        text = "\n".join(text_of(message) for message in context.native_messages[-SCANNED_MESSAGES:])
        chosen = _within(MAX_CHARACTERS, [fact for fact in reversed(facts) if fact.matches(context.session_id, text)])
        return {
            "blocks": [
                {
                    "type": "text",
                    "id": fact.id,
                    "name": fact.text[:40],
                    "text": fact.text,
                    "source": {"resourceId": fact.id, "field": "fact"},
                }
                for fact in chosen
            ]
        }

    def validate_resolved(self, context: RequestContext) -> None:
        if self._read_at.get(context) != self._facts.revision():
            raise AssemblyRefused("a fact was remembered meanwhile", code="MEMORY_CHANGED", status=409)

    def module_available(self, asked: Mapping[str, Any]) -> bool:
        return self._facts.revision() != (0, 0)


def _within(limit: int, facts: list[Fact]) -> list[Fact]:
    kept, seen, left = [], set(), limit
    for fact in facts:
        if fact.id not in seen and len(fact.text) <= left:
            kept.append(fact)
            seen.add(fact.id)
            left -= len(fact.text)
    return kept
