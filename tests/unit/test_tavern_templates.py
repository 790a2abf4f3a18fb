"""Templates inside requests: leases, diagnostics, refusals; stored templates as pure state."""

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from tapster.actors.scripts import QuickJsTemplateEngine, open_regex_engine
from tapster.engine.assembly import (
    SourceRegistry,
    assemble_request,
    freeze_context,
    normalise_preset,
    register_host_sources,
)
from tapster.engine.assembly.tavern import register_tavern_sources
from tapster.engine.text.tavern_templates import (
    WORLD_BOOK_ADAPTER,
    DependencyAnswer,
    DependencyProof,
    PolicyChanged,
    TavernTemplateRuntime,
)
from tapster.engine.text.templates import (
    Decision,
    TemplateEditRefused,
    TemplateError,
    TemplateShelf,
    may_emit,
    parse_stored_template,
)

ENGINE, REGEX = QuickJsTemplateEngine(budget_ms=500), open_regex_engine()
ASSETS = {
    "context": {"mood": "calm"},
    "preset": {"prompts": [{"identifier": "style", "name": "Style", "content": "brief"}]},
    "character": {"id": "c1", "data": {"name": "Bo", "description": "a fox"}},
    "loreEntries": [{"resourceId": "wb", "id": 7, "comment": "Inn", "content": "warm"}],
}


@attrs.frozen(eq=False)
class Request:
    session_id: str = "s"
    assets: Any = attrs.field(factory=lambda: ASSETS)


@attrs.frozen
class Rule:
    text: str
    id: str = "r1"
    name: str = "Note"


def test_hand_written_text_reads_the_frozen_assets() -> None:
    text = (
        "<%- variables.mood %> <%- await getpreset('Style') %> <%- await getchar('Bo') %> <%- await getwi('wb', 7) %>"
    )
    assert TavernTemplateRuntime(ENGINE, REGEX).render(Request(), Rule(text)) == "calm brief a fox warm"


def test_a_session_is_needed() -> None:
    with pytest.raises(TemplateError) as caught:
        TavernTemplateRuntime(ENGINE, REGEX).render(Request(session_id=""), Rule("<% %>"))
    assert caught.value.code == "TEMPLATE_SESSION_REQUIRED"


@attrs.define(eq=False)
class Books:
    """One leased entry and one that is not active."""

    current: bool = True
    adapter: str = WORLD_BOOK_ADAPTER

    def find(self, book: str | None, matches: Callable[[str, str], bool]) -> DependencyAnswer | None:
        if matches("8", "Asleep"):
            raise TemplateError("it is not active", code="TEMPLATE_DEPENDENCY_NOT_ACTIVE")
        if not matches("7", "Inn"):
            return None
        return DependencyAnswer("warm", DependencyProof(self.adapter, "wb", 3, 1, lambda: self.current))


def test_leases_are_recorded_and_checked_again() -> None:
    books, request, rule = Books(), Request(), Rule("<%- await getwi(/^I/) %><%- await getwi('none') %>")
    runtime = TavernTemplateRuntime(ENGINE, REGEX, books=lambda request: books)
    assert runtime.render(request, rule) == "warm"
    runtime.validate(request)
    assert runtime.facts(request, rule, ["Note:text:0"]) == [
        {
            "code": "TAVERN_MEMORY_DEPENDENCY_VERSION",
            "adapterId": WORLD_BOOK_ADAPTER,
            "resourceId": "wb",
            "revision": 3,
            "configRevision": 1,
            "blockId": "Note:text:0",
            "sourceId": "tavern.text",
            "consumerId": None,
            "consumerField": "r1",
        }
    ]
    books.current = False
    with pytest.raises(PolicyChanged):
        runtime.validate(request)


@pytest.mark.parametrize(
    ("books", "title", "code"),
    [
        (Books(), "Asleep", "TEMPLATE_DEPENDENCY_NOT_ACTIVE"),
        (Books(adapter="other"), "Inn", "TEMPLATE_DEPENDENCY_UNAVAILABLE"),
        (Books(current=False), "Inn", "TEMPLATE_DEPENDENCY_UNAVAILABLE"),
    ],
)
def test_lookups_that_are_not_allowed(books: Books, title: str, code: str) -> None:
    runtime = TavernTemplateRuntime(ENGINE, REGEX, books=lambda request: books)
    with pytest.raises(TemplateError) as caught:
        runtime.render(Request(), Rule(f"<%- await getwi('{title}') %>"))
    assert caught.value.code == code


def test_a_changed_selection_stops_the_next_lookup() -> None:
    answers = iter([True, False])
    runtime = TavernTemplateRuntime(ENGINE, REGEX, still_selected=lambda request: next(answers))
    with pytest.raises(PolicyChanged):
        runtime.render(Request(), Rule("<%- await getwi('a') %><%- await getwi('b') %>"))


