"""A small memory source for Tapster: facts that come back when the conversation touches them."""

import os
from pathlib import Path

from tapster.actors.sources import SourcePlugin

from .facts import Fact as Fact
from .facts import FactFile as FactFile
from .source import MemoryFacts as MemoryFacts

FILE_VARIABLE = "TAPSTER_MEMORY_FILE"


def default_file() -> Path:
    """The file of facts: the environment's, else one in the home folder."""
    return Path(os.environ.get(FILE_VARIABLE) or Path.home() / ".tapster-memory.jsonl").expanduser()


def plugin() -> SourcePlugin:
    """What the entry point offers."""
    return SourcePlugin(sources=(MemoryFacts(FactFile(default_file())),))
