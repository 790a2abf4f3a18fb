"""Hiding, restoring and keeping history policies."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapster.engine.assembly import HistoryPolicies, PresetStore, read_policies
from tapster.engine.assembly.history import (
    DEFAULT_POLICY,
    FragmentRule,
    HistoryPolicy,
    SourceSelector,
    cut,
    filter_history,
    find_fragments,
    merge_ranges,
    plan_standard,
    read_marker,
    restore_placeholders,
    runtime_context_refresh,
)
from tapster.engine.ecma import utf16_length
from tapster.engine.errors import TapsterError
from tests.support.assembly import HEAD, message

Json = Any
INJECTED = "dsh-prompt-assembler"
HIDING = HistoryPolicy(True, (SourceSelector(INJECTED, include=False),))
KINDS = st.sampled_from([INJECTED, "user", "runtime-context", "third-party", "ptc-mode"])


class Log:
    """A host's log with a surface, as much as surface replacement needs."""

    def __init__(self, kinds: list[str]) -> None:
        self.events: list[Json] = []
        self.surface: list[int] = []
        for index, kind in enumerate(kinds):
            self.append("user/message", message(f"m{index}", "user", f"text {index}", kind))
        self.events.append({"seq": len(self.events), "type": "step/end", "data": {}})

    def append(self, kind: str, data: Json) -> None:
        self.surface.append(len(self.events))
        self.events.append({"seq": len(self.events), "type": kind, "data": data, "surfaceOp": "append"})

    def messages(self) -> list[Json]:
        found = [self.events[seq]["data"] for seq in self.surface]
        return [data.get("message", data) for data in found]

    def plan(self, policy: HistoryPolicy) -> Json:
        return plan_standard(self.events, self.surface, self.messages(), policy)

    def apply(self, policy: HistoryPolicy) -> int:
        plan = self.plan(policy)
        for operation in plan.operations:
            seq = len(self.events)
            self.events.append({"seq": seq, **operation.event(policy, plan.revision)})
            self.surface[self.surface.index(operation.target_seq)] = seq
        return len(plan.operations)


@given(st.lists(KINDS, max_size=8), st.lists(st.sampled_from(["hide", "off", "other"]), max_size=6))
def test_whatever_is_hidden_comes_back_as_it_was(kinds: list[str], changes: list[str]) -> None:
    log = Log(kinds)
    before = log.messages()
    policies = {"hide": HIDING, "off": DEFAULT_POLICY, "other": HistoryPolicy(True)}
    for change in changes:
        log.apply(policies[change])
        assert log.apply(policies[change]) == 0, "a policy already applied writes nothing"
    log.apply(DEFAULT_POLICY)
    assert log.messages() == before


def test_a_hidden_message_leaves_a_verifiable_marker() -> None:
    log = Log([INJECTED, "user"])
    assert log.apply(HIDING) == 1
    marker = read_marker(log.events[-1])
    assert marker is not None
    assert (marker.original_seq, marker.message["id"]) == (0, "m0")
    assert [each.get("role") for each in log.messages()] == ["developer", "user"]
    assert [each["id"] for each in restore_placeholders(log.messages(), log.events)] == ["m0", "m1"]
    forged = {**log.events[-1], "data": {**log.events[-1]["data"]}}
    forged["data"]["historyPolicy"] = {**forged["data"]["historyPolicy"], "message": message("m0", "user", "forged")}
    assert read_marker(forged) is None


def test_a_message_that_a_compaction_replaced_is_left_alone() -> None:
    log = Log([INJECTED])
    summary = message("c", "user", "summary", INJECTED)
    replace = {"op": "replace", "startSeq": 0, "endSeq": 0}
    log.events.insert(1, {"seq": 1, "type": "user/message", "data": summary, "surfaceOp": replace})
    log.events[2]["seq"] = 2
    log.surface = [1]
    plan = log.plan(HIDING)
    assert [row.reasons for row in plan.rows] == [("NATIVE_REPLACEMENT_RETAINED",)]
    assert plan.operations == ()


def test_an_incomplete_window_is_refused() -> None:
    log = Log([INJECTED])
    with pytest.raises(TapsterError) as raised:
        plan_standard(log.events, [0, 99], log.messages(), HIDING)
    assert raised.value.code == "HISTORY_WINDOW_INCOMPLETE"


def test_a_runtime_context_that_would_go_is_copied_first() -> None:
    log = Log(["user", "runtime-context"])
    policy = HistoryPolicy(True, (SourceSelector("runtime-context", include=False),))
    copy = runtime_context_refresh(log.events, policy, [], 2, "fresh")
    assert copy is not None
    assert (copy["id"], copy["content"]) == ("fresh", log.events[1]["data"]["content"])
    assert runtime_context_refresh(log.events, policy, [log.events[1]["data"]], 2, "fresh") is None
    assert runtime_context_refresh(log.events, DEFAULT_POLICY, [], 2, "fresh") is None
    assert runtime_context_refresh(log.events, policy, [], 0, "fresh") is None


