"""The owners of what all sessions share, for tests that crash them."""

from tapster.actors.owners import Owner
from tapster.actors.tapster import Tapster


def owner_of(tapster: Tapster, name: str) -> Owner:
    """One by its name: library, strategies, variables or templates."""
    workshop = tapster.workshop
    owner = {
        "library": tapster.library.presets._core._owner,
        "strategies": workshop.strategies._owner,
        "variables": workshop.variables._owner,
        "templates": workshop.templates._owner,
    }[name]
    assert owner is not None
    return owner
