"""The sillytavern macro dialect and the regex scripts as a scan's ports."""

import re
from collections.abc import Sequence

import attrs

from tapster.engine.text.macros import MacroContext, expand
from tapster.engine.text.ports import RegexEngine
from tapster.engine.text.regex_scripts import WORLD_INFO, RegexScript, RegexUse, run_regex_scripts

from .ports import MacroOutcome, MacroPort, PromptTextPort, ScanVariables

_PERHAPS = re.compile(r"[{}]|<[A-Za-z]")


def may_hold_macros(text: str) -> bool:
    """Whether expansion could change a text at all."""
    return _PERHAPS.search(text) is not None


def macro_port(context: MacroContext) -> MacroPort:
    """The port that expands in a context; its variables are replaced by those of the scan."""

    def run(text: str, variables: ScanVariables) -> MacroOutcome:
        if not may_hold_macros(text):
            return MacroOutcome(text, variables)
        done = expand(text, attrs.evolve(context, variables=variables.chat, global_variables=variables.shared))
        if done.variables == variables.chat and done.global_variables == variables.shared:
            return MacroOutcome(done.text, variables)
        return MacroOutcome(done.text, ScanVariables(done.variables, done.global_variables))

    return run


def prompt_text_port(scripts: Sequence[RegexScript], context: MacroContext, regex: RegexEngine) -> PromptTextPort:
    """The port that runs the scripts for world-book content on its way into a prompt."""

    def run(text: str, depth: int | None) -> str:
        use = RegexUse(WORLD_INFO, is_prompt=True, depth=depth)
        return run_regex_scripts(text, scripts, use, context, regex).text

    return run
