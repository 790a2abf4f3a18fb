"""What a text that is tried on the command line sees: names, a card, a chat, variables, a clock, draws from a seed."""

import functools
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import attrs
import click

from tapster.actors.session.rolls import Rolls, RollSeed
from tapster.engine.ecma import Json, stringify
from tapster.engine.profile.sillytavern import Choices, Library, library_request
from tapster.engine.text.macros import Draw, MacroContext
from tapster.engine.text.string_hash import string_hash

from . import offline, sillytavern
from .offline import standard_input
from .paths import TYPED_PATH

_GLOBAL: Final = "A global variable; may be repeated."
_OPTIONS: Final[tuple[Callable[[Callable[..., None]], Callable[..., None]], ...]] = (
    click.option("--user", "user_name", help="Name for {{user}}."),
    click.option("--char", "char_name", help="Name for {{char}}."),
    click.option("--card", type=TYPED_PATH, help="Character card for the card's macros (PNG, JSON or CHARX)."),
    click.option("--persona", type=TYPED_PATH, help="Persona (JSON with name and description)."),
    click.option("--chat", type=TYPED_PATH, help="SillyTavern chat (JSONL): its messages and variables."),
    click.option("--var", "variables", multiple=True, metavar="NAME=VALUE", help="A variable; may be repeated."),
    click.option("--global", "globals_", multiple=True, metavar="NAME=VALUE", help=_GLOBAL),
    click.option("--seed", default="try", show_default=True, help="Seed of all draws."),
    click.option("--now", help="The clock, as 2024-03-09T14:05:09; by default the real one."),
    click.option("--timezone", help="Time zone such as Europe/Berlin; by default this machine's."),
)


@attrs.frozen(eq=False)
class Trial:
    """The surroundings of a tried text.

    Attributes:
        macros: as the dialect ``sillytavern`` sees them.
        rolls: the draws, shared by everything that is tried.
    """

    library: Library
    macros: MacroContext
    rolls: Rolls


def takes_trial(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a trial; it gets them as ``trial``."""

    @functools.wraps(command)
    def wrapped(
        *args: Any,
        user_name: str | None,
        char_name: str | None,
        card: Path | None,
        persona: Path | None,
        chat: Path | None,
        variables: tuple[str, ...],
        globals_: tuple[str, ...],
        seed: str,
        now: str | None,
        timezone: str | None,
        **options: Any,
    ) -> None:
        files = offline.Files(card=card, persona=persona, chat=chat)
        library = sillytavern.read_library(files, message=None, user_name=user_name)
        rolls = Rolls(RollSeed(seed, 0, 0), "macros")
        macros = library_request(library, Choices(), now=_clock(now, timezone), random=rolls).macros
        macros = attrs.evolve(
            macros,
            char=char_name or macros.char,
            variables={**macros.variables, **_pairs(variables)},
            global_variables=_pairs(globals_),
            chat_id="" if chat is None else chat.stem,
            chat_id_hash=string_hash("" if chat is None else chat.stem),
        )
        command(*args, trial=Trial(library, macros, rolls), **options)

    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


def read_text(given: str | None) -> str:
    """The text that was given, or standard input for ``-`` and for nothing.

    Raises:
        FormatError: standard input isn't UTF-8.
    """
    return standard_input() if given is None or given == "-" else given


def describe_variables(label: str, variables: Mapping[str, Json]) -> list[str]:
    """Variables for a person; no line when there are none."""
    texts = {name: value if isinstance(value, str) else stringify(value) for name, value in variables.items()}
    shown = ", ".join(f"{name} = {text}" for name, text in texts.items())
    return [f"{label}: {shown}"] if shown else []


def draws_json(draws: Sequence[Draw]) -> list[Json]:
    """Draws as data."""
    return [{"macro": draw.macro, "offset": draw.offset, "value": draw.value} for draw in draws]


def describe_draws(draws: Sequence[Json], seed: str) -> list[str]:
    """Draws for a person; no line when there are none."""
    shown = ", ".join(
        f"{draw['macro']} at {draw['offset']}: {draw['value']:.6f}" if "macro" in draw else f"{draw['value']:.6f}"
        for draw in draws
    )
    return [f"Draws (seed {seed!r}): {shown}"] if shown else []


def _pairs(given: Sequence[str]) -> dict[str, Json]:
    pairs: dict[str, Json] = {}
    for pair in given:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise click.UsageError(f"a variable is given as NAME=VALUE, not as {pair!r}")
        pairs[name] = value
    return pairs


def _clock(now: str | None, timezone: str | None) -> datetime:
    try:
        zone = None if timezone is None else ZoneInfo(timezone)
        clock = datetime.now().astimezone(zone) if now is None else datetime.fromisoformat(now)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise click.UsageError(f"--now or --timezone can't be used: {error}") from error
    return clock.replace(tzinfo=zone) if clock.tzinfo is None and zone else clock.astimezone(zone)
