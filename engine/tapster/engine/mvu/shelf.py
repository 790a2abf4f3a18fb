"""Variable resources as sessions hold them: revisions, idempotent edits, management mode, usage decisions.

Source: spec/text_and_mvu C8, C10; spec/loader §14 "Edit API", "Policy events".
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from tapster.engine.ecma import sha256_json, stringify, utf16_length
from tapster.engine.errors import RequestError
from tapster.engine.limits import MVU_OPERATION_UNITS

from .apply import apply_update
from .errors import MvuError
from .schema import validate
from .state import VariableHistory, Version
from .variables import normalize_variables

Json: TypeAlias = Any
Mode = Literal["native", "managed"]
STRATEGY_REVISION = 1
DEFAULT_INSTRUCTIONS = (
    "When something above changes, end the reply with the changes as a JSON Patch: "
    '<JSONPatch>[{"op":"replace","path":"/key","value":1},{"op":"delta","path":"/count","value":-1}]</JSONPatch>. '
    "Paths are relative to the object above; values are literal."
)


class MvuEditRefused(RequestError):
    """An edit of variables that doesn't fit their state; ``code`` is the contract's word."""

    code = "REVISION_CONFLICT"
    kind = "Error"
    status = 409


@attrs.frozen
class Decision:
    """A policy's answer about one use."""

    enabled: bool
    config_revision: int | None = None
    reason: str = ""


@attrs.frozen
class Operation:
    """An edit that was done."""

    fingerprint: str
    revision: int


@attrs.frozen
class VariableResource:
    """The variables of one session (or a shared entity): their history, and who manages them.

    ``config_revision`` counts changes of the configuration; a resource found in a card starts managed, so that nothing
    is granted by finding it.
    """

    id: str
    history: VariableHistory | None = None
    mode: Mode = "managed"
    config_revision: int = 1
    instructions: str = DEFAULT_INSTRUCTIONS
    operations: Mapping[str, Operation] = attrs.field(factory=dict)

    @property
    def revision(self) -> int:
        return self.history.current.revision if self.history is not None else 0

    @property
    def variables(self) -> Mapping[str, Json]:
        """The variables in force.

        Raises:
            MvuError: ``MVU_BASELINE_REQUIRED`` before the first state exists.
        """
        if self.history is None:
            raise MvuError("MVU_BASELINE_REQUIRED", f"{self.id} has no state yet")
        return self.history.current.variables

    def may_be_used(self, decision: Decision | None) -> bool:
        """Native without a handler is allowed; managed needs an approval for the present configuration."""
        if decision is None:
            return self.mode == "native"
        current = decision.config_revision in (None, self.config_revision)
        return decision.enabled and current

    def set_mode(self, mode: Mode, *, expected_config_revision: int) -> "VariableResource":
        """Hand the resource to a manager or back.

        Raises:
            MvuEditRefused: ``REVISION_CONFLICT``.
        """
        if expected_config_revision != self.config_revision:
            raise MvuEditRefused(f"{self.id} is at configuration {self.config_revision}")
        return attrs.evolve(self, mode=mode, config_revision=self.config_revision + 1)

    def edited(
        self,
        change: Callable[[Mapping[str, Json]], Json],
        *,
        fingerprint: str,
        expected_revision: int,
        operation_id: str,
        seq: int,
    ) -> "VariableResource":
        """The resource after an edit by hand; the same operation again changes nothing.

        Raises:
            MvuEditRefused: ``REVISION_CONFLICT``, ``MVU_IDEMPOTENCY_CONFLICT``, ``INVALID_OPERATION``.
            MvuError: the new variables are not usable.
        """
        if not 1 <= utf16_length(operation_id) <= MVU_OPERATION_UNITS:
            raise MvuEditRefused(f"an operation id has 1 to {MVU_OPERATION_UNITS} characters", code="INVALID_OPERATION")
        done = self.operations.get(operation_id)
        if done is not None:
            if done.fingerprint != fingerprint:
                raise MvuEditRefused(f"operation {operation_id!r} was another one", code="MVU_IDEMPOTENCY_CONFLICT")
            return self
        if expected_revision != self.revision:
            raise MvuEditRefused(f"{self.id} is at revision {self.revision}, not {expected_revision}")
        before = self.variables
        after = normalize_variables(change(before))
        changed = after["stat_data"] != before.get("stat_data")
        version = Version(seq, f"operation:{operation_id}", fingerprint, self.revision + 1, after, changed=changed)
        history = VariableHistory((*(self.history.versions if self.history else ()), version))
        operations = {**self.operations, operation_id: Operation(fingerprint, version.revision)}
        return attrs.evolve(self, history=history, operations=operations)

    def patched(self, operations: Json, *, expected_revision: int, operation_id: str, seq: int) -> "VariableResource":
        """After a JSON patch, as a card or a person sends it.

        Raises:
            MvuEditRefused: as ``edited``.
            MvuError: ``MVU_PARSE`` …; a skipped command fails the whole patch here.
        """
        text = f"<JSONPatch>{stringify(operations)}</JSONPatch>"

        def change(before: Mapping[str, Json]) -> Json:
            after = apply_update(before, text)
            for skipped in after["update_diagnostics"]:
                raise MvuError(
                    skipped["code"], f"operation {skipped['command']} of the patch doesn't fit the variables"
                )
            return after

        return self.edited(
            change,
            fingerprint=sha256_json(["patch", operations, expected_revision]),
            expected_revision=expected_revision,
            operation_id=operation_id,
            seq=seq,
        )

    def replaced(self, stat_data: Json, *, expected_revision: int, operation_id: str, seq: int) -> "VariableResource":
        """With other data; the schema stays.

        Raises:
            MvuEditRefused: as ``edited``.
            MvuError: the data is not usable, or doesn't fit the schema.
        """

        def change(before: Mapping[str, Json]) -> Json:
            validate(stat_data, before["schema"])
            return {**before, "stat_data": stat_data, "display_data": stat_data, "delta_data": {}}

        return self.edited(
            change,
            fingerprint=sha256_json(["replace", stat_data, expected_revision]),
            expected_revision=expected_revision,
            operation_id=operation_id,
            seq=seq,
        )

    def block(self) -> dict[str, Json]:
        """The text block of a request: the data as compact JSON, then the instructions. Source: C9."""
        data = self.variables.get("stat_data")
        key = sha256_json([self.id, self.revision, self.config_revision, STRATEGY_REVISION])
        return {
            "type": "text",
            "id": f"v1-{key[:32]}",
            "text": f"{stringify(data)}\n{self.instructions}",
            "role": "system",
            "source": {"resourceId": self.id, "field": "stat_data"},
        }

    def version_fact(self, block_id: str) -> dict[str, Json]:
        """The diagnostic that says which state a request carries."""
        return {
            "code": "MVU_RESOURCE_VERSION",
            "resourceId": self.id,
            "blockId": block_id,
            "revision": self.revision,
            "configRevision": self.config_revision,
            "strategyRevision": STRATEGY_REVISION,
        }
