"""A computed profile as it is handed over."""

from collections.abc import Mapping

from tapster.engine.ecma import Json
from tapster.engine.policy import selection_json
from tapster.engine.profile import ESTIMATE
from tapster.runtime import Ids

from .compute import Computed, FrozenInput
from .messages import Assembled


def assembled_from(computed: Computed, frozen: FrozenInput, ids: Ids) -> Assembled:
    """The answer to an assembly or a preview."""
    return Assembled(
        ids.uuid(),
        computed.snapshot,
        computed.activation,
        computed.policy_text,
        frozen.seed.text(),
        computed.draws,
        selection_json(frozen.bound.selection),
        frozen.bound.uses,
        _rules(frozen),
        computed.lore,
        computed.audit_books,
    )


def _rules(frozen: FrozenInput) -> Mapping[str, Json]:
    settings = frozen.bound.settings
    if frozen.bound.scan is None:
        return {"mode": "tavern"}
    return {"mode": settings.mode, "quirks": settings.scan.quirks, "tokenCounter": ESTIMATE.name}
