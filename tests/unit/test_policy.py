"""Selections, relations, RP mode, templates, import context: transitions the vectors don't reach."""

from typing import Any

import attrs
import pytest

from tapster.engine.ecma import parse_json, stringify
from tapster.engine.errors import FormatError, TapsterError
from tapster.engine.policy import (
    ConfigurationUnavailable,
    ImportContextChanged,
    ImportContextInvalid,
    Library,
    OpenedRelations,
    RelationLimitError,
    RelationState,
    RpIntent,
    RpSession,
    RpState,
    Selection,
    SelectionLimits,
    SelectionState,
    SessionSelectionLimitError,
    SessionStart,
    TemplateConflict,
    TemplateLimitError,
    TemplateLimits,
    TemplateNotFound,
    TemplateState,
    apply_configuration,
    assemble_import,
    bind_import_context,
    card_bound_intent,
    check_rp_policy,
    clear_resource,
    command_intent,
    commit_rp,
    create_template,
    delete_template,
    document_text,
    drop_book,
    drop_owner,
    end_turn_import,
    ensure_selection,
    fork_import,
    guard_tool,
    import_context_text,
    normalize_selection,
    preview_configuration,
    read_import_context,
    read_relations,
    read_rp_policy,
    read_selections,
    read_templates,
    relations_text,
    request_rp,
    resource_relations,
    rp_effective,
    rp_policy_section,
    select_template,
    set_relation,
    set_selection,
    set_selections,
    start_rp,
    template_name,
    templates_text,
    update_template,
    user_relations,
)

NOW, LATER = "2026-01-01T00:00:00.000Z", "2026-01-02T00:00:00.000Z"
LIMITS = SelectionLimits()
DEFAULTS = Selection(preset_id="d")


def stored(**sessions: dict[str, Any]) -> SelectionState:
    state = SelectionState()
    for session, patch in sessions.items():
        state = set_selection(state, session, patch, defaults=Selection(), limits=LIMITS, now=NOW)
    return state


def raised_slug(call: Any) -> str:
    with pytest.raises(FormatError) as raised:
        call()
    return raised.value.slug


class TestSelections:
    def test_a_patch_replaces_character_and_rp_whole(self) -> None:
        state = stored(s={"character": {"greetingIndex": 2}, "userId": "u"})
        state = set_selection(
            state, "s", {"character": {"preferCharacterPostHistory": True}}, defaults=DEFAULTS, limits=LIMITS, now=NOW
        )
        selection = state.get("s", DEFAULTS)
        assert selection.character.greeting_index is None
        assert selection.user_id == "u"

    def test_a_refused_write_of_several_changes_nothing(self) -> None:
        state = stored(a={})
        with pytest.raises(SessionSelectionLimitError):
            set_selections(state, ["b", "c"], {}, defaults=DEFAULTS, limits=SelectionLimits(max_sessions=2), now=NOW)
        assert list(state.sessions) == ["a"]

    def test_the_revision_counts_changes_only(self) -> None:
        state = stored(s={"userId": "u"})
        again = set_selection(state, "s", {"userId": "u"}, defaults=DEFAULTS, limits=LIMITS, now=LATER)
        assert (state.revision("s"), again.revision("s")) == (1, 1)
        changed, _ = clear_resource(again, "user", "u", now=LATER)
        assert changed.revision("s") == 2

    def test_a_child_is_independent_of_its_parent(self) -> None:
        state = stored(parent={"userId": "u"})
        state = ensure_selection(state, "child", "parent", defaults=DEFAULTS, limits=LIMITS, now=NOW)
        state = set_selection(state, "parent", {"userId": "v"}, defaults=DEFAULTS, limits=LIMITS, now=NOW)
        assert state.get("child", DEFAULTS).user_id == "u"

    def test_a_bad_parent_is_refused_even_for_a_stored_session(self) -> None:
        state = stored(s={})
        assert (
            raised_slug(lambda: ensure_selection(state, "s", "bad id", defaults=DEFAULTS, limits=LIMITS, now=NOW))
            == "bad-session-id"
        )

    def test_a_canonical_document_is_not_rewritten(self) -> None:
        text = document_text(stored(s={"presetId": "p"}))
        opened = read_selections(text.encode(), limits=LIMITS, now=LATER)
        assert not opened.rewrite
        assert document_text(opened.state) == text

    def test_an_oversized_file_is_never_parsed(self) -> None:
        with pytest.raises(SessionSelectionLimitError) as raised:
            read_selections(b"{" * (8 * 1024 * 1024 + 1), limits=LIMITS, now=NOW)
        assert raised.value.code == "SESSION_SELECTION_FILE_TOO_LARGE"

    def test_too_many_sessions_are_refused_on_open(self) -> None:
        text = document_text(stored(a={}, b={}))
        with pytest.raises(SessionSelectionLimitError):
            read_selections(text.encode(), limits=SelectionLimits(max_sessions=1), now=NOW)

    @pytest.mark.parametrize(
        "text", ['{"schemaVersion":true,"sessions":{}}', "[]", '{"schemaVersion":2,"sessions":[]}']
    )
    def test_foreign_documents_count_as_empty_and_stay(self, text: str) -> None:
        opened = read_selections(text.encode(), limits=LIMITS, now=NOW)
        assert (dict(opened.state.sessions), opened.rewrite) == ({}, False)

    def test_at_most_a_hundred_books(self) -> None:
        books = [f"b{number}" for number in range(150)]
        assert len(normalize_selection({"worldBookIds": books}).world_book_ids) == 100


