"""``tapster macro``: try a text with macros."""

from collections.abc import Iterator, Sequence

import attrs
import click

from tapster.engine.ecma import Json, stringify
from tapster.engine.text import tavern_macros
from tapster.engine.text.macros import MacroMessage, expand

from .output import write_lines, write_text
from .trial import Trial, describe_draws, describe_variables, draws_json, read_text, takes_trial


@click.command("macro")
@click.argument("text", required=False)
@takes_trial
@click.option(
    "--dialect",
    type=click.Choice(["sillytavern", "tavern"]),
    default="sillytavern",
    show_default=True,
    help="Whose macros: SillyTavern's, or the contract's smaller set.",
)
@click.option("--input", "input_text", default="", help="What stands in the input field, for {{input}}.")
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of text.")
def command(text: str | None, trial: Trial, dialect: str, input_text: str, as_json: bool) -> None:
    """Expand the macros of TEXT and show the variables afterwards and every random draw.

    Without TEXT, or with -, standard input is read. Nothing is kept: the same text, seed and clock give the same.
    """
    given = read_text(text)
    result = of_tavern(given, trial) if dialect == "tavern" else of_sillytavern(given, trial, input_text)
    if as_json:
        write_text(stringify(result, indent=2))
    else:
        write_lines(describe(result))


def of_sillytavern(text: str, trial: Trial, input_text: str) -> Json:
    """The expansion in SillyTavern's dialect."""
    done = expand(text, attrs.evolve(trial.macros, input_text=input_text))
    return {
        "dialect": "sillytavern",
        "text": done.text,
        "variables": dict(done.variables),
        "globalVariables": dict(done.global_variables),
        "draws": draws_json(done.draws),
        "seed": trial.rolls.seed.session,
    }


def of_tavern(text: str, trial: Trial) -> Json:
    """The expansion in the contract's dialect, whose variables are texts and whose draws have no place.

    Raises:
        MacroOutputTooLarge: the text grows beyond its limit.
    """
    draws: list[Json] = []

    def draw() -> float:
        value = trial.rolls()
        draws.append({"value": value})
        return value

    macros = trial.macros
    names = tavern_macros.MacroContext(
        macros.user, macros.char, _last(macros.chat, is_user=True), _last(macros.chat, is_user=False)
    )
    variables = {name: value for name, value in macros.variables.items() if isinstance(value, str)}
    done = tavern_macros.expand_macros(text, names, draw=draw, variables=variables)
    return {
        "dialect": "tavern",
        "text": done.text,
        "variables": dict(done.variables),
        "globalVariables": {},
        "draws": draws,
        "seed": trial.rolls.seed.session,
    }


def describe(result: Json) -> Iterator[str]:
    """An expansion for a person."""
    yield result["text"]
    facts = [
        *describe_variables("Variables", result["variables"]),
        *describe_variables("Global variables", result["globalVariables"]),
        *describe_draws(result["draws"], result["seed"]),
    ]
    if facts:
        yield ""
        yield from facts


def _last(chat: Sequence[MacroMessage], *, is_user: bool) -> str:
    texts = (message.text for message in reversed(chat) if message.is_user is is_user and not message.is_system)
    return next(texts, "")
