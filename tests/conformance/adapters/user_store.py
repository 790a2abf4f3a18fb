"""The op ``store`` of ``user_reports``: documents on every durable engine, with read faults and kills."""

import errno
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import trio

from tapster.actors.store import ReadFailed, Store, StoreConfig, open_store
from tapster.actors.store.files.layout import Layout
from tapster.actors.store.values import HOME_HOST
from tapster.actors.system import SystemClock
from tapster.engine.errors import TapsterError
from tests.conformance.registry import adapter
from tests.conformance.user_reports_compare import compare_report, expand, report_error
from tests.support.store_documents import key_of
from tests.support.store_lab import Faults, open_lab_engine, write_in_doomed_child

Json = Any
ENGINES = ("sqlite", "files")
WORDS = {
    "STORE_READ_FAILED": "read_failed",
    "DOCUMENT_CONFLICT": "conflict",
    "DOCUMENT_SET_ASIDE": "unreadable_moved_aside",
}


class Line:
    """One run of a line on one engine."""

    def __init__(self, engine: str, folder: Path, point: str | None) -> None:
        self.engine = engine
        self.folder = folder
        self.point = point
        self.faults = Faults()
        self.stack = AsyncExitStack()
        self.store: Store | None = None
        self.values: dict[tuple[str, str], Json] = {}
        self.revisions: dict[tuple[str, str | None], str | None] = {}
        self.put: dict[str, bytes] = {}
        self.crash_point: str | None = None

    async def run(self, steps: list[Json]) -> Json:
        await self.start()
        results = [await self.step(step) for step in steps]
        if self.store is None:
            await self.start()
        documents = {step["doc"] for step in steps if "doc" in step}
        final = {document: await self.open(document) for document in documents}
        await self.stop()
        return {"results": results, "final": final, "kept_aside": {doc: self.aside(doc) for doc in self.put}}

    async def step(self, step: Json) -> Json:
        try:
            return await getattr(self, f"do_{step['op']}")(step)
        except TapsterError as error:
            return report_error(error, WORDS)

    async def do_write(self, step: Json) -> Json:
        document, label = step["doc"], step.get("label", "")
        value = step.get("value", {"messages": [f"m{index}" for index in range(step.get("messages", 0))]})
        self.values[document, label] = value
        base = await self.base(document, step)
        if self.crash_point is not None:
            await self.stop()
            point, self.crash_point = self.crash_point, None
            arguments = (self.engine, self.folder, document, value, base, point)
            crashed = await trio.to_thread.run_sync(write_in_doomed_child, *arguments)  # type: ignore[arg-type]
            self.revisions.pop((document, None), None)
            return {"crashed": crashed}
        written = await self.opened.put_document(key_of(document), value, base=base)
        self.revisions[document, label] = self.revisions[document, None] = written.revision
        return {"ok": True}

    async def base(self, document: str, step: Json) -> str | None:
        if "base" in step:
            return None if step["base"] is None else self.revisions[document, step["base"]]
        if (document, None) not in self.revisions:
            found = await self.opened.document(key_of(document))
            self.revisions[document, None] = None if found is None else found.revision
        return self.revisions[document, None]

    async def do_open(self, step: Json) -> Json:
        return await self.open(step["doc"])

    async def open(self, document: str) -> Json:
        try:
            found = await self.opened.document(key_of(document))
        except ReadFailed as error:
            return report_error(error, WORDS)
        if found is None:
            return {"state": None, "messages": 0}
        labels = [label for (name, label), value in self.values.items() if name == document and value == found.value]
        return {"state": labels[-1] if labels else None, "messages": len(found.value.get("messages", []))}

    async def do_fault(self, step: Json) -> Json:
        self.faults.reads[step["doc"]] = getattr(errno, step["errno"])
        return {"ok": True}

    async def do_clear_faults(self, step: Json) -> Json:
        self.faults.reads.clear()
        return {"ok": True}

    async def do_crash_at(self, step: Json) -> Json:
        self.crash_point = self.point if step["point"] == "each" else step["point"]
        return {"ok": True}

    async def do_stop(self, step: Json) -> Json:
        await self.stop()
        return {"ok": True, "warnings": []}

    async def do_start(self, step: Json) -> Json:
        await self.start()
        found = [{"code": WORDS.get(item.code, item.code), "message": item.message} for item in self.opened.warnings]
        return {"ok": True, "warnings": found}

    async def do_put_bytes(self, step: Json) -> Json:
        path = Layout(self.folder, HOME_HOST).document(key_of(step["doc"]))
        assert isinstance(path, Path), "a document with a file of its own"
        self.put[step["doc"]] = step["text"].encode()
        path.write_bytes(self.put[step["doc"]])
        self.revisions.pop((step["doc"], None), None)
        return {"ok": True}

    @property
    def opened(self) -> Store:
        assert self.store is not None, "the store is started"
        return self.store

    async def start(self) -> None:
        config = StoreConfig(self.folder, self.engine)  # type: ignore[arg-type]
        engine = lambda: open_lab_engine(self.engine, self.folder, self.faults)  # noqa: E731
        self.store = await self.stack.enter_async_context(open_store(config, clock=SystemClock(), engine=engine))

    async def stop(self) -> None:
        await self.stack.aclose()
        self.stack, self.store = AsyncExitStack(), None

    def aside(self, document: str) -> str:
        """The bytes put for a document, if exactly one other file holds them."""
        own = Layout(self.folder, HOME_HOST).document(key_of(document))
        others = [path for path in self.folder.rglob("*") if path.is_file() and path != own]
        holders = [path for path in others if path.read_bytes() == self.put[document]]
        return self.put[document].decode() if len(holders) == 1 else f"{len(holders)} files hold its bytes"


def compare_runs(expected: Json, actual: Json) -> list[str]:
    """Every run must give what the line expects."""
    return [f"{name}: {line}" for name, answer in actual.items() for line in compare_report(expected, answer)]


@adapter("user_reports", "user.store", compare=compare_runs)
def user_store(given: Json) -> Json:
    """The line on every engine it's for, once for each point."""
    steps = expand(given["steps"])
    runs = {}
    for engine in [given["engine"]] if "engine" in given else ENGINES:
        for point in given.get("points", [None]):
            with tempfile.TemporaryDirectory() as place:
                line = Line(engine, Path(place) / "data", point)
                runs[f"{engine} {point or ''}".strip()] = trio.run(line.run, steps)
    return runs
