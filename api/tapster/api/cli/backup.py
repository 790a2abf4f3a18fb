"""``tapster backup``: a complete copy of the data in one file, from the running server or without one."""

from __future__ import annotations

from pathlib import Path

import click
import trio

from tapster.actors.store import BackupFailed, StoreInUse
from tapster.actors.system import SystemIds
from tapster.api.config import Config
from tapster.api.running_file import find_server

from .client import OWN, open_api
from .data import data_engine
from .main import read_config
from .output import write_text
from .paths import TYPED_PATH


@click.command("backup")
@click.argument("file", type=TYPED_PATH)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
@click.pass_context
def command(context: click.Context, file: Path, force: bool) -> None:
    """Write everything that Tapster keeps to FILE: a database (sqlite) or a tar archive (files).

    A running server goes on meanwhile. FILE appears whole or not at all; ``tapster restore`` puts it back.
    """
    config = read_config(context)
    try:
        if file.exists() and not file.is_file():
            raise BackupFailed(f"{file} isn't a file that a copy could replace: choose another name")
        if file.exists() and not force:
            raise StoreInUse(f"{file} exists: choose another name, or use --force")
        if find_server(config.data_dir) is not None:
            trio.run(fetch, config, file)
        else:
            with data_engine(config) as engine:
                engine.backup(str(file))
    except OSError as error:
        raise BackupFailed(f"{file} can't be written: {error.strerror or error}") from error
    write_text(f"{file} holds a copy of the {config.store} data in {config.data_dir} ({file.stat().st_size:,} bytes)")


async def fetch(config: Config, file: Path) -> None:
    """Ask the server for a copy, and give it its name when it is whole."""
    partial = file.with_name(f"{file.name}.{SystemIds().token(4)}.partial")
    try:
        async with open_api(config) as api:
            await api.save(f"{OWN}/store/backup", partial)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
