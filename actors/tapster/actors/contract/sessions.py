"""What a session would send now, as ``/v1/active`` shows it.

Source: spec/http §5.1.
"""

from typing import final

from tapster.actors.session import Assembled
from tapster.actors.session.capture import audit_facts
from tapster.engine.ecma import Json
from tapster.engine.policy import selection_json
from tapster.engine.trace import AuditFacts, begin_audit

from .ports import SessionHost
from .selections import ContractSelections

PREVIEW_ID = "preview"


@final
class ContractSessions:
    """The sessions of one host."""

    def __init__(self, selections: ContractSelections, host: SessionHost) -> None:
        self._selections = selections
        self._host = host

    async def active(self, session_id: str) -> Json:
        """The body without ``ok``; an assembly runs and nothing is recorded.

        Raises:
            TapsterError: the session doesn't exist or can't be assembled.
        """
        selection = await self._selections.get(session_id)
        assembled = await self._host.preview(session_id)
        preset_id = selection.preset_id
        preset = None if preset_id is None else await self._selections.summary("preset", preset_id)
        audit = _audit(session_id, assembled)
        return {
            "selected": preset and {"id": preset["id"], "name": preset["name"]},
            "selection": assembled.selection,
            "sessionSelection": selection_json(selection),
            "worldBookSelection": audit["worldBookSelection"],
            "resources": audit["resources"],
            "callConfig": assembled.snapshot.call_config.to_json(),
            "diagnostics": [item.to_json() for item in assembled.snapshot.diagnostics],
            "audit": audit,
        }


def _audit(session_id: str, assembled: Assembled) -> dict[str, Json]:
    """The audit that the step would have; it belongs to no turn."""
    return begin_audit(audit_facts(AuditFacts(session_id, PREVIEW_ID, 0, 0, 0, 0), assembled))
