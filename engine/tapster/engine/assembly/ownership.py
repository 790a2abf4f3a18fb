"""Who emits which block: roots, claims and references, decided before anything is emitted.

Texts claim first, then references, so the order in which a preset lists its rules doesn't decide between them.
Source: spec/assembler §7.
"""

import re
from collections.abc import Iterator, Sequence

import attrs

from tapster.engine import limits
from tapster.engine.ecma import trim

from .entries import Entries, Entry
from .errors import InvalidAssembly
from .preset import AssemblyPreset, Rule

MACRO = re.compile(r"\{\{([^{}]*)\}\}")


@attrs.frozen(eq=False)
class Root:
    """A block emitted under a rule of the preset, unless another block took it over."""

    entry: Entry
    rule: Rule


@attrs.define(eq=False)
class Ownership:
    """The owners of a request's blocks.

    Attributes:
        roots: in the order of emission.
        owners: taken block -> (taking block, root that began the chain).
        unavailable: referenced sources that gave nothing, in order of discovery.
    """

    entries: Entries
    roots: list[Root] = attrs.field(factory=list)
    owners: dict[str, tuple[str, Entry]] = attrs.field(factory=dict)
    unavailable: list[str] = attrs.field(factory=list)
    _targets: dict[str, list[Entry]] = attrs.field(factory=dict)
    _visiting: list[str] = attrs.field(factory=list)

    @property
    def preset(self) -> AssemblyPreset:
        return self.entries.preset

    def owner_of(self, entry: Entry) -> str | None:
        """The key of the block that took an entry over."""
        owner = self.owners.get(entry.key)
        return None if owner is None else owner[0]

    def is_macro_allowed(self, target: Entry) -> bool:
        """Whether a macro may show a block: only one that doesn't keep a place of its own."""
        keeps_list_place = self.preset.is_list and target.job.is_listed and not target.block.reference_only
        return target.is_on and not target.keeps_own_place and not keeps_list_place

    def macro_target(self, asking: Entry, name: str) -> Entry | None:
        """The block a macro names, or None for a name nobody offers.

        Raises:
            InvalidAssembly: ``SOURCE_MACRO_UNDECLARED``: another source's macro without a declared dependency.
        """
        target = self.entries.macros.get(name)
        if target is None:
            return None
        if target.source_id not in (asking.source_id, *asking.job.registration.dependencies):
            raise InvalidAssembly(
                f"{asking.source_id} uses the macro {name} of {target.source_id} without declaring it as a dependency",
                code="SOURCE_MACRO_UNDECLARED",
            )
        return target

    def targets(self, reference: Entry) -> list[Entry]:
        """The blocks a reference means, in their source's order."""
        if reference.key not in self._targets:
            self._targets[reference.key] = self._find_targets(reference)
        return self._targets[reference.key]

    def _find_targets(self, reference: Entry) -> list[Entry]:
        block, preset = reference.block, self.preset
        job = self.entries.job_of(block.source_id, reference.job)
        if job is None:
            if block.source_id not in self.unavailable:
                self.unavailable.append(block.source_id)
            return []
        listed = [rule for rule in preset.rules if rule.kind == block.source_id and rule.is_module]
        is_manual = preset.layout is not None and preset.layout.source == "manual"
        only_reserved = preset.is_list and bool(listed) and (is_manual or not block.use_owner_rule)
        if not only_reserved and block.honor_enabled and listed and not any(rule.enabled for rule in listed):
            return []
        return [entry for entry in self.entries.of(job) if self._is_target(entry, reference, only_reserved)]

    def _is_target(self, entry: Entry, reference: Entry, only_reserved: bool) -> bool:
        wanted = reference.block
        is_named = wanted.block_ids is not None and entry.block.id in wanted.block_ids
        if not entry.is_on or entry.keeps_own_place:
            return False
        if wanted.group is not None and entry.block.group != wanted.group:
            return False
        if only_reserved or entry.block.reference_only:
            return is_named and (entry.block.reference_only or not only_reserved)
        return wanted.block_ids is None or is_named

    def claim_all(self) -> None:
        """Let all reachable texts, then references, take over the blocks they stand for; the first claim wins."""
        roots = [root.entry for root in self.roots]
        if self.preset.is_adaptive:
            roots.sort(key=lambda entry: not entry.job.registration.owns_slots)
        reached: set[str] = set()
        for root in roots:
            for entry in self._reach(root, reached):
                self._claim_texts(entry, root)
        for root in roots:
            if root.block.type == "reference" and root.key not in self.owners:
                self._claim_references(root, root)

    def _reach(self, entry: Entry, reached: set[str]) -> Iterator[Entry]:
        """The entry and everything its references lead to, each once in the whole request."""
        waiting = [entry]
        while waiting:
            found = waiting.pop()
            if found.key in reached:
                continue
            reached.add(found.key)
            yield found
            if found.block.type == "reference":
                waiting += reversed(self.targets(found))

    def _take(self, target: Entry, owner: Entry, root: Entry) -> None:
        if target.key != owner.key:
            self.owners.setdefault(target.key, (owner.key, root))

    def _claim_texts(self, entry: Entry, root: Entry) -> None:
        if entry.block.type != "text":
            return
        for claim in entry.block.claims:
            job = self.entries.job_of(claim.source_id, entry.job)
            for target in self.entries.of(job) if job is not None else ():
                if target.block.id == claim.block_id and target.is_on:
                    self._take(target, entry, root)
        for match in MACRO.finditer(entry.block.text):
            target_block = self.macro_target(entry, trim(match.group(1)))
            if target_block is not None and self.is_macro_allowed(target_block):
                self._take(target_block, entry, root)

    def _claim_references(self, reference: Entry, root: Entry) -> None:
        if reference.key in self._visiting:
            raise InvalidAssembly(
                f"the references of {reference.source_id} lead back to {reference.key}", code="BLOCK_REFERENCE_CYCLE"
            )
        if len(self._visiting) == limits.REFERENCE_CHAIN:
            raise InvalidAssembly(
                f"the references of {reference.source_id} are nested over {limits.REFERENCE_CHAIN} deep",
                code="BLOCK_REFERENCE_DEPTH",
            )
        self._visiting.append(reference.key)
        for target in self.targets(reference):
            if target.key in self._visiting:
                self._claim_references(target, root)
            if target.key in self.owners:
                continue
            self._take(target, reference, root)
            if target.block.type == "reference":
                self._claim_references(target, root)
        self._visiting.pop()


def decide_ownership(entries: Entries) -> Ownership:
    """The roots of a request in emission order, with all claims decided."""
    preset = entries.preset
    indexes = {rule.id: index for index, rule in enumerate(preset.rules)}
    ownership = Ownership(entries)
    jobs = {job.rule.id: job for job in entries.jobs}
    for rule in preset.rules:
        job = jobs.get(rule.id)
        if rule.enabled and job is not None:
            ownership.roots += [
                Root(entry, effective_rule(preset.rules, entry)) for entry in entries.of(job) if _is_root(entry)
            ]
    ownership.roots.sort(key=lambda root: indexes[root.rule.id])
    ownership.claim_all()
    return ownership


def _is_root(entry: Entry) -> bool:
    return entry.is_on and (not entry.block.reference_only or entry.keeps_own_place)


def effective_rule(rules: Sequence[Rule], entry: Entry) -> Rule:
    """The rule that places a block: its own, or that of the enabled source it is meant for."""
    target = entry.block.target_source_id
    if target is None:
        return entry.job.rule
    return next((rule for rule in rules if rule.enabled and rule.kind == target), entry.job.rule)