PIECES = st.lists(st.sampled_from(["<X>", "</X>", "a", "😀", "\n", "```\n", "<X>\n", "</X>\r\n"]), max_size=14)


@given(PIECES, st.sampled_from(["lines", "literal"]))
def test_fragments_are_whole_and_apart(pieces: list[str], mode: Any) -> None:
    text = "".join(pieces)
    found = find_fragments(text, FragmentRule("f", "model", "<X>", "</X>", mode))
    assert found.warning is None or found.ranges == ()
    position = 0
    for item in found.ranges:
        assert position <= item.start < item.end <= utf16_length(text)
        position = item.end
    rest = cut(text, merge_ranges(found.ranges))
    assert utf16_length(rest) == utf16_length(text) - sum(item.end - item.start for item in found.ranges)


def test_filtering_changes_no_input() -> None:
    native = [message("p", "user", "x", INJECTED), message("u", "user", "y")]
    events = [{"seq": index, "type": "user/message", "data": each} for index, each in enumerate(native)]
    before = repr((native, events))
    filtered = filter_history(native, events, HIDING)
    assert [each["id"] for each in filtered.messages] == ["u"]
    assert repr((native, events)) == before
    assert filtered.audit["decisions"][0]["action"] == "exclude"
    assert "original" not in filtered.audit["decisions"][0]


def store() -> PresetStore:
    return PresetStore(new_id=iter("abc").__next__)


def test_policies_are_saved_where_they_are_kept() -> None:
    policies = HistoryPolicies(store())
    assert policies.read("s1").revision == 0
    changed = {**DEFAULT_POLICY.to_json(), "enabled": True}
    first = policies.save("s2", changed, 0, "standard")
    assert (first.revision, policies.read("s2")) == (1, first)
    with pytest.raises(TapsterError) as raised:
        policies.save("s2", changed, 0, "standard")
    assert (raised.value.code, raised.value.status) == ("HISTORY_POLICY_CONFLICT", 409)
    with pytest.raises(TapsterError) as raised:
        policies.save("s2", HIDING.to_json(), 1, "standard")
    assert raised.value.code == "HISTORY_ADVANCED_REQUIRED"
    assert read_policies(policies.to_json(), store()).read("s2") == first


def test_a_snapshots_policy_is_saved_in_the_snapshot_alone() -> None:
    presets = store()
    listed = presets.save({**HEAD, "rules": [], "historyPolicy": HIDING.to_json()})
    presets.apply("s1", listed.id)
    policies = HistoryPolicies(presets)
    present = policies.read("s1")
    assert present.policy == HIDING
    off = {**HIDING.to_json(), "enabled": False}
    saved = policies.save("s1", off, present.revision, "standard")
    assert saved.revision != present.revision
    assert policies.read("s1") == saved
    assert presets.get(listed.id).preset.history_policy == HIDING
    assert policies.sessions == {}


@pytest.mark.parametrize(
    "bad", [{"version": 2, "sessions": {}}, {"version": 1, "sessions": {"s": {"revision": 0}}}, []]
)
def test_a_bad_store_is_refused(bad: Json) -> None:
    with pytest.raises(TapsterError) as raised:
        read_policies(bad, store())
    assert raised.value.code == "HISTORY_STORE_INVALID"


def test_odd_events_and_blocks_are_passed_over() -> None:
    policy = HistoryPolicy(True, (), fragments=(FragmentRule("f", "model", "<x>", "</x>", "literal"),))
    reply = message("a1", "assistant", "a <x>b</x>", "model")
    reply["content"] += ["loose", {"type": "text"}, {"type": "image"}]
    events: Json = ["odd", {"type": ["x"]}, {"type": "user/message", "data": message("u1", "user")}]
    events.append({"seq": 3, "type": "assistant/message", "data": {"message": reply}})
    filtered = filter_history([reply, message("u1", "user")], events, policy)
    assert [block["text"] for block in filtered.messages[0]["content"][:1]] == ["a "]
    assert filtered.messages[0]["content"][1:] == ["loose", {"type": "text"}, {"type": "image"}]


def test_a_delimiter_without_text_is_never_found() -> None:
    assert find_fragments("text", FragmentRule("f", "model", "", "x", "literal")).warning == "AMBIGUOUS_FRAGMENT"
    assert find_fragments("abc", FragmentRule("f", "model", "", "d", "literal")).ranges == ()
