"""The capture of a session's requests: host moments in, records and audits to write out.

Source: spec/trace §4, §9.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias, final

import attrs

from tapster.engine.ecma import Json
from tapster.engine.trace import (
    AuditFacts,
    Begin,
    CaptureEvent,
    CaptureState,
    HostEventLogged,
    ObservedRequest,
    OfficialAssembly,
    RequestFailed,
    RequestStarting,
    SessionView,
    StepFailed,
    StreamObserved,
    Unloading,
    step,
)
from tapster.runtime import Clock, Ids

from .messages import Assembled
from .state import STEP_START, TURN_END


@attrs.frozen
class Written:
    """What a moment asks to be written."""

    records: tuple[Json, ...] = ()
    audits: tuple[Json, ...] = ()


CaptureMoment: TypeAlias = Callable[[], Written]
_WATCHED = frozenset(
    {"request/header", "assistant/message", "assistant/attempt", "assistant/chunk", "turn/end", "system/message"}
)


@final
class Capture:
    """One capture a live session; every moment is applied in the order in which the host reached it."""

    def __init__(self, session_id: str, clock: Clock, ids: Ids) -> None:
        self._session_id = session_id
        self._clock = clock
        self._ids = ids
        self._state = CaptureState()
        self._attempts: dict[tuple[int, int], int] = {}
        self._at = (0, 0)

    def starting(self) -> Written:
        """Start of ``agent/request``."""
        return self._step(RequestStarting())

    def begin(
        self,
        turn: int,
        step_number: int,
        official: OfficialAssembly | None,
        assembled: Assembled | None,
        parameters: Json = None,
    ) -> Written:
        """End of ``agent/request``: the record of this attempt is made and written."""
        capture_id, attempt = self._ids.uuid(), self._next_attempt(turn, step_number)
        now = self._clock.now_ms()
        facts = AuditFacts(self._session_id, capture_id, turn, step_number, attempt, now)
        event = Begin(capture_id, self._session_id, turn, step_number, attempt, now, official, audit=facts)
        if assembled is not None:
            event = attrs.evolve(
                event,
                known_parts=assembled.snapshot.sections,
                selection=assembled.selection,
                audit=_with_profile(facts, assembled),
                extras={
                    "rolls": {"seed": assembled.seed, "draws": assembled.draws},
                    "activationRules": dict(assembled.rules),
                    **({} if assembled.strategy is None else {"strategy": dict(assembled.strategy)}),
                    **({} if parameters is None else {"parameters": parameters}),
                },
            )
        return self._step(event)

    def observed(self, request: ObservedRequest, session: SessionView) -> Written:
        """``llm/stream``."""
        return self._step(StreamObserved(request, session))

    def request_failed(self, turn: int, step_number: int, is_retry: bool) -> Written:
        """``agent/request-error``."""
        return self._step(RequestFailed(turn, step_number, is_retry, self._clock.now_ms()))

    def _step_failed(self, turn: int, step_number: int) -> Written:
        attempt = self._next_attempt(turn, step_number)
        now = self._clock.now_ms()
        return self._step(StepFailed(self._ids.uuid(), self._session_id, turn, step_number, attempt, now))

    def logged(self, event: Json, view: Callable[[], SessionView]) -> Written:
        """An event was appended; ``view`` is only made for events that a capture cares for.

        ``agent/error`` is taken from the log too: it comes right before the ``turn/end`` that names the error. As a
        message of its own it could be met after that event, and would make a second record of the same failure.
        """
        if event["type"] == STEP_START:
            self._at = event["data"]["turn"], event["data"]["step"]
        if event["type"] == TURN_END and event["data"]["reason"]["kind"] == "error":
            turn = event["data"]["turn"]
            failed = self._step_failed(turn, self._at[1] if self._at[0] == turn else 0)
            ended = self._logged(event, view)
            return Written((*failed.records, *ended.records), (*failed.audits, *ended.audits))
        return self._logged(event, view)

    def _logged(self, event: Json, view: Callable[[], SessionView]) -> Written:
        if event["type"] not in _WATCHED or (self._state.record is None and self._state.audit is None):
            return Written()
        return self._step(HostEventLogged(event, view(), self._clock.now_ms()))

    def unloading(self) -> Written:
        """The session ends here."""
        return self._step(Unloading())

    def _step(self, event: CaptureEvent) -> Written:
        result = step(self._state, event)
        self._state = result.state
        return Written(tuple(record.to_json() for record in result.records), tuple(dict(a) for a in result.audits))

    def _next_attempt(self, turn: int, step_number: int) -> int:
        # Only the step under way can be tried again, so one count is all there is to keep.
        attempt = self._attempts.get((turn, step_number), 0) + 1
        self._attempts = {(turn, step_number): attempt}
        return attempt


def _with_profile(facts: AuditFacts, assembled: Assembled) -> AuditFacts:
    snapshot, audit = assembled.snapshot, assembled.snapshot.audit
    resources = dict(audit["resources"])
    return attrs.evolve(
        facts,
        profile_text=snapshot.system_text,
        fingerprint=snapshot.fingerprint,
        system_prompt_mode=snapshot.system_prompt_mode,
        call_config=snapshot.call_config.to_json(),
        selection=_audit_selection(assembled.selection),
        world_book_selection=audit["worldBookSelection"] or {},
        resources={
            "preset": resources.get("preset"),
            "characterCard": resources.get("character"),
            "userProfile": resources.get("user"),
            "worldBooks": resources.get("worldBooks"),
        },
        world_books=assembled.audit_books,
        activation=audit["activation"] or {},
        diagnostics=[diagnostic.to_json() for diagnostic in snapshot.diagnostics],
    )


def _audit_selection(selection: Mapping[str, Json]) -> Mapping[str, Json]:
    return {**selection, "userProfileId": selection.get("userId")}
