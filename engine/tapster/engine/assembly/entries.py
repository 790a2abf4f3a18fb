"""Blocks of a request with what the preset's layout says about each.

Source: spec/assembler §7, §10.3-§10.5.
"""

from collections.abc import Iterator, Sequence

import attrs

from .definition import Position
from .errors import InvalidAssembly
from .layout import PositionSetting
from .outputs import Block, Output
from .plan import Job
from .preset import AssemblyPreset

NATIVE_SOURCES = frozenset({"native-system", "history", "input"})


@attrs.frozen(eq=False)
class Entry:
    """One block of one job."""

    job: Job
    block: Block
    key: str
    position: Position
    setting: PositionSetting | None
    is_on: bool
    is_user_placed: bool
    is_source_preferred: bool

    @property
    def source_id(self) -> str:
        return self.job.source_id

    @property
    def keeps_own_place(self) -> bool:
        """Whether references and macros leave the block where it is."""
        return self.is_user_placed or self.is_source_preferred


def position_of(job: Job, block: Block) -> Position:
    """The declared position a block belongs to."""
    positions = job.registration.positions
    for position in positions:
        if block.position_id == position.id:
            return position
    matched = next((position for position in positions if position.match and _matches(position, block)), None)
    return matched or next((position for position in positions if not position.match), positions[0])


def _matches(position: Position, block: Block) -> bool:
    wanted = position.match or {}
    field_fits = "field" not in wanted or wanted["field"] in (block.field, block.id)
    group_fits = "group" not in wanted or wanted["group"] == block.group
    depth_fits = "depth" not in wanted or wanted["depth"] == (block.depth is not None)
    return field_fits and group_fits and depth_fits


def rank(preset: AssemblyPreset, first: str, second: str) -> bool:
    """Whether a strategy ranks before another in the preset's priority; False without a priority."""
    priority = preset.layout.priority if preset.layout is not None else None
    return priority is not None and priority.index(first) < priority.index(second)


def make_entry(preset: AssemblyPreset, job: Job, block: Block) -> Entry:
    """A block with its position and what the layout says of it."""
    position = position_of(job, block)
    settings = preset.layout.settings if preset.layout is not None else ()
    setting = next((item for item in settings if item.key == (job.source_id, position.id)), None)
    is_reference = block.type == "reference"
    is_locked_on = is_reference or (preset.is_native and job.source_id in ("history", "input"))
    is_on = setting is None or setting.enabled or is_locked_on
    return Entry(
        job=job,
        block=block,
        key=f"{job.rule.id}:{block.id}",
        position=position,
        setting=setting,
        is_on=is_on,
        is_user_placed=(
            setting is not None
            and is_on
            and setting.placement == "list"
            and not is_reference
            and job.source_id not in NATIVE_SOURCES
        ),
        is_source_preferred=_is_source_preferred(preset, job, block, position),
    )


def _is_source_preferred(preset: AssemblyPreset, job: Job, block: Block, position: Position) -> bool:
    if block.type == "native" or not job.is_listed:
        return False
    has_place = block.depth is not None or position.anchor is not None
    return rank(preset, "default", "preset") or (has_place and rank(preset, "resource", "preset"))


@attrs.frozen(eq=False)
class Entries:
    """All blocks of a request, by job and by key, with the macros they offer."""

    preset: AssemblyPreset
    by_job: tuple[tuple[Entry, ...], ...]
    jobs: tuple[Job, ...]
    by_key: dict[str, Entry]
    macros: dict[str, Entry]

    def __iter__(self) -> Iterator[Entry]:
        for entries in self.by_job:
            yield from entries

    def job_of(self, source_id: str, asking: Job) -> Job | None:
        """The job a reference to a source means: its module, else the asking job's own, else its first."""
        jobs = [job for job in self.jobs if job.source_id == source_id]
        module = next((job for job in jobs if job.mode == "module"), None)
        own = asking if asking.source_id == source_id else None
        return module or own or next(iter(jobs), None)

    def of(self, job: Job) -> tuple[Entry, ...]:
        return self.by_job[job.index]


def collect_entries(preset: AssemblyPreset, jobs: Sequence[Job], outputs: Sequence[Output]) -> Entries:
    """Index the outputs of a request's jobs.

    Raises:
        InvalidAssembly: ``SOURCE_MACRO_INVALID``: a macro names no text block of its source, or a taken name.
    """
    by_job = tuple(
        tuple(make_entry(preset, job, block) for block in output.blocks)
        for job, output in zip(jobs, outputs, strict=True)
    )
    macros: dict[str, Entry] = {}
    for job, output in zip(jobs, outputs, strict=True):
        texts = {entry.block.id: entry for entry in by_job[job.index] if entry.block.type == "text"}
        for name, target in output.macros:
            if name in macros or not isinstance(target, str) or target not in texts:
                raise InvalidAssembly(
                    f"the macro {name} of {job.source_id} is taken or names no text block", code="SOURCE_MACRO_INVALID"
                )
            macros[name] = texts[target]
    by_key = {entry.key: entry for entries in by_job for entry in entries}
    return Entries(preset, by_job, tuple(jobs), by_key, macros)