class TestRelations:
    def test_set_read_and_drop(self) -> None:
        kind = resource_relations()
        state = set_relation(RelationState(), ("preset", "p"), ["a", "b", "a"], kind, now=NOW)
        state = set_relation(state, ("character", "c"), ["b"], kind, now=NOW)
        opened = read_relations(relations_text(state, kind).encode(), kind, now=LATER)
        assert opened == OpenedRelations(state, rewrite=False)
        assert state.books("preset", "p") == ("a", "b")
        without = drop_book(state, "b", now=LATER)
        assert (without.books("preset", "p"), without.books("character", "c")) == (("a",), ())
        assert drop_owner(state, ("preset", "p")).books("preset", "p") == ()
        assert set_relation(state, ("preset", "p"), [], kind, now=NOW).books("preset", "p") == ()

    def test_invalid_records_are_dropped_and_the_file_rewritten(self) -> None:
        document = {
            "schemaVersion": 1,
            "bindings": {"u": {"worldBookIds": ["a"], "updatedAt": NOW}, "bad id": {"worldBookIds": ["a"]}, "v": 3},
        }
        opened = read_relations(stringify(document).encode(), user_relations(), now=NOW)
        assert opened.rewrite
        assert list(opened.state.relations) == [("user", "u")]
        assert opened.state.books("user", "u") == ("a",)

    @pytest.mark.parametrize(
        ("books", "slug"),
        [("a", "not-array"), (["a b"], "bad-world-book-id"), (["a"] * 101, "too-many-world-books")],
    )
    def test_bad_lists(self, books: Any, slug: str) -> None:
        kind = user_relations()
        assert raised_slug(lambda: set_relation(RelationState(), ("user", "u"), books, kind, now=NOW)) == slug

    def test_capacity(self) -> None:
        kind = user_relations(max_users=1)
        state = set_relation(RelationState(), ("user", "u"), ["a"], kind, now=NOW)
        with pytest.raises(RelationLimitError) as raised:
            set_relation(state, ("user", "v"), ["a"], kind, now=NOW)
        assert raised.value.code == "USER_WORLD_BOOK_BINDING_LIMIT_REACHED"


