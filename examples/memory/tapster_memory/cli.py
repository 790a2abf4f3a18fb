"""``tapster-memory``: remember and list facts."""

import argparse
from collections.abc import Sequence

from . import FactFile, default_file
from .facts import Fact


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(prog="tapster-memory", description="Facts for Tapster's memory source.")
    commands = parser.add_subparsers(dest="command", required=True)
    remember = commands.add_parser("remember", help="add a fact")
    remember.add_argument("text")
    remember.add_argument("--key", action="append", default=[], help="a word that brings the fact back; may repeat")
    remember.add_argument("--session", help="the only session the fact is for")
    commands.add_parser("list", help="print the facts")
    given = parser.parse_args(arguments)
    facts = FactFile(default_file())
    if given.command == "remember":
        facts.remember(Fact(given.text, tuple(given.key), given.session))
        return 0
    for fact in facts.read():
        print(f"{fact.id}  {','.join(fact.keys) or '(always)'}  {fact.text}")
    return 0
