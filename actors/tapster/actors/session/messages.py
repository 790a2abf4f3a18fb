"""What a session is asked and told."""

from collections.abc import Mapping

import attrs

from tapster.actors.sources.requests import CoreAsked, NativeAsked
from tapster.actors.store.values import ResourceUse
from tapster.engine.activation.sillytavern import ScanResult
from tapster.engine.activation.tavern import AdapterResult
from tapster.engine.assembly import AssemblyPreset
from tapster.engine.ecma import Json
from tapster.engine.policy import RpIntent
from tapster.engine.profile import ProfileSnapshot
from tapster.engine.profile.sillytavern import GenerationType
from tapster.engine.projection import ContextMetadata
from tapster.engine.trace import BoundedBooks, ObservedRequest, OfficialAssembly


@attrs.frozen
class Assemble:
    """Make the profile of one model step from what the session has bound.

    Attributes:
        trigger: the kind of generation, which world-book entries may be limited to.
        host_context: names the host supplies (``user``, ``character`` …).
    """

    turn: int
    step: int
    host_context: Mapping[str, Json] = attrs.field(factory=dict)
    trigger: GenerationType = "normal"


@attrs.frozen
class Preview:
    """What would be sent now; changes nothing.

    Attributes:
        draft: a message that isn't in the inbox, taken as if it were claimed; None for none.
    """

    draft: str | None = None
    host_context: Mapping[str, Json] = attrs.field(factory=dict)
    trigger: GenerationType = "normal"


@attrs.frozen(eq=False)
class AssembleRequest:
    """Make a step's request by the session's strategy; ``Assemble`` of the same step came before."""

    asked: NativeAsked | CoreAsked


@attrs.frozen(eq=False)
class PreviewRequest:
    """What the session's strategy, or another one, would send now; changes nothing.

    Attributes:
        preset: a strategy to try, None for the applied one.
        draft: as in ``Preview``; ``asked`` has it as claimed input.
    """

    asked: NativeAsked | CoreAsked
    preset: AssemblyPreset | None = None
    draft: str | None = None
    host_context: Mapping[str, Json] = attrs.field(factory=dict)
    trigger: GenerationType = "normal"


@attrs.frozen
class Assembled:
    """A finished profile, with what it was made of.

    Attributes:
        policy_text: text of the RP policy section, None when there is none.
        seed: of the random draws; ``draws`` counts those taken.
        selection: the session's selection as its document holds it.
        uses: the resource revisions it was made from.
        rules: how the books were activated: mode, and in mode ``sillytavern`` quirks and token counter.
        lore: what became of each world-book entry, for explanations.
        audit_books: what a record keeps of the books.
        strategy: what a record keeps of the strategy that makes the request, None without one.
    """

    assembly_id: str
    snapshot: ProfileSnapshot
    activation: ContextMetadata
    policy_text: str | None
    seed: str
    draws: int
    selection: Mapping[str, Json]
    uses: tuple[ResourceUse, ...] = ()
    rules: Mapping[str, Json] = attrs.field(factory=dict)
    lore: AdapterResult | ScanResult | None = attrs.field(default=None, eq=False, repr=False)
    audit_books: BoundedBooks = attrs.field(factory=BoundedBooks, eq=False, repr=False)
    strategy: Mapping[str, Json] | None = None


@attrs.frozen
class BeginRequest:
    """The start of ``agent/request``: an unfinished capture is closed."""


@attrs.frozen
class RequestPrepared:
    """The end of ``agent/request``: the capture begins.

    Attributes:
        parameters: the preset's sampling values, what applies of them, and what was withdrawn; None without any.
    """

    turn: int
    step: int
    assembly: OfficialAssembly | None
    parameters: Json = None


@attrs.frozen
class RequestLeft:
    """``llm/stream``: the request as it left."""

    request: ObservedRequest


@attrs.frozen
class RequestErrored:
    """``agent/request-error`` and whether it is tried again."""

    turn: int
    step: int
    is_retry: bool


@attrs.frozen
class EventsLogged:
    """The host appended events; the session reads them when it comes to it."""


@attrs.frozen
class CatchUp:
    """Apply everything the host has logged; the answer says how far."""


@attrs.frozen
class RequestRp:
    """Switch RP mode; None only asks how it is."""

    wanted: RpIntent | None


@attrs.frozen
class CommitQueuedRp:
    """A step boundary: carry out what was queued."""


@attrs.frozen
class CancelAssembly:
    """Stop the live assembly, if any."""

    reason: str


@attrs.frozen
class Leave:
    """The host's session sleeps or is gone: take in what is left of its events, and end."""


@attrs.frozen
class Applied:
    """How far a session has followed its host: the next event's seq."""

    seq: int
