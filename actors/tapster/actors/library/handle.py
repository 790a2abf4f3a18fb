"""The library's handle: one part for each kind of thing in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, final

import attrs

from tapster.actors.owners import open_owner
from tapster.actors.store import HOME_HOST, Store
from tapster.engine.policy import TemplateLimits, resource_relations, user_relations
from tapster.runtime import Clock, Ids, LogSink, Threads, silent

from .activation import Activation
from .characters import Characters
from .core import LibraryCore
from .counters import Counters
from .imports import Imports
from .presets import Presets
from .relations import Relations
from .selections import Selections
from .sessions import SessionSide
from .settings import Settings
from .templates import Templates
from .users import Users
from .world_books import WorldBooks
from .writes import RelationLimits

PARSERS: Final = 2
"""Threads that parse and edit resources: the interpreter lets one compute at a time, the second hides waits."""


@final
@attrs.frozen
class LibraryConfig:
    """Limits of the library's shared documents; the contract's defaults.

    Attributes:
        host: whose sessions the templates name.
    """

    relations: RelationLimits = attrs.Factory(lambda: RelationLimits(user_relations(), resource_relations()))
    templates: TemplateLimits = attrs.Factory(TemplateLimits)
    host: str = HOME_HOST


@final
@attrs.frozen
class Library:
    """Resources, relations, selections, templates and settings; every change is durable when its call returns.

    Cancellation: a change that is cancelled either didn't happen or is durable and published, never in between.
    """

    presets: Presets
    characters: Characters
    world_books: WorldBooks
    users: Users
    relations: Relations
    selections: Selections
    activation: Activation
    templates: Templates
    settings: Settings
    sessions: SessionSide
    imports: Imports
    counters: Counters


@asynccontextmanager
async def open_library(
    store: Store, *, clock: Clock, ids: Ids, config: LibraryConfig | None = None, log: LogSink = silent
) -> AsyncIterator[Library]:
    """The library over an open store, for the length of a block.

    Raises:
        StoreError: the store can't be read.
        RestartLimit: the actor behind it crashed too often.
    """
    config = config or LibraryConfig()
    core = LibraryCore(store, clock, ids, Threads("library", PARSERS))
    async with open_owner("library", store, core.read, log) as owner:
        core.open(owner)
        presets = Presets(core, config.relations)
        relations = Relations(core, config.relations)
        selections = Selections(core, presets)
        activation = Activation(core)
        yield Library(
            presets=presets,
            characters=Characters(core, config.relations),
            world_books=WorldBooks(core, config.relations),
            users=Users(core, config.relations),
            relations=relations,
            selections=selections,
            activation=activation,
            templates=Templates(core, selections, config.templates, config.host),
            settings=Settings(core),
            sessions=SessionSide(core, selections, relations, activation),
            imports=Imports(core),
            counters=core.counters,
        )
