"""State read at the start that may be unreadable: nothing but whoever needs it is stopped."""

from collections.abc import Awaitable
from typing import Generic, TypeVar, final

from tapster.engine.errors import StoreError

from .errors import anew

T = TypeVar("T")


@final
class Loaded(Generic[T]):
    """A value, or why there is none."""

    def __init__(self, value: T | StoreError) -> None:
        self._value = value

    @property
    def problem(self) -> StoreError | None:
        """Why there is no value; None when all is well."""
        return self._value if isinstance(self._value, StoreError) else None

    @property
    def value(self) -> T:
        """The value.

        Raises:
            StoreError: it couldn't be read at the start; what is stored was left as it is.
        """
        if isinstance(self._value, StoreError):
            raise anew(self._value)
        return self._value


async def load(reading: Awaitable[T], *, again: bool = False) -> Loaded[T]:
    """What a reading gives, its refusal by the store included.

    Args:
        again: it could be read before.

    Raises:
        StoreError: ``again``, and it can't be read now.
    """
    try:
        return Loaded(await reading)
    except StoreError as error:
        if again:
            raise
        return Loaded(error)
