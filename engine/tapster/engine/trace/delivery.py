"""The check at ``llm/stream``: did the recorded assembly leave, and where does history hold it?

Source: spec/trace §4.2, §6.
"""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json, is_safe_integer

from .digest import content_hash, digest, message_text
from .host import (
    FIRST_SYSTEM_MESSAGE_VERSION,
    SessionView,
    event_message,
    is_context_snapshot,
    is_same_message,
    member,
)
from .record import ContextRef, Delivery, SessionRef, SystemMessageRef, TraceRecord


@attrs.frozen
class ObservedRequest:
    """A request as it left: its messages as the host sent them, JSON by nature."""

    messages: Sequence[Json]
    system: str | None = None
    provider: Json = None
    model: Json = None
    tools: Sequence[Json] = ()

    def system_messages(self) -> list[tuple[str, Json]]:
        """(text, message) of each system text in order; the message is None for a separate system text."""
        if self.system is not None:
            return [(self.system, None)]
        return [(message_text(message), message) for message in self.messages if member(message, "role") == "system"]

    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that were offered."""
        names = (tool if isinstance(tool, str) else member(tool, "name") for tool in self.tools)
        return tuple(name for name in names if isinstance(name, str))


def observe(record: TraceRecord, request: ObservedRequest, session: SessionView | None) -> TraceRecord:
    """The record with its delivery check and every reference that history establishes."""
    systems = request.system_messages()
    hashes = tuple(digest(text) for text, _ in systems)
    index = _assembly_index(record, hashes)
    usable = session is not None and session.is_usable
    refs = tuple(_system_ref(text, message, session) for text, message in systems) if session and usable else None
    delivery = Delivery(
        log_cut_seq=session.log_cut_seq if session and usable else None,
        session_version=int(session.version) if session and is_safe_integer(session.version) else None,
        system_hashes=hashes,
        system_message_index=index,
        provider=request.provider,
        model=request.model,
        tool_names=request.tool_names(),
        is_history_verified=index is not None and refs is not None and refs[index] is not None,
    )
    observed = attrs.evolve(record, status="request-observed", delivery=delivery)
    if session is None or refs is None:
        return observed
    return attrs.evolve(
        observed,
        session=session_ref(session),
        system_refs=refs,
        context_refs=_context_refs(record, request, session),
        extras={**record.extras, **_request_assembly_ref(request, session)},
    )


def session_ref(session: SessionView, *, cut: int | None = None) -> SessionRef:
    """The reference to a usable session, cut at ``cut`` or at its last event."""
    log_cut = cut if cut is not None else session.log_cut_seq
    assert log_cut is not None, "only a usable session is referred to"
    return SessionRef(session.session_id, int(session.version), session.created_at, log_cut)


def _assembly_index(record: TraceRecord, hashes: Sequence[str]) -> int | None:
    if record.assembly is None:
        return None
    matches = [index for index, value in enumerate(hashes) if value == record.assembly.assembly_hash]
    return matches[0] if len(matches) == 1 else None


def _system_ref(text: str, message: Json, session: SessionView) -> SystemMessageRef | None:
    if session.version < FIRST_SYSTEM_MESSAGE_VERSION:
        return _header_ref(text, session)
    sent_hash = content_hash(message) if message is not None else None
    matches: list[SystemMessageRef] = []
    for event in session.surface_events():
        if event.get("type") != "system/message":
            continue
        logged = event_message(event)
        logged_hash = content_hash(logged)
        is_same = (
            is_same_message(logged, message, logged_hash, sent_hash)
            if sent_hash is not None
            else message_text(logged) == text
        )
        if is_same:
            message_id = member(logged, "id")
            usable_id = message_id if isinstance(message_id, str) else ""
            matches.append(
                SystemMessageRef("system-message", event["seq"], event["type"], digest(text), usable_id, logged_hash)
            )
    return matches[0] if len(matches) == 1 and matches[0].message_id else None


def _header_ref(text: str, session: SessionView) -> SystemMessageRef | None:
    headers = [event for event in session.events if member(event, "type") == "request/header"]
    if not headers or member(headers[-1], "data", "header", "system") != text:
        return None
    return SystemMessageRef("request-header-system", headers[-1]["seq"], "request/header", digest(text))


def _context_refs(record: TraceRecord, request: ObservedRequest, session: SessionView) -> dict[int, ContextRef]:
    if record.assembly is None or not record.assembly.contexts:
        return {}
    snapshots = [
        event
        for event in session.surface_events()
        if event.get("type") == "user/message" and is_context_snapshot(event_message(event))
    ]
    if not snapshots:
        return {}
    event, logged = snapshots[-1], event_message(snapshots[-1])
    logged_hash = content_hash(logged)
    sent = [
        message
        for message in request.messages
        if member(message, "role") == "user" and is_same_message(logged, message, logged_hash, content_hash(message))
    ]
    message_id = member(logged, "id")
    if len(sent) != 1 or not isinstance(message_id, str) or not message_id:
        return {}
    sections = member(logged, "source", "sections")
    found: dict[int, ContextRef] = {}
    for index, context in enumerate(record.assembly.contexts):
        position = _only_section(sections, context["name"], context["hash"])
        if position is not None:
            found[index] = ContextRef(
                event["seq"], message_id, logged_hash, digest(message_text(logged)), position, context["name"]
            )
    return found


def _only_section(sections: Json, name: str, text_hash: str) -> int | None:
    if not isinstance(sections, Sequence) or isinstance(sections, str):
        return None
    matches = [
        index
        for index, section in enumerate(sections)
        if member(section, "name") == name
        and isinstance(member(section, "text"), str)
        and digest(section["text"]) == text_hash
    ]
    return matches[0] if len(matches) == 1 else None


def _request_assembly_ref(request: ObservedRequest, session: SessionView) -> dict[str, Json]:
    """A reference to the host's ``request/assembly`` event when it holds exactly the observed messages."""
    events = [event for event in session.events if member(event, "type") == "request/assembly"]
    data = member(events[-1], "data") if events else None
    if not isinstance(data, Mapping) or digest(data.get("messages")) != digest(list(request.messages)):
        return {}
    return {"requestAssemblyRef": {"seq": events[-1]["seq"], "hash": digest(data), "version": 1}}
