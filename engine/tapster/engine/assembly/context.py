"""What the sources of one request share: a frozen context.

Source: spec/assembler §5.
"""

from collections.abc import Mapping, Sequence

import attrs

from tapster.engine.ecma import Json

from .frozen import FrozenDict, FrozenList, freeze
from .messages import Message, check_native
from .preset import AssemblyPreset


@attrs.frozen(eq=False)
class RequestContext:
    """Everything a source may look at; one object for all sources of a request, usable as a key.

    Attributes:
        session_id: the session, or an empty string.
        turn: the host's turn; None in a preview.
        step: the host's step; None in a preview.
        preview: whether nothing may be written.
        preset: the normalised preset.
        assets: opaque, deeply read-only JSON of the caller; no source may assume its members.
        native_messages: the session's messages, deeply read-only.
        input_ids: ids of the messages that are this step's input.
    """

    preset: AssemblyPreset
    session_id: str = ""
    turn: int | None = None
    step: int | None = None
    preview: bool = False
    assets: Mapping[str, Json] = attrs.field(factory=FrozenDict)
    native_messages: Sequence[Message] = attrs.field(factory=FrozenList)
    input_ids: tuple[str, ...] = ()


def freeze_context(
    preset: AssemblyPreset,
    native_messages: Sequence[Message],
    *,
    assets: Mapping[str, Json] | None = None,
    input_ids: Sequence[str] = (),
    session_id: str = "",
    turn: int | None = None,
    step: int | None = None,
    preview: bool = False,
) -> RequestContext:
    """Copy a request's inputs once, so that nothing a caller does later reaches its sources.

    ``assets.context`` keeps its string members only.

    Raises:
        InvalidAssembly: ``NATIVE_MESSAGE_INVALID``.
    """
    check_native(native_messages)
    members = dict(assets or {})
    texts = members.get("context")
    if isinstance(texts, dict):
        members["context"] = {key: value for key, value in texts.items() if isinstance(value, str)}
    return RequestContext(
        preset=preset,
        session_id=session_id,
        turn=None if preview else turn,
        step=None if preview else step,
        preview=preview,
        assets=freeze(members),
        native_messages=freeze(list(native_messages)),
        input_ids=tuple(input_ids),
    )
