"""Personas: who the user is in a chat (the contract calls the resource "user").

Source: spec/resources §5.
"""

import attrs


@attrs.frozen
class Persona:
    """A persona; the description is kept untrimmed."""

    id: str
    name: str
    description: str = ""
