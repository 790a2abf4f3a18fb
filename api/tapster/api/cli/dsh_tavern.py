"""Moving everything between the contract's own folders and Tapster's data, from the command line."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import trio

from tapster.actors.store import (
    BackupFailed,
    ContractFolder,
    Engine,
    FolderReport,
    StoreLocked,
    export_folder,
    import_folder,
    open_engine,
    restore_backup,
)
from tapster.actors.store.memory import MemoryEngine
from tapster.api.config import Config
from tapster.api.running_file import find_server
from tapster.api.storing import store_config
from tapster.engine.ecma import Json

from .backup import fetch
from .data import data_engine, has_data


def import_all(config: Config, folder: ContractFolder, *, dry_run: bool) -> FolderReport:
    """Everything of an installation into the configured data.

    Raises:
        StoreLocked: a server has the data open.
        StoreError: the data or the folder can't be used.
    """
    url = find_server(config.data_dir)
    if url is not None and not dry_run:
        raise StoreLocked(f"{url} serves {config.data_dir}: stop it, import, and start it again (--dry-run works now)")
    with reading(config) if dry_run else writing(config) as engine:
        return import_folder(folder, engine, config.data_dir, now_ms(), dry_run=dry_run)


def export_all(config: Config, folder: ContractFolder, *, dry_run: bool, force: bool) -> FolderReport:
    """Everything of the configured data into an installation's folders, while serving or not.

    Raises:
        StoreError: the data or the folder can't be used.
    """
    with reading(config) as engine:
        return export_folder(engine, folder, config.data_dir, now_ms(), dry_run=dry_run, force=force)


@contextmanager
def writing(config: Config) -> Iterator[Engine]:
    """The configured engine, made when there is none."""
    engine = open_engine(store_config(config))
    try:
        yield engine
        engine.tidy(now_ms())
    finally:
        engine.close()


@contextmanager
def reading(config: Config) -> Iterator[Engine]:
    """The data as it is now: a server's by a copy, one that nobody made as empty."""
    if find_server(config.data_dir) is not None:
        with ExitStack() as stack:
            copy = _copied(config, stack)
            yield stack.enter_context(data_engine(copy))
    elif has_data(config):
        with data_engine(config) as engine:
            yield engine
    else:
        yield MemoryEngine()


def _copied(config: Config, stack: ExitStack) -> Config:
    try:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tapster-")))
        copy = attrs.evolve(config, data_dir=place / "data", assembler_dir=None)
        trio.run(fetch, config, place / "copy")
        restore_backup(store_config(copy), place / "copy", "none")
    except OSError as error:
        where = error.filename or "a temporary folder"
        raise BackupFailed(f"no copy of the data can be made in {where}: {error.strerror or error}") from error
    return copy


def now_ms() -> int:
    """The time that writes are stamped with."""
    return time.time_ns() // 1_000_000


def report_json(report: FolderReport, folder: ContractFolder) -> Json:
    """A report for programs."""
    return {
        "folder": str(folder.tavern),
        "assembler": None if folder.assembler is None else str(folder.assembler),
        "copied": dict(report.copied.counts),
        "replaced": dict(report.replaced),
        "olderTraces": list(report.legacy),
        "unknownFiles": list(report.unknown),
        "problems": list(report.copied.problems),
    }


def report_lines(report: FolderReport, folder: ContractFolder, verb: str) -> Iterator[str]:
    """A report for a person."""
    place = folder.tavern if folder.assembler is None else f"{folder.tavern} and {folder.assembler}"
    yield f"{verb} ({place}):"
    for name, count in report.copied.counts.items():
        replaced = report.replaced.get(name)
        yield f"  {count:>6} {name}" + (f", {replaced} in place of other content" if replaced else "")
    if report.legacy:
        yield f"  older traces, as they are: {', '.join(report.legacy)}"
    if report.unknown:
        shown = ", ".join(report.unknown[:10])
        yield f"  {len(report.unknown)} files are of no kind that Tapster knows and were left where they are: {shown}"
    for problem in report.copied.problems:
        yield f"  ✗ {problem}"
