"""``tapster import``: files and folders into the library, each taken whole or refused whole."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

import click

from tapster.actors.store import ContractFolder
from tapster.engine.ecma import Json, stringify
from tapster.engine.errors import TapsterError

from . import dsh_tavern
from .client import OWN, Api, ApiRefused, run, segment
from .main import read_config
from .offline import read_bytes
from .output import write_lines, write_text
from .paths import TYPED_PATH

ENDINGS: Final = frozenset({".png", ".json", ".charx", ".jsonl", ".settings"})
SKIPPED: Final = frozenset({"thumbnails", "backups", "User Avatars", "backgrounds", "assets", "_cache"})
"""Folders of a SillyTavern installation that hold pictures and copies, no resources."""


@click.command("import")
@click.argument("paths", nargs=-1, type=TYPED_PATH)
@click.option("--dsh-tavern", "folder", type=TYPED_PATH, help="Data folder of dsh-tavern, whole.")
@click.option("--assembler", type=TYPED_PATH, help="With it: the folder of assembly-presets.json.")
@click.option("--dry-run", is_flag=True, help="With it: change nothing, only say what would be taken over.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    folder: Path | None,
    assembler: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Import cards, presets, world books and personas from PATHS (files, or folders such as SillyTavern's data).

    A dash is standard input. Every file is reported; a bad one is refused whole and stops nothing. Exit code 1 when
    any was refused.
    With --dsh-tavern, everything of a dsh-tavern installation is taken over instead: the library, selections,
    relations, templates, settings, traces. That folder isn't changed. A server must not run meanwhile.
    """
    if folder is not None and not paths:
        import_installation(context, ContractFolder.found(folder, assembler), dry_run=dry_run, as_json=as_json)
    if folder is not None or assembler is not None or dry_run or not paths:
        raise click.UsageError("give PATHS, or --dsh-tavern DIR (with --assembler, --dry-run)")
    found = list(files_of(paths))
    reports = run(context, lambda api: import_all(api, found, progress=not as_json))
    refused = [report for report in reports if "error" in report]
    if as_json:
        write_text(stringify(reports, indent=2))
    else:
        write_text(f"{len(reports) - len(refused)} imported, {len(refused)} refused")
    context.exit(1 if refused else 0)


def import_installation(context: click.Context, folder: ContractFolder, *, dry_run: bool, as_json: bool) -> NoReturn:
    """Take over an installation, say what became of it, and exit."""
    report = dsh_tavern.import_all(read_config(context), folder, dry_run=dry_run)
    if as_json:
        write_text(stringify(dsh_tavern.report_json(report, folder), indent=2))
    else:
        write_lines(dsh_tavern.report_lines(report, folder, "would be taken over" if dry_run else "taken over"))
    context.exit(1 if report.copied.problems else 0)


async def import_all(api: Api, found: Iterable[Path], *, progress: bool) -> list[Json]:
    """A report for each file, in order."""
    reports: list[Json] = []
    for path in found:
        report = await import_one(api, path)
        reports.append(report)
        if progress:
            for line in describe(report):
                write_text(line)
    return reports


async def import_one(api: Api, path: Path) -> Json:
    """One file's report; a refusal has ``error`` and ``code``."""
    try:
        data = read_bytes(path)
        answer = await api.call(
            "POST", f"{OWN}/import?filename={segment(path.name)}", data=data, media_type="application/octet-stream"
        )
    except ApiRefused as error:
        return {"path": str(path), "error": error.message, "code": error.code}
    except TapsterError as error:
        if error.code != "FILE_UNREADABLE":
            raise
        return {"path": str(path), "error": error.message, "code": error.code}
    return {"path": str(path), **answer}


def describe(report: Json) -> Iterator[str]:
    """A report for a person."""
    if "error" in report:
        yield f"✗ {report['path']}: {report['error']} [{report['code']}]"
        return
    names = ", ".join(f"{item['kind']} {item['name']!r}" for item in report["resources"])
    yield f"✓ {report['path']}: {names}"
    for note in report["notes"][:5]:
        yield f"    note: {note['message']} [{note['code']}]"
    if len(report["notes"]) > 5:
        yield f"    … and {len(report['notes']) - 5} more notes (see --json)"


def files_of(paths: Iterable[Path]) -> Iterator[Path]:
    """The files themselves, and in folders those that can hold a resource."""
    for path in paths:
        if not _is_folder(path):
            yield path
            continue
        yield from _files_in(path)


def _files_in(folder: Path) -> Iterator[Path]:
    """What can hold a resource, and the folders that can't be looked into: reading them says why."""
    shut: list[Path] = []
    for place, folders, names in os.walk(folder, onerror=lambda error: shut.append(Path(error.filename))):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for name in sorted(names):
            path = Path(place, name)
            if path.suffix.lower() in ENDINGS and not _is_special(path):
                yield path
    yield from shut


def _is_special(path: Path) -> bool:
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        # Reading it as a file says what is wrong with it.
        return False
