"""``tapster``: the group of commands, errors for people, exit codes.

Exit codes: 0 done; 1 refused or failed (the message says what and what to do); 2 the command was used wrongly.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click

from tapster.api.config import Config, load_config
from tapster.engine.errors import TapsterError
from tapster.runtime import RuntimeFault

from .output import give_up_output
from .paths import TYPED_PATH

COMMANDS: Final = {
    "serve": "Serve the API and the page until a stop signal.",
    "demo": "Play two turns with the sample library and show what was sent and why.",
    "import": "Bring cards, presets, world books and personas into the library.",
    "library": "List, show, edit, export and delete what the library holds.",
    "session": "List and begin sessions, bind resources, see what would be sent.",
    "strategy": "List, show, save, apply, preview and export strategies.",
    "sources": "List what can contribute to requests, and the installed plug-ins.",
    "assemble": "Files in, sections and messages out; no server needed.",
    "explain": "Say for each prompt and world-book entry why it is in or what it would have needed.",
    "macro": "Expand the macros of a text; no server needed.",
    "regex": "Run a pattern or regex scripts over a text; no server needed.",
    "trace": "List, show and verify the records of what was sent.",
    "export": "Write everything as a folder of the contract's own files.",
    "backup": "Write a complete copy of the data to a file, while serving or not.",
    "restore": "Put a backup in the place of the data; what was there is kept aside.",
    "check": "Check the integrity of all data.",
    "ps": "Show what lives in the running server: actors, loop, store, threads.",
    "config": "Show every setting, its value and where it came from.",
    "completion": "Print the shell completion script.",
}
"""Every command and what it says of itself in ``--help``; the module of each is named after it."""
MODULES: Final = {"import": "import_"}
HELP_NAMES: Final = ["-h", "--help"]


class Refusal(click.ClickException):
    """A declared error as a person meets it."""

    exit_code = 1

    def __init__(self, error: TapsterError | RuntimeFault) -> None:
        super().__init__(f"{error} [{error.code}]")


class LazyGroup(click.Group):
    """Loads a command's module only when it is called, so that ``--help`` is quick."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Every command that is built in."""
        return [name for name in COMMANDS if importlib.util.find_spec(module_name(name))]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of that name, None when there is none."""
        if name not in self.list_commands(context):
            return None
        command: click.Command = importlib.import_module(module_name(name)).command
        # Click keeps a command's help option from its first use, which may be outside of this group.
        command.context_settings.setdefault("help_option_names", HELP_NAMES)
        return command

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, without loading a single command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(context)])

    def invoke(self, context: click.Context) -> Any:
        """Run a command; declared errors become one line and exit code 1."""
        try:
            return super().invoke(context)
        except (TapsterError, RuntimeFault) as error:
            raise Refusal(error) from error
        except BaseExceptionGroup as group:
            if group.subgroup(KeyboardInterrupt) is not None:
                raise KeyboardInterrupt from group
            failure = only_failure(group)
            if isinstance(failure, TapsterError | RuntimeFault):
                raise Refusal(failure) from group
            if isinstance(failure, BrokenPipeError):
                # Click ends quietly when the reader of a pipe has gone.
                raise failure from group
            raise


def module_name(name: str) -> str:
    """The module that holds a command."""
    return f"tapster.api.cli.{MODULES.get(name, name)}"


def only_failure(group: BaseExceptionGroup[BaseException]) -> BaseException | None:
    """The first failure of a group that holds nothing but failures a person can act on, or None."""
    matching, rest = group.split((TapsterError, RuntimeFault, BrokenPipeError))
    if matching is None or rest is not None:
        return None
    leaf: BaseException = matching
    while isinstance(leaf, BaseExceptionGroup):
        leaf = leaf.exceptions[0]
    return leaf


@click.command(cls=LazyGroup, context_settings={"help_option_names": HELP_NAMES, "max_content_width": 110})
@click.version_option(version("tapster"), "--version", message="tapster %(version)s")
@click.option("--config", "config_file", type=TYPED_PATH, help="Configuration file (TOML).")
@click.option("--data-dir", type=TYPED_PATH, help="Folder of everything Tapster keeps.")
@click.pass_context
def group(context: click.Context, config_file: Path | None, data_dir: Path | None) -> None:
    """The tavern runtime for agent hosts: your SillyTavern library, exact prompts, and a record of why."""
    context.obj = {"file": config_file, "flags": {"data_dir": data_dir}}


def hold_standard_descriptors() -> None:
    """Let no file of ours take the place of a standard stream that the process was started without.

    What a library or the interpreter writes to standard error would end up in it, and Python has no object for a
    stream that is missing, which libraries expect.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name, descriptor, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", errors="backslashreplace"))


def read_config(context: click.Context, **flags: object) -> Config:
    """The configuration with the flags of the group and of a command.

    Raises:
        ConfigError: a setting doesn't fit.
    """
    given = context.find_root().obj
    return load_config({**given["flags"], **flags}, os.environ, given["file"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit."""
    hold_standard_descriptors()
    try:
        group.main(args=None if arguments is None else list(arguments), prog_name="tapster")
    except OSError as error:
        # What a command reads and writes is named by the command; this is click's own printing.
        give_up_output()
        sys.exit(f"Error: {error}")
