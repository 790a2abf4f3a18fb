"""The dice and the clock of each request, found by its context.

A context is one object for all sources of a request, and lives as long as somebody looks at it.
"""

import weakref
from typing import final

import attrs

from tapster.engine.assembly import RequestContext
from tapster.engine.assembly.tavern import steady_draws
from tapster.engine.text.tavern_macros import Draw
from tapster.engine.text.templates import Surroundings


@attrs.frozen(eq=False)
class _Given:
    draw: Draw
    surroundings: Surroundings


@final
@attrs.define(eq=False)
class RequestDraws:
    """A ``DrawSource`` over what each request was given."""

    _given: "weakref.WeakKeyDictionary[RequestContext, _Given]" = attrs.field(factory=weakref.WeakKeyDictionary)

    def give(self, context: RequestContext, draw: Draw, surroundings: Surroundings) -> None:
        """Set the dice and the clock of a request before its sources are asked."""
        self._given[context] = _Given(draw, surroundings)

    def __call__(self, context: RequestContext) -> Draw:
        """The dice of a request."""
        given = self._given.get(context)
        return steady_draws(context) if given is None else given.draw

    def around(self, context: RequestContext) -> Surroundings:
        """What replaces clock and dice inside a template."""
        given = self._given.get(context)
        return Surroundings() if given is None else given.surroundings
