"""``tapster explain``: why each prompt and each world-book entry is in a request or not."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Final

import click

from tapster.api.explained import explain_profile_with, explain_sillytavern
from tapster.engine.activation.explanations import Language
from tapster.engine.ecma import Json, stringify

from . import offline, sillytavern
from .file_options import takes_files
from .output import write_lines, write_text

WORDS: Final[Mapping[Language, Mapping[str, str]]] = {
    "en": {
        "prompts": "Prompts ({sent} of {all} sent):",
        "entries": "World-book entries ({sent} of {all} active):",
        "needed": " It would have needed {needed}.",
        "none": "  none",
    },
    "zh": {
        "prompts": "提示词（共 {all} 条，已发送 {sent} 条）：",
        "entries": "世界书条目（共 {all} 条，生效 {sent} 条）：",
        "needed": "需要：{needed}。",
        "none": "  无",
    },
}
_FLAGS: Final = {"prompts": "sent", "entries": "active"}


@click.command("explain")
@click.argument("session", required=False)
@takes_files
@click.option("--message", "--draft", "message", help="A message that isn't sent yet, searched with the chat.")
@click.option("--user", "user_name", help="Name for {{user}} when no persona is given.")
@click.option("--seed", default="assemble", show_default=True, help="Seed of all draws (files only).")
@click.option(
    "--mode",
    type=click.Choice(["tavern", "sillytavern"]),
    help="Whose rules decide (files only).  [default: tavern]",
)
@click.option("--exact", is_flag=True, help="In mode sillytavern: keep SillyTavern's plain defects.")
@click.option("--lang", type=click.Choice(["en", "zh"]), default="en", show_default=True, help="Language of the words.")
@click.option("--only", type=click.Choice(["in", "out"]), help="Only what is in, or only what is out.")
@click.option("--json", "as_json", is_flag=True, help="As JSON instead of text.")
@click.pass_context
def command(
    context: click.Context,
    session: str | None,
    files: offline.Files,
    message: str | None,
    user_name: str | None,
    seed: str,
    mode: str | None,
    exact: bool,
    lang: Language,
    only: str | None,
    as_json: bool,
) -> None:
    """Say for each prompt and world-book entry why it is in or out, which key matched where, and what was needed.

    Name a SESSION of the library to explain what it would send now, or give files.
    """
    given = files != offline.Files()
    if given == (session is not None):
        raise click.UsageError("name a session, or give files (--preset, --card, --world …), one of the two")
    if session is not None:
        if mode is not None or user_name is not None or exact:
            raise click.UsageError("--mode, --user and --exact are for files; a session has its own")
        result = of_session(context, session, message, lang)
    elif mode == "sillytavern":
        library = sillytavern.read_library(files, message=message, user_name=user_name)
        assembly = sillytavern.assemble_library(
            library, seed=seed, now=datetime.now().astimezone(), quirks="exact" if exact else "repaired"
        )
        result = explain_sillytavern(assembly, lang)
    else:
        material = offline.read(files)
        computed = offline.computed(material, message=message, user_name=user_name, seed=seed)
        result = explain_profile_with(computed.lore, computed.snapshot, lang)
    wanted = (True, False) if only is None else (only == "in",)
    if as_json:
        write_text(stringify(_only(result, wanted), indent=2))
    else:
        write_lines(describe(result, wanted))


def of_session(context: click.Context, session: str, draft: str | None, language: Language) -> Json:
    """The explanation of what a session would send now, from the API."""
    # Loaded here so that files are explained without the server's modules.
    from .client import OWN, run, segment

    body = {"lang": language, **({} if draft is None else {"draft": draft})}
    answer = run(context, lambda api: api.call("POST", f"{OWN}/sessions/{segment(session)}/explain", body))
    return answer["explanation"]


def describe(result: Json, wanted: Collection[bool]) -> Iterator[str]:
    """An explanation for a person; the numbers count everything, also what isn't wanted."""
    words = WORDS[result["language"]]
    for member, flag in _FLAGS.items():
        items = result[member]
        yield words[member].format(sent=sum(item[flag] for item in items), all=len(items))
        lines = [_line(item, words) for item in items if item[flag] in wanted]
        yield from lines or (words["none"],)
    yield from (f"{item['severity']}: {item['message']} [{item['code']}]" for item in result["diagnostics"])


def _line(item: Json, words: Mapping[str, str]) -> str:
    if "prompt" in item:
        needed = words["needed"].format(needed=item["needed"]) if item["needed"] else ""
        return f"  {_mark(item['sent'])} {item['prompt']}: {item['text']}{needed}"
    name = f"{item['name']} [{item['entry']}]" if item["name"] else item["entry"]
    return f"  {_mark(item['active'])} {name}: {item['text']}"


def _mark(is_in: bool) -> str:
    return "+" if is_in else "-"


def _only(result: Json, wanted: Collection[bool]) -> Json:
    kept = {member: [item for item in result[member] if item[flag] in wanted] for member, flag in _FLAGS.items()}
    return {**result, **kept}
