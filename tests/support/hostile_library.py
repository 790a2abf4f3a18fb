"""A library in memory in which some sessions have a hostile world book."""

import attrs

from tapster.actors.session import Bound
from tapster.actors.store.values import SessionKey
from tapster.engine.activation.tavern import PRODUCT_MATCHING, LibraryBook, compile_book
from tapster.engine.formats.world_books import parse_world_book
from tests.support.hostile import PATTERNS
from tests.support.tavern import MemoryLibrary


@attrs.define(eq=False)
class HostileLibrary(MemoryLibrary):
    """The library in memory; a session named ``h<n>`` has a book whose only key is hostile pattern n."""

    async def bound(self, key: SessionKey) -> Bound:
        bound = await MemoryLibrary.bound(self, key)
        if not key.session.startswith("h"):
            return bound
        book = {"entries": {"0": {"uid": 0, "key": [f"/{PATTERNS[int(key.session[1:])]}/"], "content": "never"}}}
        compiled = compile_book(parse_world_book(book), PRODUCT_MATCHING)
        return attrs.evolve(bound, library_books={"w1": LibraryBook("w1", "Trap", compiled, revision="r")})
