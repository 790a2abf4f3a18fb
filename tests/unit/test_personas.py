"""Personas: limits and refusals."""

import pytest

from tapster.engine.errors import FormatError
from tapster.engine.formats.personas import create_persona, update_persona


@pytest.mark.parametrize(
    ("given", "slug"),
    [
        ([], "not-object"),
        ({"name": 5}, "field-not-string"),
        ({"name": "A" * 201}, "too-long"),
        ({"name": "🦊" * 101}, "too-long"),
        ({"name": "a\x07b"}, "control-characters"),
        ({"name": "A", "description": "x" * 100_001}, "too-long"),
        ({"name": "A", "id": "../x"}, "bad-user-id"),
    ],
)
def test_refusals(given: object, slug: str) -> None:
    with pytest.raises(FormatError) as caught:
        create_persona(given, generated_id="user-1")
    assert caught.value.slug == slug


def test_a_generated_id_stands_in() -> None:
    assert create_persona({"name": "🦊" * 100}, generated_id="user-1").id == "user-1"


def test_an_update_cannot_change_the_id() -> None:
    persona = create_persona({"name": "A", "id": "a"})
    with pytest.raises(FormatError) as caught:
        update_persona(persona, {"id": "b"})
    assert caught.value.slug == "unknown-field"
