"""Runs a program: machines that come and go over one disk, clients that ask them, and the model that watches."""

import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
import trio
import trio.testing

from tapster.actors.hosts.embedded import (
    AgentHandle,
    Assembly,
    Next,
    PromptContext,
    Tool,
    ToolExecution,
    ToolRegistry,
)
from tapster.actors.hosts.embedded.actor import Subscribe
from tapster.actors.hosts.port import SessionNotFound
from tapster.actors.introspection import kind_of
from tapster.actors.providers import ScriptedProvider
from tapster.actors.providers.scripted import Item, Pause, calls, fails, says
from tapster.actors.session.embedded import embedded_key
from tapster.actors.store import RESOURCE_KINDS, StoreConfig, WriteUnknown
from tapster.actors.tapster import Tapster, TapsterConfig, open_tapster
from tapster.engine.errors import SourceError, TapsterError
from tapster.runtime import Phase, RestartLimit, RuntimeFault, declared_leaf, simulated_threads
from tests.support.cancel import task_count
from tests.support.owners import owner_of

from .faults import Disk, DrawnIds, Mount, SimulatedClock
from .model import ANYTHING, Model, Register, must, stored_logs
from .program import (
    ApplyTemplate,
    BindBook,
    BreakCommits,
    Close,
    Command,
    CrashAgent,
    CrashOwner,
    CrashSession,
    Create,
    Delegate,
    DropBook,
    DropPreset,
    EditPreset,
    FailCommits,
    FailReads,
    FailSources,
    Flush,
    Fork,
    Jump,
    Kill,
    Listen,
    MakeBook,
    MakePreset,
    Preview,
    Program,
    Relate,
    Restart,
    Rp,
    SaveTemplate,
    Say,
    Script,
    Select,
    SlowDisk,
    Step,
    Stop,
)

IDLE_S: Final = 60.0
MAX_LIVE: Final = 3
ENDED_WITHIN_S: Final = 4 * 3600.0
STORY: Final = says("The storm came over the western reef")
ANSWERS: Final[Sequence[Sequence[Item]]] = (
    calls(("c-1", "read", "{}"), ("c-2", "read", "{}"), text="Let me look."),
    [Pause(0.5), *STORY[:4], Pause(2), *STORY[4:]],
    says("Aye."),
    calls(("c-3", "nobody", "{")),
    fails("SERVER", status=503),
    fails("INVALID_REQUEST", status=400),
    [*STORY[:3], Pause(7200)],
)
DELAYS: Final = (0.0, 0.0, 0.0, 0.0, 0.0001, 0.002)
DECLARED: Final = (TapsterError, RuntimeFault)


def tools() -> ToolRegistry:
    """One tool that takes a second."""

    async def body(execution: ToolExecution) -> str:
        await trio.sleep(1)
        return "page"

    registry = ToolRegistry()
    registry.add(Tool("read", "Reads.", {"type": "object"}, body))
    return registry


