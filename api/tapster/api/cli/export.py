"""``tapster export``: everything as a folder of the contract's own files."""

from __future__ import annotations

from pathlib import Path

import click

from tapster.actors.store import ContractFolder
from tapster.engine.ecma import stringify

from .dsh_tavern import export_all, report_json, report_lines
from .main import read_config
from .output import write_lines, write_text
from .paths import TYPED_PATH


@click.command("export")
@click.option("--dsh-tavern", "folder", required=True, type=TYPED_PATH, help="Folder for the files.")
@click.option("--assembler", type=TYPED_PATH, help="Folder for assembly-presets.json, if another.")
@click.option("--dry-run", is_flag=True, help="Write nothing, only say what would be.")
@click.option("--force", is_flag=True, help="Also into a folder that holds files; the same names are replaced.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
@click.pass_context
def command(
    context: click.Context, folder: Path, assembler: Path | None, dry_run: bool, force: bool, as_json: bool
) -> None:
    """Write everything that Tapster keeps as the files of dsh-tavern; a running server goes on meanwhile.

    Exit code 1 when something couldn't be written or read; the report names it.
    """
    place = ContractFolder(folder, assembler)
    report = export_all(read_config(context), place, dry_run=dry_run, force=force)
    if as_json:
        write_text(stringify(report_json(report, place), indent=2))
    else:
        write_lines(report_lines(report, place, "would be written" if dry_run else "written"))
    context.exit(1 if report.copied.problems else 0)
