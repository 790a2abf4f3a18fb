"""What a history policy would keep, shown before it is saved.

Source: spec/history_policy §8 "Preview".
"""

from collections.abc import Sequence

from tapster.engine.assembly import StoredPolicy
from tapster.engine.assembly.history import HistoryPolicy, filter_history, plan_standard, restore_placeholders
from tapster.engine.assembly.history.policies import Mode, capabilities
from tapster.engine.ecma import Json
from tapster.engine.projection import Event, surface_of


def preview_policy(
    events: Sequence[Event],
    stored: StoredPolicy,
    policy: HistoryPolicy | None,
    mode: Mode,
    current_step_seq: int | None = None,
) -> dict[str, Json]:
    """The rows of a session's history under a policy.

    Args:
        stored: the session's policy.
        policy: a draft, None for the stored one.
        current_step_seq: of a step under way; what it brought is kept.
    """
    surface = surface_of(events)
    raw = [event.to_json() for event in events]
    messages = surface.messages()
    tried = policy or stored.policy
    facts: dict[str, Json] = {
        "pendingInputsIncluded": False,
        "revision": stored.revision,
        "capabilities": capabilities(mode),
    }
    if mode == "standard":
        nodes = [node.seq for node in surface.nodes]
        plan = plan_standard(raw, nodes, messages, tried, revision=stored.revision)
        rows = [row.preview_json() for row in plan.rows]
        return {"preview": rows, "audit": plan.audit, "previewScope": "next-native-step", **facts}
    filtered = filter_history(
        restore_placeholders(messages, raw), raw, tried, current_step_seq=current_step_seq, retain_current_system=True
    )
    scope = "saved-native-history-only"
    rows = [decision.preview_json() for decision in filtered.decisions]
    return {"preview": rows, "audit": filtered.audit, "previewScope": scope, **facts}
