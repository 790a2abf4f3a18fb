"""Declared variable schemas: a Zod-like subset read from a card's script, never executed as JavaScript."""

from .schema import declared_schema as declared_schema
