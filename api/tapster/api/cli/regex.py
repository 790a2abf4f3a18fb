"""``tapster regex``: try a pattern or regex scripts on a text."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs
import click

from tapster.actors.scripts import open_regex_engine
from tapster.engine.ecma import Json, is_record, parse_json, stringify
from tapster.engine.errors import FormatError
from tapster.engine.formats.regex_scripts import read_regex_scripts
from tapster.engine.limits import REGEX_BUDGET_MS
from tapster.engine.text.macros import Draw
from tapster.engine.text.ports import RegexEngine
from tapster.engine.text.regex_scripts import (
    AI,
    REASONING,
    SLASH,
    USER,
    WORLD_INFO,
    RegexScript,
    RegexUse,
    ScriptReport,
    applies,
    parse_regex_script,
    run_regex_scripts,
    scripts_in_force,
)

from . import offline
from .output import write_lines, write_text
from .paths import TYPED_PATH
from .trial import Trial, describe_draws, describe_variables, draws_json, read_text, takes_trial

PLACEMENTS: Final = {"user": USER, "ai": AI, "slash": SLASH, "world-info": WORLD_INFO, "reasoning": REASONING}
USES: Final = {
    "stored": RegexUse(None),
    "prompt": RegexUse(None, is_prompt=True),
    "display": RegexUse(None, is_markdown=True),
    "edited": RegexUse(None, is_edit=True),
}
BROKEN: Final = frozenset({"invalid_pattern", "over_budget", "replacement_failed"})
_WORDS: Final = {
    "regex_changed": "{count} replaced",
    "no_match": "it found nothing",
    "depth_window": "the message lies outside its depths",
}


@click.command("regex")
@click.argument("text", required=False)
@click.option("--find", help="A pattern to try: /pattern/flags, or plain.")
@click.option("--replace", default="$0", show_default=True, help="What takes the place of --find.")
@click.option("--trim", multiple=True, help="With --find: a text cut out of what is captured; may be repeated.")
@click.option("--script", "files", multiple=True, type=TYPED_PATH, help="A script, or a list of them (JSON).")
@click.option("--preset", type=TYPED_PATH, help="A preset whose own scripts run.")
@click.option(
    "--placement", type=click.Choice(list(PLACEMENTS)), default="ai", show_default=True, help="What the text is."
)
@click.option(
    "--for",
    "purpose",
    type=click.Choice(list(USES)),
    default="stored",
    show_default=True,
    help="What it is prepared for: the chat file, the prompt, the screen, or the chat file after an edit.",
)
@click.option("--depth", type=click.IntRange(min=0), help="How many messages are newer; 0 is the newest.")
@click.option("--budget-ms", type=float, default=REGEX_BUDGET_MS, show_default=True, help="CPU time of one pattern.")
@takes_trial
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of text.")
@click.pass_context
def command(
    context: click.Context,
    text: str | None,
    find: str | None,
    replace: str,
    trim: tuple[str, ...],
    files: tuple[Path, ...],
    preset: Path | None,
    placement: str,
    purpose: str,
    depth: int | None,
    budget_ms: float,
    trial: Trial,
    as_json: bool,
) -> None:
    """Run regex scripts over TEXT: --find and --script first, then the card's, then the preset's.

    Each script is reported with what it did, or why it didn't run. Without TEXT, or with -, standard input is read.
    Exit code 1 when a script can't run at all: its pattern is invalid or too slow, or its replacement fails.
    """
    scripts = _all_scripts(
        RegexScript("--find", find or "", replace, (PLACEMENTS[placement],), trim), files, preset, trial
    )
    if not scripts:
        raise click.UsageError("there is no script: use --find, --script, or a --card or --preset that has some")
    use = attrs.evolve(USES[purpose], placement=PLACEMENTS[placement], depth=depth)
    result = run_scripts(read_text(text), scripts, use, trial, open_regex_engine(budget_ms=budget_ms))
    if as_json:
        write_text(stringify(result, indent=2))
    else:
        write_lines(describe(result))
    context.exit(1 if any(report["reason"] in BROKEN for report in result["scripts"]) else 0)


def run_scripts(text: str, scripts: Sequence[RegexScript], use: RegexUse, trial: Trial, regex: RegexEngine) -> Json:
    """The text after all scripts, and a report for each of them."""
    macros = trial.macros
    reports: list[Json] = []
    draws: list[Draw] = []
    for script in scripts:
        # One at a time, so that each has a report of its own: a script sees only what the one before it left.
        done = run_regex_scripts(text, [script], use, macros, regex)
        text, draws = done.text, [*draws, *done.draws]
        macros = attrs.evolve(macros, variables=done.variables, global_variables=done.global_variables)
        reports.append(_report(script, use, next(iter((*done.applied, *done.skipped)), None)))
    return {
        "text": text,
        "scripts": reports,
        "variables": dict(macros.variables),
        "globalVariables": dict(macros.global_variables),
        "draws": draws_json(draws),
        "seed": trial.rolls.seed.session,
    }


def describe(result: Json) -> Iterator[str]:
    """The same for a person."""
    yield result["text"]
    yield ""
    for report in result["scripts"]:
        mark = "✗" if report["reason"] in BROKEN else "+" if report["count"] else "-"
        yield f"{mark} {report['script'] or '(unnamed)'}: {report['message']}"
    yield from describe_variables("Variables", result["variables"])
    yield from describe_variables("Global variables", result["globalVariables"])
    yield from describe_draws(result["draws"], result["seed"])


def _all_scripts(
    tried: RegexScript, files: Sequence[Path], preset: Path | None, trial: Trial
) -> tuple[RegexScript, ...]:
    given = [tried] if tried.find else []
    given += [script for path in files for script in offline.parsed(path, _scripts)]
    of_card = _owned(trial.library.card.source.raw if trial.library.card else {})
    of_preset = offline.parsed(preset, _preset_scripts) if preset else ()
    # Naming a card here is the consent that its scripts need.
    return scripts_in_force(given, of_card, of_preset, character_allowed=True)


def _report(script: RegexScript, use: RegexUse, given: ScriptReport | None) -> Json:
    if given is not None:
        reason, count = given.reason, given.count
        message = given.message or _WORDS[reason].format(count=count)
    else:
        reason, count = "not_for_this_use" if applies(script, use) == "" else "no_match", 0
        message = _WORDS.get(reason) or _why_not(script, use)
    return {"script": script.name, "reason": reason, "count": count, "message": message}


def _why_not(script: RegexScript, use: RegexUse) -> str:
    if script.disabled:
        return "it is switched off"
    if not script.find:
        return "it has no pattern"
    if use.placement not in script.placements:
        names = [name for name, number in PLACEMENTS.items() if number in script.placements]
        return f"it is for other texts (--placement {' or '.join(names) or 'none'})"
    wanted = [name for name, flag in (("prompt", script.prompt_only), ("display", script.markdown_only)) if flag]
    if use.is_edit and not wanted:
        return "it doesn't run on edits"
    return f"it is for another purpose (--for {' or '.join(wanted) or 'stored'})"


def _scripts(path: Path, data: bytes) -> tuple[RegexScript, ...]:
    raw = parse_json(offline.decoded(data))
    items = raw if isinstance(raw, list) else [raw]
    if not all(is_record(item) and isinstance(item.get("findRegex"), str) for item in items):
        raise FormatError("regex-item-not-object", "a script is an object with findRegex; the file has one, or a list")
    return tuple(parse_regex_script(item) for item in items)


def _preset_scripts(path: Path, data: bytes) -> tuple[RegexScript, ...]:
    raw = parse_json(offline.decoded(data))
    return _owned(raw if is_record(raw) else {})


def _owned(raw: Mapping[str, Json]) -> tuple[RegexScript, ...]:
    return tuple(parse_regex_script(script) for script in read_regex_scripts(raw) if is_record(script))
