"""A computed profile as it is handed over."""

from tapster.engine.policy import selection_json
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
        computed.lore,
    )
