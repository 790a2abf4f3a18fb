"""The surface: the ordered events a model sees, and the messages derived from them.

Source: spec/dsh_host §1, §5 "Surface replacement", §6.
"""

from collections.abc import Iterable
from typing import final

import attrs

from tapster.engine.ecma import Json
from tapster.engine.errors import FormatError

from .events import SYSTEM_MESSAGE, Event, SurfaceReplace, event_message


@final
@attrs.define(eq=False)
class Surface:
    """The surface of one session, kept up event by event.

    Attributes:
        nodes: the events on it, in the order a model sees them.
        replace_generation: how many replacements have happened.
    """

    nodes: list[Event] = attrs.field(factory=list)
    replace_generation: int = 0

    def apply(self, event: Event) -> None:
        """Take in the next event of the log; boundaries, headers and chunks change nothing.

        Raises:
            FormatError: slug ``bad-surface-op`` when it replaces nodes that aren't on the surface.
        """
        if event.surface_op is None:
            return
        if isinstance(event.surface_op, SurfaceReplace):
            first, last = self.span(event.surface_op)
            self.nodes[first : last + 1] = [event]
            self.replace_generation += 1
        else:
            self.nodes.append(event)

    def span(self, replaced: SurfaceReplace) -> tuple[int, int]:
        """The positions of the first and last replaced node.

        Raises:
            FormatError: slug ``bad-surface-op``.
        """
        seqs = [node.seq for node in self.nodes]
        if replaced.start_seq not in seqs or replaced.end_seq not in seqs:
            raise FormatError(
                "bad-surface-op",
                f"nodes {replaced.start_seq} to {replaced.end_seq} aren't on the surface",
            )
        first, last = seqs.index(replaced.start_seq), seqs.index(replaced.end_seq)
        if first > last:
            raise FormatError("bad-surface-op", f"node {replaced.start_seq} stands after {replaced.end_seq}")
        return first, last

    def system_node(self) -> Event | None:
        """The newest system message on the surface, or None."""
        return next((node for node in reversed(self.nodes) if node.type == SYSTEM_MESSAGE), None)

    def messages(self) -> tuple[Json, ...]:
        """The derived messages: what the nodes carry, unchanged and in order."""
        found = (event_message(node) for node in self.nodes)
        return tuple(message for message in found if message is not None)

    def snapshot(self) -> tuple[Event, ...]:
        """The nodes as they are now."""
        return tuple(self.nodes)


def surface_of(events: Iterable[Event]) -> Surface:
    """The surface after a whole log."""
    surface = Surface()
    for event in events:
        surface.apply(event)
    return surface


def derive_messages(events: Iterable[Event]) -> tuple[Json, ...]:
    """The model-visible messages of a log, as the host's ``deriveMessages()`` gives them."""
    return surface_of(events).messages()