class TestRp:
    ON = RpIntent(True, "command")

    def test_the_same_wish_twice_is_a_noop(self) -> None:
        assert request_rp(RpSession(RpState(True, "command")), self.ON).result == "noop"
        assert request_rp(RpSession(RpState(), pending=self.ON), self.ON).result == "noop"

    def test_an_open_turn_queues_and_going_back_cancels(self) -> None:
        queued = request_rp(RpSession(RpState(), turn_open=True), self.ON)
        assert (queued.result, queued.pending, queued.commit) == ("queued", self.ON, None)
        back = request_rp(RpSession(RpState(), queued.pending, turn_open=True), RpIntent(False))
        assert (back.result, back.pending) == ("cancelled", None)

    def test_on_pins_the_sandbox_and_off_gives_it_back(self) -> None:
        on = commit_rp(RpState(), self.ON, "workspace-write")
        assert (on.state.sandbox_before, on.sandbox) == ("workspace-write", "read-only")
        off = commit_rp(on.state, command_intent(on=False), "read-only")
        assert (off.state, off.sandbox) == (RpState(follow_suppressed=True), "workspace-write")

    def test_a_sandbox_that_was_opened_meanwhile_is_left_alone(self) -> None:
        state = RpState(True, "command", sandbox_before="workspace-write")
        assert commit_rp(state, RpIntent(False), "danger-full-access").sandbox is None

    def test_without_an_agent_no_sandbox_is_touched(self) -> None:
        done = commit_rp(RpState(), self.ON, None)
        assert (done.state, done.sandbox) == (RpState(True, "command"), None)

    @pytest.mark.parametrize(
        ("state", "previous", "card", "follow", "expected"),
        [
            (RpState(), None, "c", True, RpIntent(True, "character-follow")),
            (RpState(), "c", "c", True, None),
            (RpState(), None, "c", False, None),
            (RpState(True, "command"), "a", "b", True, None),
            (RpState(True, "command"), "a", None, True, RpIntent(False)),
        ],
    )
    def test_cards(self, state: RpState, previous: Any, card: Any, follow: bool, expected: Any) -> None:
        assert card_bound_intent(state, previous=previous, card=card, follow=follow) == expected

    def test_start_recaptures_unless_the_session_has_a_parent(self) -> None:
        state = RpState(True, "command", sandbox_before="workspace-write")
        root = start_rp(SessionStart(state), "danger-full-access")
        child = start_rp(SessionStart(state, has_parent=True), "danger-full-access")
        assert root is not None
        assert child is not None
        assert (root.state.sandbox_before, child.state.sandbox_before) == ("danger-full-access", "workspace-write")

    def test_start_follows_a_card_unless_suppressed(self) -> None:
        followed = start_rp(SessionStart(RpState(), card_bound=True), "read-only")
        assert followed is not None
        assert followed.state.source == "character-follow"
        assert start_rp(SessionStart(RpState(follow_suppressed=True), card_bound=True), "read-only") is None

    def test_a_delegate_of_an_rp_session_is_locked_too(self) -> None:
        locked = start_rp(SessionStart(RpState(), delegated=True, ancestor_active=True), "workspace-write")
        assert locked is not None
        assert (locked.state.active, locked.sandbox) == (True, "read-only")
        assert start_rp(SessionStart(RpState(), delegated=True), "workspace-write") is None

    def test_effective_looks_at_pending_stored_and_ancestors(self) -> None:
        assert rp_effective(self.ON, RpState(), ())
        assert rp_effective(None, RpState(), (RpState(), RpState(True)))
        assert not rp_effective(None, RpState(), (RpState(),))

    @pytest.mark.parametrize(
        ("tool", "arguments", "workspace", "rule"),
        [
            ("read", {"file_path": "a"}, None, "outside-workspace"),
            ("read", {"file_path": "/ws"}, "/ws", None),
            ("read", {"file_path": "a"}, "C:\\ws", None),
            ("read", {"file_path": "..\\a"}, "C:\\ws", "outside-workspace"),
            ("glob", {"path": "   "}, None, "no-workspace"),
            ("x", {"sandbox_permissions": []}, "/ws", "sandbox-permissions"),
            ("x", {"sandbox_permissions": 0}, "/ws", None),
            ("x", "no record", "/ws", None),
        ],
    )
    def test_guard(self, tool: str, arguments: Any, workspace: Any, rule: Any) -> None:
        assert guard_tool(tool, arguments, workspace).rule == rule

    def test_policy_text(self) -> None:
        assert read_rp_policy(None, "D") == "D"
        assert read_rp_policy(b"{", "D") == "D"
        assert read_rp_policy(b'{"schemaVersion":1,"section":"a\\r\\nb"}', "D") == "a\nb"
        assert check_rp_policy("x\r\n") == "x\n"
        assert raised_slug(lambda: check_rp_policy(1)) == "rp-policy-not-string"
        assert rp_policy_section("  ", effective=True) is None
        assert rp_policy_section("t", effective=False) is None