@attrs.define(eq=False)
class Client:
    """One command under way: who carries it out, and what its client makes of the answer."""

    world: "World"
    tapster: Tapster
    number: int

    @property
    def model(self) -> Model:
        return self.world.model

    async def obey(self, step: Step) -> None:
        """Carry it out; whatever comes of it, it ends."""
        self.model.open_asks += 1
        try:
            with trio.CancelScope() as scope:
                if step.patience_s is not None:
                    scope.deadline = trio.current_time() + step.patience_s
                await self._tried(step.command)
        finally:
            self.model.open_asks -= 1

    async def _tried(self, command: Command) -> None:
        try:
            await DEEDS[type(command)](self, command)
        except DECLARED as error:
            self.world.note("refused", self.number, error.code)
        else:
            self.world.note("done", self.number, type(command).__name__)

    async def handle(self, session: int) -> AgentHandle:
        """The session, begun if there is none yet."""
        try:
            return await self.tapster.open_session(name(session))
        except SessionNotFound:
            handle = await self.tapster.create_session(name(session))
        self.model.created.add(name(session))
        return handle

    # Sessions ---------------------------------------------------------------------------------------------------

    async def create(self, command: Create) -> None:
        await self.tapster.create_session(name(command.session))
        self.model.created.add(name(command.session))

    async def say(self, command: Say) -> None:
        handle = await self.handle(command.session)
        identity = f"u-{self.number}"
        text = self.world.secret
        await getattr(handle, command.way)({"id": identity, "content": [{"type": "text", "text": text}]})
        self.model.accepted.setdefault(handle.id, set()).add(identity)

    async def stop(self, command: Stop) -> None:
        handle = await self.handle(command.session)
        await handle.cancel(keep_inbox=command.keep_inbox)

    async def preview(self, command: Preview) -> None:
        await self.tapster.preview(name(command.session), "what is there?")

    async def rp(self, command: Rp) -> None:
        await self.tapster.roleplay(name(command.session), command.active)

    async def close(self, command: Close) -> None:
        await self.tapster.host.close(name(command.session))

    async def fork(self, command: Fork) -> None:
        await self.handle(command.parent)
        await self._begun(command.child, self.tapster.host.fork(name(command.parent), name(command.child)))

    async def delegate(self, command: Delegate) -> None:
        await self.handle(command.parent)
        await self._begun(command.child, self.tapster.host.delegate(name(command.parent), name(command.child)))

    async def _begun(self, child: int, beginning: Awaitable[object]) -> None:
        # It has what its parent had at some moment.
        self.model.register(name(child)).possible.add(ANYTHING)
        await beginning
        self.model.created.add(name(child))

    async def listen(self, command: Listen) -> None:
        subscription = await (await self.handle(command.session)).subscribe(-1)
        try:
            expected = 0
            for _ in range(command.items):
                item = await subscription.receive()
                seq = getattr(item, "seq", None)
                if seq is not None:
                    must(seq == expected, f"a listener of {command.session} got {seq} instead of {expected}")
                    expected += 1
        except trio.EndOfChannel:
            return
        finally:
            subscription.close()

    async def flush(self, command: Flush) -> None:
        handle = await self.handle(command.session)
        seq = await handle.flush()
        with self.world.disk.kept.read() as tables:
            head = tables.sessions.head(embedded_key(handle.id))
        must(head is not None and head.next_seq >= seq, f"{handle.id} isn't durable up to {seq}")

    # Library ----------------------------------------------------------------------------------------------------

    async def select(self, command: Select) -> None:
        session = name(command.session)
        value = None if command.preset is None else self.model.presets.get(command.preset)
        if command.preset is not None and value is None:
            return

        async def write() -> str | None:
            return (await self.tapster.select(session, {"presetId": value})).preset_id

        await self._write(self.model.register(session), value, write)

    async def bind_book(self, command: BindBook) -> None:
        book = self.model.books.get(command.book)
        if book is not None:
            await self.tapster.select(name(command.session), {"worldBookIds": [book]})

    async def apply_template(self, command: ApplyTemplate) -> None:
        identity = self.world.templates.get(command.slot)
        if identity is None:
            return

        async def write() -> str | None:
            source = {"mode": "template", "templateId": identity}
            answer = await self.tapster.library.templates.apply(name(command.session), source)
            preset: str | None = answer["selection"]["presetId"]
            return preset

        await self._write(self.model.register(name(command.session)), ANYTHING, write)

    async def _write(self, register: Register, value: str | None, write: Callable[[], Awaitable[str | None]]) -> None:
        """Write a value that no other client is writing; what was lost on the way may or may not be there."""
        if register.is_busy:
            return
        register.is_busy = True
        before = set(register.possible)
        register.possible.add(value)
        try:
            found = await write()
        except WriteUnknown:
            raise
        except TapsterError:
            # A refused write left nothing behind, so only what was possible before is.
            if value not in before:
                register.possible.discard(value)
            raise
        else:
            doomed = found in self.model.doomed
            register.possible = {found, None} if doomed else {found}
        finally:
            register.is_busy = False

    async def make_preset(self, command: MakePreset) -> None:
        document = await self.tapster.library.presets.create(f"first {self.number}")
        self.model.presets[command.slot] = document["id"]
        self.model.names[document["id"]] = Register({f"first {self.number}"})

    async def edit_preset(self, command: EditPreset) -> None:
        identity = self.model.presets.get(command.slot)
        if identity is None:
            return
        wanted = f"edit {self.number}"

        async def write() -> str | None:
            document = await self.tapster.library.presets.get(identity)
            after = await self.tapster.library.presets.update(identity, {**document, "name": wanted})
            named: str = after["name"]
            return named

        await self._write(self.model.names[identity], wanted, write)

    async def drop_preset(self, command: DropPreset) -> None:
        identity = self.model.presets.get(command.slot)
        if identity is not None:
            self.model.doom(identity)
            await self.tapster.library.presets.delete(identity)
            self.model.gone.add(identity)

    async def make_book(self, command: MakeBook) -> None:
        document = await self.tapster.library.world_books.create(f"book {self.number}")
        self.model.books[command.slot] = document["id"]

    async def drop_book(self, command: DropBook) -> None:
        identity = self.model.books.get(command.slot)
        if identity is not None:
            self.model.doomed.add(identity)
            await self.tapster.library.world_books.delete(identity)
            self.model.gone.add(identity)

    async def relate(self, command: Relate) -> None:
        preset, book = self.model.presets.get(command.preset), self.model.books.get(command.book)
        if preset is not None and book is not None:
            await self.tapster.library.relations.set_books("preset", preset, [book])

    async def save_template(self, command: SaveTemplate) -> None:
        template = await self.tapster.library.templates.create(f"t {self.number}", name(command.session))
        self.world.templates[command.slot] = template["id"]

    # Faults -----------------------------------------------------------------------------------------------------

    async def script(self, command: Script) -> None:
        await trio.lowlevel.checkpoint()
        self.world.provider.add(ANSWERS[command.number % len(ANSWERS)])

    async def fail_commits(self, command: FailCommits) -> None:
        await trio.lowlevel.checkpoint()
        self.world.disk.failing_commits = command.count

    async def fail_reads(self, command: FailReads) -> None:
        await trio.lowlevel.checkpoint()
        self.world.disk.failing_reads = command.count

    async def fail_sources(self, command: FailSources) -> None:
        await trio.lowlevel.checkpoint()
        self.world.failing_sources = [command.seconds] * command.count

    async def slow_disk(self, command: SlowDisk) -> None:
        await trio.lowlevel.checkpoint()
        self.world.disk.delay_s = command.seconds

    async def crash_session(self, command: CrashSession) -> None:
        await trio.lowlevel.checkpoint()
        self.tapster.sessions.tell(embedded_key(name(command.session)), "a message that nobody understands")

    async def crash_agent(self, command: CrashAgent) -> None:
        await trio.lowlevel.checkpoint()
        for handle in self.tapster.host.live:
            if handle.id == name(command.session) and handle.child.current is not None:
                handle.child.current.tell(Subscribe("no seq"))  # type: ignore[arg-type]

    async def crash_owner(self, command: CrashOwner) -> None:
        await trio.lowlevel.checkpoint()
        current = owner_of(self.tapster, command.name).child.current
        if current is not None:
            current.tell("a message that nobody understands")

    async def break_commits(self, command: BreakCommits) -> None:
        await trio.lowlevel.checkpoint()
        self.world.disk.breaking_commits = [command.is_durable] * command.count


