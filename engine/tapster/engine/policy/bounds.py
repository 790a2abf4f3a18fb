"""A configured limit, kept between its default and its hard bound."""

from tapster.engine.ecma import Json, is_safe_integer


def configured_limit(value: Json, default: int, hard: int) -> int:
    """The limit to use: an unusable value gives the default, a larger one the hard bound."""
    return min(int(value), hard) if is_safe_integer(value) and value > 0 else default
