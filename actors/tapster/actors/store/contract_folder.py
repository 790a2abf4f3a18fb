"""The contract's own data folders: taken over into any engine without touching them, and written from any engine.

There are two: Tavern's data, and the assembler's with ``assembly-presets.json`` (an older copy may stand in Tavern's).

Source: design §5, spec/resources §1, spec/assembler §15.
"""

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, final

import attrs

from .errors import CommitFailed, ReadFailed, StoreInUse
from .files import FilesEngine
from .files.layout import FOLDERS, STRATEGIES_FILE
from .files.traces import AUDITS_FILE, SNAPSHOTS_FILE
from .folders import usable_folder
from .interface import Engine, Tables
from .memory import MemoryEngine
from .retention import Retention
from .transfer import Transfer, copy_state
from .values import RESOURCE_KINDS, ResourceKind

LEGACY: Final = (SNAPSHOTS_FILE, AUDITS_FILE)
"""Trace files of earlier versions: only read, so they are taken along as they are."""
ASSEMBLER_NAME: Final = "dsh-prompt-assembler"
_KNOWN_FOLDERS: Final = (*FOLDERS.values(), "character-artifacts", "chats", "hosts", "tapster")


@final
@attrs.frozen
class ContractFolder:
    """Where the contract's files are; ``assembler`` None = its file is in Tavern's folder."""

    tavern: Path
    assembler: Path | None = None

    @classmethod
    def found(cls, tavern: Path, assembler: Path | None = None) -> "ContractFolder":
        """The folders of an installation: the assembler's is looked for beside Tavern's when it isn't named.

        Raises:
            ReadFailed: there is no such folder, or it can't be looked into.
        """
        beside = assembler or tavern.absolute().parent / ASSEMBLER_NAME
        with _readable(tavern):
            for folder in (tavern, *([assembler] if assembler is not None else [])):
                if not folder.is_dir():
                    raise ReadFailed(f"there is no folder {folder}")
            return cls(tavern, beside if (beside / STRATEGIES_FILE).is_file() else None)


@final
@attrs.frozen
class FolderReport:
    """What an import or export did, or would do.

    Attributes:
        replaced: how many of each kind took the place of other content.
        unknown: files that belong to nothing Tapster knows; they stay where they are.
        legacy: older trace files taken along.
    """

    copied: Transfer
    replaced: Mapping[str, int]
    unknown: Sequence[str] = ()
    legacy: Sequence[str] = ()


def import_folder(
    folder: ContractFolder, target: Engine, home: Path, now: int, *, dry_run: bool = False
) -> FolderReport:
    """Copy everything of an installation into an engine; blocking. The folder isn't changed in any way.

    Args:
        home: the target's data folder, for the older trace files.
        dry_run: change nothing, only say what would happen.

    Raises:
        ReadFailed: the folder can't be read.
        CommitFailed: the target's disk failed; run it again.
    """
    with _readable(folder.tavern):
        source = FilesEngine(folder.tavern, assembler=folder.assembler, read_only=True)
    try:
        replaced = _replaced(source, target)
        copied = copy_state(source, MemoryEngine(Retention()) if dry_run else target, now)
        problems = (*source.check(), *copied.problems)
    finally:
        source.close()
    copied = attrs.evolve(copied, problems=tuple(dict.fromkeys(problems)))
    legacy = tuple(_take_along(folder.tavern, home, dry_run=dry_run))
    return FolderReport(copied, replaced, tuple(_unknown(folder.tavern)), legacy)


def export_folder(
    source: Engine, folder: ContractFolder, home: Path, now: int, *, dry_run: bool = False, force: bool = False
) -> FolderReport:
    """Write everything of an engine as the contract's files; blocking.

    Args:
        home: the source's data folder.
        dry_run: write nothing, only say what would happen.
        force: also into a folder that holds files; those of the same names are replaced.

    Raises:
        StoreInUse: the folder holds files, and ``force`` wasn't given.
        StoreLocked: a Tapster has the folder open.
        StoreUnusable: there is no way to write a folder at that path.
        CommitFailed: the disk failed; run it again.
    """
    with usable_folder(folder.tavern):
        if folder.tavern.is_dir() and any(folder.tavern.iterdir()) and not force:
            raise StoreInUse(f"{folder.tavern} holds files: choose an empty folder, or use --force to write over them")
        if dry_run:
            return FolderReport(copy_state(source, MemoryEngine(Retention()), now), {})
        target = FilesEngine(folder.tavern, assembler=folder.assembler)
    try:
        replaced = _replaced(source, target)
        copied = copy_state(source, target, now)
    finally:
        target.close()
    return FolderReport(copied, replaced, (), tuple(_take_along(home, folder.tavern, dry_run=False)))


def _replaced(source: Engine, target: Engine) -> dict[str, int]:
    """How much of the target has another content in the source."""
    counts: Counter[str] = Counter()
    with source.read() as theirs, target.read() as ours:
        for kind in RESOURCE_KINDS:
            present = {head.id for head in ours.resources.heads(kind)}
            both = [head.id for head in theirs.resources.heads(kind) if head.id in present]
            counts[kind] += sum(1 for each in both if _differs(theirs, ours, kind, each))
        for collection in set(theirs.documents.collections()) & set(ours.documents.collections()):
            values = {item.key: item.value for item in ours.documents.items(collection, None)}
            items = theirs.documents.items(collection, None)
            counts[collection] += sum(1 for item in items if values.get(item.key, item.value) != item.value)
    return {name: count for name, count in counts.items() if count}


def _differs(theirs: Tables, ours: Tables, kind: ResourceKind, resource_id: str) -> bool:
    pair = [tables.resources.get(kind, resource_id) for tables in (theirs, ours)]
    return pair[0] is not None and pair[1] is not None and pair[0].document != pair[1].document


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReadFailed(f"{error.filename or folder} can't be read: {error.strerror or error}") from error


def _take_along(origin: Path, home: Path, *, dry_run: bool) -> Iterator[str]:
    """Copy the older trace files that the other side lacks."""
    for name in LEGACY:
        source, target = origin / name, home / name
        if source.is_file() and not target.exists():
            if not dry_run:
                try:
                    shutil.copyfile(source, target)
                    target.chmod(0o600)
                except OSError as error:
                    raise CommitFailed(f"copying {source} to {target} failed: {error.strerror or error}") from error
            yield name


def _unknown(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder)
        is_document = len(inner.parts) == 1 and path.suffix == ".json"
        if path.is_file() and not is_document and inner.parts[0] not in _KNOWN_FOLDERS and path.name[0] != ".":
            yield str(inner)
