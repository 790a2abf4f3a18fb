"""Published revisions: counters that an assembly compares without waiting.

A session depends on its selection and on what it had bound when it last looked. A change of a resource counts for the
sessions that use it, and for nobody else, so importing a folder of cards disturbs no running assembly.

Source: design §4 rules 4, 11.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import TypeAlias, final

from tapster.actors.store import RESOURCE_KINDS, ResourceKind, SessionKey
from tapster.runtime import Watched

Dependency: TypeAlias = tuple[str, str]
"""A kind of resource and an id, or a shared document and ""."""


@final
class Counters:
    """Counts changes once they are durable; read by anyone, written by the library alone."""

    def __init__(self) -> None:
        self.kinds: dict[ResourceKind, Watched[int]] = {kind: Watched(0) for kind in RESOURCE_KINDS}
        """Changes of any resource of a kind, for lists and pages."""
        self.total = Watched(0)
        """Changes of anything."""
        self._selections: dict[SessionKey, int] = {}
        self._used: dict[SessionKey, int] = {}
        self._dependencies: dict[SessionKey, frozenset[Dependency]] = {}
        self._dependents: defaultdict[Dependency, set[SessionKey]] = defaultdict(set)

    def look(self, key: SessionKey) -> None:
        """A session will compare: what changes for it from now on is counted, for others nothing is kept."""
        self._dependencies.setdefault(key, frozenset())

    def selection(self, key: SessionKey) -> int:
        """How often a session's selection changed since it looked."""
        return self._selections.get(key, 0)

    def used(self, key: SessionKey) -> int:
        """How often something that a session uses changed since it looked."""
        return self._used.get(key, 0)

    def depend(self, key: SessionKey, on: Iterable[Dependency]) -> None:
        """From now on a session uses exactly these."""
        self._drop(key)
        self._dependencies[key] = frozenset(on)
        for dependency in self._dependencies[key]:
            self._dependents[dependency].add(key)

    def forget(self, key: SessionKey) -> None:
        """A session is over, or idle: it uses nothing until it looks again, and nothing of it is kept."""
        self._drop(key)
        self._selections.pop(key, None)
        self._used.pop(key, None)

    def selection_changed(self, key: SessionKey) -> None:
        """A selection's change is durable."""
        if key in self._dependencies:
            self._selections[key] = self.selection(key) + 1
        self.total.set(self.total.value + 1)

    def resource_changed(self, kind: ResourceKind, resource_id: str) -> None:
        """A resource's change is durable."""
        self.kinds[kind].set(self.kinds[kind].value + 1)
        self.changed(kind, resource_id)

    def changed(self, name: str, part: str = "") -> None:
        """A change of something that sessions use is durable."""
        self.total.set(self.total.value + 1)
        for key in self._dependents.get((name, part), ()):
            self._used[key] = self.used(key) + 1

    def everything_changed(self) -> None:
        """What is known was read anew: whoever looked before looks again."""
        for kind in self.kinds.values():
            kind.set(kind.value + 1)
        for key in self._dependencies:
            self._used[key] = self.used(key) + 1
        self.total.set(self.total.value + 1)

    def _drop(self, key: SessionKey) -> None:
        for dependency in self._dependencies.pop(key, frozenset()):
            users = self._dependents[dependency]
            users.discard(key)
            if not users:
                del self._dependents[dependency]