DEEDS: Final[dict[type, Callable[[Client, Any], Awaitable[None]]]] = {
    Create: Client.create,
    Say: Client.say,
    Stop: Client.stop,
    Preview: Client.preview,
    Rp: Client.rp,
    Close: Client.close,
    Fork: Client.fork,
    Delegate: Client.delegate,
    Listen: Client.listen,
    Flush: Client.flush,
    Select: Client.select,
    BindBook: Client.bind_book,
    ApplyTemplate: Client.apply_template,
    MakePreset: Client.make_preset,
    EditPreset: Client.edit_preset,
    DropPreset: Client.drop_preset,
    MakeBook: Client.make_book,
    DropBook: Client.drop_book,
    Relate: Client.relate,
    SaveTemplate: Client.save_template,
    Script: Client.script,
    FailCommits: Client.fail_commits,
    FailReads: Client.fail_reads,
    FailSources: Client.fail_sources,
    SlowDisk: Client.slow_disk,
    CrashSession: Client.crash_session,
    CrashAgent: Client.crash_agent,
    CrashOwner: Client.crash_owner,
    BreakCommits: Client.break_commits,
}


def name(session: int) -> str:
    """The id of a session."""
    return f"s{session}"


@attrs.define(eq=False)
class World:
    """Everything of one run.

    Attributes:
        story: what happened, in order; two runs of one program tell the same.
        secret: the text that people say, which no log may hold.
    """

    program: Program
    rng: random.Random = attrs.field(init=False)
    disk: Disk = attrs.field(factory=Disk)
    model: Model = attrs.field(factory=Model)
    provider: ScriptedProvider = attrs.field(factory=ScriptedProvider)
    templates: dict[int, str] = attrs.field(factory=dict)
    failing_sources: list[float] = attrs.field(factory=list)
    reached: int = -1
    story: list[tuple[object, ...]] = attrs.field(factory=list)
    secret: str = "the lamp oil is under the third stair"

    def __attrs_post_init__(self) -> None:
        self.rng = random.Random(f"world {self.program.seed}")

    def note(self, *what: object) -> None:
        """Something happened."""
        self.story.append((round(trio.current_time(), 6), *what))

    def log(self, level: str, event: str, **fields: object) -> None:
        """The log sink of every machine."""
        must(self.secret not in repr(fields), f"the log entry {event} holds what somebody said")
        self.note(level, event, *sorted((key, str(value)) for key, value in fields.items()))

    def delays(self, pool: str) -> tuple[float, float]:
        """How long work in a pool takes this time."""
        disk = self.disk.delay_s if pool.startswith("store") else 0.0
        return self.rng.choice(DELAYS) + disk, self.rng.choice(DELAYS)

    async def run(self) -> None:
        """Run the program to its end, then let everything come to rest and look at what is left.

        Raises:
            Violation: something that must hold doesn't.
        """
        tasks = task_count()
        steps = list(enumerate(self.program.steps))
        with simulated_threads(self.delays):
            while steps:
                steps = await self._live(steps)
                must(task_count() == tasks, f"{task_count() - tasks} tasks outlive the machine")
                must(self.model.open_asks == 0, f"{self.model.open_asks} asks have no end")
                must(self.provider.active == 0, "a model stream outlives the machine")
                with self.disk.kept.read() as tables:
                    self.model.check_disk(tables)
            self.disk.heal()
            await self._rest()
        must(task_count() == tasks, f"{task_count() - tasks} tasks outlive the last machine")
        with self.disk.kept.read() as tables:
            self.model.check_disk(tables)
            logs = stored_logs(tables)
        self.model.check_logs(logs)

    async def _live(self, steps: list[tuple[int, Step]]) -> list[tuple[int, Step]]:
        """One life of the machine; the steps that are left."""
        mount = Mount(self.disk)
        left: list[tuple[int, Step]] = []
        with trio.fail_after(ENDED_WITHIN_S):
            async with trio.open_nursery() as clients:
                with trio.CancelScope() as machine:
                    try:
                        async with self._machine(mount) as tapster:
                            tapster.host.hooks.assemble.add(self._source)
                            left = await self._drive(tapster, steps, clients)
                            if steps[len(steps) - len(left) - 1][1].command == Kill():
                                mount.is_dead = True
                                machine.cancel()
                                await trio.lowlevel.checkpoint()
                            tapster.lifecycle.advance(Phase.DRAINING)
                    except BaseExceptionGroup as group:
                        ended_by = declared_leaf(group, DECLARED)
                        self.note("ended", type(ended_by).__name__)
                        self.disk.heal()
                        # It couldn't even start, and is tried again; or it gave up on what crashed too often.
                        has_begun = isinstance(ended_by, RestartLimit)
                        left = [item for item in steps if item[0] > self.reached] if has_begun else steps
        return left

    async def _drive(
        self, tapster: Tapster, steps: list[tuple[int, Step]], clients: trio.Nursery
    ) -> list[tuple[int, Step]]:
        for position, (number, step) in enumerate(steps):
            self.reached = number
            if isinstance(step.command, Restart | Kill):
                return steps[position + 1 :]
            if isinstance(step.command, Jump):
                await trio.sleep(step.command.seconds)
            else:
                clients.start_soon(Client(self, tapster, number).obey, step)
            await trio.sleep(step.pause_s)
        # Sometimes the last commands get through before everything closes, sometimes they don't.
        await trio.sleep(self.rng.choice((0.0, 0.01, 5.0, 200.0)))
        self.check_memory(tapster)
        return []

    def check_memory(self, tapster: Tapster) -> None:
        """What owners have in memory is what is stored, whatever they went through; asked when none is at work.

        Raises:
            Violation: it isn't.
        """
        core, strategies = tapster.library.presets._core, tapster.workshop.strategies
        is_restarting = any(owner is None or owner.child.current is None for owner in (core._owner, strategies._owner))
        if is_restarting or any(actor.open or actor.queued for actor in tapster.roster.readings()):
            return
        with self.disk.kept.read() as tables:
            for kind in RESOURCE_KINDS:
                stored = {head.id: head.revision for head in tables.resources.heads(kind)}
                known = {head.id: head.revision for head in core.heads(kind)}
                must(known == stored, f"the library knows of {kind} {known}, stored is {stored}")
            chosen = {document.key.name for document in tables.documents.items("strategy-selections", None)}
        if strategies.problem is None:
            known_of = set(strategies._state.applied.get("embedded", {}))
            must(known_of <= chosen, f"strategies know of {known_of}, stored is {chosen}")

    async def _source(self, assembly: Assembly, context: PromptContext, proceed: Next[Assembly, Assembly]) -> Assembly:
        """A listener of the host that takes part in every assembly, and sometimes fails it."""
        if self.failing_sources:
            await trio.sleep(self.failing_sources.pop())
            raise SourceError("the source has nothing")
        return await proceed(assembly)

    async def _rest(self) -> None:
        """A last life without faults: everything wakes once, comes to rest, and goes to sleep."""
        async with self._machine(Mount(self.disk)) as tapster:
            for header in await tapster.host.headers():
                handle = await tapster.open_session(header.id)
                await handle.flush()
            await trio.sleep(ENDED_WITHIN_S)
            check_idle(tapster)

    def _machine(self, mount: Mount) -> Any:
        config = TapsterConfig(StoreConfig(Path("nowhere"), "memory"), max_live_sessions=MAX_LIVE, idle_s=IDLE_S)
        return open_tapster(
            config,
            clock=SimulatedClock(),
            ids=DrawnIds(self.rng),
            log=self.log,
            tools=tools(),
            provider=self.provider,
            engine=lambda: mount,
            jitter=self.rng.random,
        )


def check_idle(tapster: Tapster) -> None:
    """Nothing is held by anybody when nobody asks.

    Raises:
        Violation: something is.
    """
    actors = list(tapster.roster.readings())
    must(all(actor.open == actor.queued == 0 for actor in actors), f"asks are open at rest: {actors}")
    awake = [actor.name for actor in actors if kind_of(actor.name) in ("agent", "session")]
    must(not awake, f"sessions are awake at rest: {awake}")
    for pool in tapster.roster.pools:
        reading = pool.statistics()
        must(reading.used == reading.waiting == 0, f"threads are held at rest: {reading}")
    outbox = tapster.outbox.statistics()
    must(outbox.waiting == outbox.writing == 0, f"records wait at rest: {outbox}")
    must(not tapster.library.presets._core._alone, "a resource is locked at rest")
    must(tapster.host.live == (), f"{tapster.host.live} are live at rest")