RAW = {"id": "prompt-template:a", "name": "A", "content": "x", "enabled": True, "sessionIds": ["s"], "variables": {}}


@pytest.mark.parametrize(
    "change",
    [
        {"id": "a"}, {"name": "x" * 201}, {"content": 1}, {"sessionIds": []}, {"sessionIds": [""]}, {"variables": []},
        {"variableResourceId": "x"}, {"content": "x" * 131_073},
    ],
)  # fmt: skip
def test_resources_that_do_not_fit(change: dict[str, Any]) -> None:
    with pytest.raises(TemplateError) as caught:
        parse_stored_template({**RAW, **change})
    assert caught.value.code == "TEMPLATE_RESOURCE_INVALID"


def test_title_tags() -> None:
    with pytest.raises(TemplateError) as caught:
        parse_stored_template({**RAW, "name": "[RENDER:AFTER] x"})
    assert caught.value.code == "TEMPLATE_LIFECYCLE_UNSUPPORTED"
    assert parse_stored_template({**RAW, "name": "[GENERATE:BEFORE] x"}).is_supported
    assert not parse_stored_template({**RAW, "name": "[PRELOAD] x", "enabled": False}).is_supported


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(TemplateEditRefused) as caught:
        call()
    return caught.value.code


def test_edits_compare_and_swap_and_replay() -> None:
    template = parse_stored_template(RAW)
    start = TemplateShelf({template.id: template})
    edit = {"content": "y", "expected_revision": 1, "operation_id": "o1"}
    shelf, changed = start.update(template.id, "s", **edit)  # type: ignore[arg-type]
    assert (changed.content, changed.revision, start.templates[template.id].content) == ("y", 2, "x")
    assert changed.block_id != template.block_id
    assert shelf.update(template.id, "s", **edit) == (shelf, changed)  # type: ignore[arg-type]
    again = {**edit, "content": "z"}
    assert refused(lambda: shelf.update(template.id, "s", **again)) == "IDEMPOTENCY_CONFLICT"  # type: ignore[arg-type]
    late = {**edit, "operation_id": "o2"}
    assert refused(lambda: shelf.update(template.id, "s", **late)) == "REVISION_CONFLICT"  # type: ignore[arg-type]
    assert refused(lambda: shelf.read(template.id, "other")) == "FORBIDDEN"
    assert refused(lambda: shelf.read("prompt-template:b", "s")) == "NOT_FOUND"
    shelf, copied = shelf.copy(template.id, "s", new_id="prompt-template:b", operation_id="o3")
    assert (copied.enabled, copied.content, copied.revision) == (False, "y", 1)
    assert refused(lambda: shelf.copy(template.id, "s", new_id="prompt-template:b", operation_id="o4")) == "ID_CONFLICT"
    assert [each.id for each in shelf.bound_to("s")] == ["prompt-template:a"]


def test_managed_templates_need_an_approval() -> None:
    native = parse_stored_template(RAW)
    shelf, managed = TemplateShelf({native.id: native}).set_mode(
        native.id, "s", mode="managed", expected_config_revision=1, operation_id="o"
    )
    assert shelf.templates[native.id].mode == "managed"
    assert [may_emit(native, None), may_emit(managed, None)] == [True, False]
    assert may_emit(managed, Decision(True, managed.config_revision))
    assert not may_emit(managed, Decision(True, native.config_revision))
    assert not may_emit(native, Decision(False))


def test_a_request_with_a_template_is_assembled_and_says_what_it_read() -> None:
    books = Books()
    runtime = TavernTemplateRuntime(ENGINE, REGEX, books=lambda request: books)
    registry = SourceRegistry()
    register_host_sources(registry)
    register_tavern_sources(registry, runtime=lambda: runtime)
    rule = {
        "id": "t",
        "kind": "tavern.text",
        "inputMode": "text",
        "name": "Note",
        "text": "{{user}}: <%- await getwi('Inn') %> {{persona}}",
    }
    preset = normalise_preset(
        {"format": "dsh-tavern-request-assembly", "version": 1, "name": "T", "placement": "st", "rules": [rule]}
    )
    assets = {**ASSETS, "user": {"id": "u", "name": "Ann", "description": "<%- 1 %>"}}
    context = freeze_context(preset, [], assets=assets, session_id="s")
    result = assemble_request(registry, context)
    assert [node.text for node in result.nodes if node.rule_id == "t"] == ["Ann: warm <%- 1 %>"]
    facts = [each for each in result.diagnostics if each["code"] == "TAVERN_MEMORY_DEPENDENCY_VERSION"]
    assert [(fact["blockId"], fact["consumerField"]) for fact in facts] == [("Note", "t")]
    books.current = False
    with pytest.raises(TemplateError):
        assemble_request(registry, freeze_context(preset, [], assets=assets, session_id="s"))
