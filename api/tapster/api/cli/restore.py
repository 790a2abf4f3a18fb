"""``tapster restore``: a backup in the place of the data, after it was checked."""

from __future__ import annotations

import time
from pathlib import Path

import click

from tapster.actors.store import StoreLocked, restore_backup
from tapster.api.running_file import find_server
from tapster.api.storing import store_config

from .main import read_config
from .output import write_text
from .paths import TYPED_PATH


@click.command("restore")
@click.argument("file", type=TYPED_PATH)
@click.option("--force", is_flag=True, help="Also when there is data; it is kept aside.")
@click.pass_context
def command(context: click.Context, file: Path, force: bool) -> None:
    """Put the copy FILE in the place of the data. Refused while a server runs; nothing is ever overwritten."""
    config = read_config(context)
    url = find_server(config.data_dir)
    if url is not None:
        raise StoreLocked(f"{url} serves {config.data_dir}: stop it, then restore")
    done = restore_backup(store_config(config), file, time.strftime("%Y%m%d-%H%M%S"), force=force)
    write_text(f"{done.location} is restored from {file}")
    if done.aside is not None:
        write_text(f"what was there before is kept as {done.aside}")
