"""Who owns which state: sessions, store, library, agents, hosts, providers (design §4).

``open_tapster``, ``Tapster`` and ``TapsterConfig`` are loaded when they are first asked for: everything below imports
this package, so importing the root here would go round in a circle.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .tapster import Tapster as Tapster
    from .tapster import TapsterConfig as TapsterConfig
    from .tapster import open_tapster as open_tapster

_ROOT: Final = frozenset({"Tapster", "TapsterConfig", "open_tapster"})


def __getattr__(name: str) -> object:
    if name not in _ROOT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".tapster", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_ROOT})