class TestTemplates:
    def made(self) -> TemplateState:
        return create_template(TemplateState(), "t", " Name ", {"presetId": "p"}, limits=TemplateLimits(), now=NOW)

    def test_create_selects_and_delete_unselects(self) -> None:
        state = self.made()
        assert (state.selected_id, state.find("t").name) == ("t", "Name")
        assert delete_template(state, "t") == TemplateState()
        assert select_template(state, None).selected_id is None

    def test_round_trip_and_update(self) -> None:
        state = update_template(self.made(), "t", limits=TemplateLimits(), now=LATER, name="Other")
        assert read_templates(templates_text(state).encode()) == state
        assert state.find("t").updated_at == LATER

    def test_errors(self) -> None:
        state = self.made()
        with pytest.raises(TemplateConflict):
            create_template(state, "t", "n", {}, limits=TemplateLimits(), now=NOW)
        with pytest.raises(TemplateNotFound):
            state.find("x")
        with pytest.raises(TemplateLimitError):
            create_template(state, "u", "n", {}, limits=TemplateLimits(max_templates=1), now=NOW)
        assert raised_slug(lambda: template_name("x" * 121)) == "bad-template-name"
        assert raised_slug(lambda: read_templates(b'{"schemaVersion":2,"templates":[]}')) == "template-bad-document"
        twice = parse_json(templates_text(state))
        twice["templates"] *= 2
        assert raised_slug(lambda: read_templates(stringify(twice).encode())) == "template-duplicate-id"

    def test_preview_names_what_is_missing_and_apply_refuses(self) -> None:
        selection = normalize_selection(
            {"presetId": "p", "characterCardId": "c", "worldBookIds": ["w"], "character": {"greetingIndex": 3}}
        )
        library = Library(presets={"p": "P"}, characters={"c": "C"}, greetings={"c": 2})
        preview = preview_configuration(selection, library)
        assert [(item.code, item.resource_id) for item in preview.diagnostics] == [
            ("SESSION_CONFIGURATION_CHARACTER_MISSING_OR_INVALID", "c"),
            ("SESSION_CONFIGURATION_WORLD_BOOK_MISSING", "w"),
        ]
        with pytest.raises(ConfigurationUnavailable):
            apply_configuration(preview)
        whole = attrs.evolve(library, world_books={"w": "W"}, greetings={"c": 4})
        assert apply_configuration(preview_configuration(selection, whole)) == selection


class TestImportContext:
    TEXT = '{"schemaVersion":1,"greeting":"Hi <{{user}}>","qa":[{"user":"a & b","assistant":"c"}]}'

    def test_bodies_are_expanded_then_escaped(self) -> None:
        text = import_context_text(read_import_context(self.TEXT), lambda body: body.replace("{{user}}", "阿"))
        assert "Hi &lt;阿&gt;" in text
        assert "a &amp; b" in text
        assert 'trust="untrusted"' in text

    @pytest.mark.parametrize("text", ["{", "[]", '{"schemaVersion":1}', '{"schemaVersion":1,"qa":[{"user":1}]}'])
    def test_other_shapes_are_refused(self, text: str) -> None:
        with pytest.raises(ImportContextInvalid):
            read_import_context(text)

    def test_a_changed_file_is_refused(self) -> None:
        with pytest.raises(ImportContextChanged):
            read_import_context(self.TEXT, "0" * 64)

    def test_one_claim_emits_until_its_turn_ends(self) -> None:
        binding = bind_import_context("f.json", read_import_context(self.TEXT))
        assert not assemble_import(binding, []).emits
        first = assemble_import(binding, [7])
        assert first.emits
        assert assemble_import(first.binding, [7]).emits
        assert not assemble_import(first.binding, [9]).emits
        done = end_turn_import(first.binding, seq=20, turn=1, reason="completed")
        assert not assemble_import(done, [7]).emits
        assert fork_import(done, "s", at_seq=20) is None
        child = fork_import(done, "s", at_seq=19)
        assert child is not None
        assert (child.lineage, assemble_import(child, [7]).emits, assemble_import(child, [8]).emits) == (
            "s",
            False,
            True,
        )


def test_every_error_of_the_policies_is_declared() -> None:
    for error in (TemplateConflict, TemplateNotFound, ConfigurationUnavailable, ImportContextInvalid):
        assert issubclass(error, TapsterError)
