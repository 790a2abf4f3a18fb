"""The examples, run as their readers would run them."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from tapster.actors.hosts.embedded import Assembly, Next, PromptContext
from tapster.actors.sources import SourcePlugin, assemble, open_sources, read_plugin
from tapster.engine.assembly import freeze_context, normalise_preset, register_host_sources
from tapster.testing import SourceSuite
from tests.support.assembly import message
from tests.support.hosts import open_rig

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def example(folder: str, module: str) -> Any:
    path = str(EXAMPLES / folder)
    if path not in sys.path:
        sys.path.insert(0, path)
    return importlib.import_module(module)


class TestMemory(SourceSuite):
    """The memory keeps the contract of sources."""

    @pytest.fixture(autouse=True)
    def facts(self, tmp_path: Path) -> None:
        memory = example("memory", "tapster_memory")
        self.file = memory.FactFile(tmp_path / "facts.jsonl")
        self.file.remember(memory.Fact("The lanterns are out.", ("hello",)))

    def make_source(self) -> object:
        return example("memory", "tapster_memory").MemoryFacts(self.file)

    def state(self) -> object:
        return self.file.read()

    def change(self) -> None:
        self.file.remember(example("memory", "tapster_memory").Fact("Something new."))


class TestNotesModule(SourceSuite):
    """The notes of the assets."""

    may_be_empty = True

    def make_source(self) -> object:
        return example("notes", "tapster_notes").Notes()


class TestNotesParser(TestNotesModule):
    """The notes of hand-written text."""

    text = "One.\n\nTwo."
    bad_texts = ("x\n" * 101,)

    def make_rule(self) -> dict[str, Any]:
        return {"id": "suite", "kind": "example.notes", "inputMode": "text", "text": self.text}


def test_facts_come_back_by_key_newest_first(tmp_path: Path) -> None:
    memory = example("memory", "tapster_memory")
    file = memory.FactFile(tmp_path / "facts.jsonl")
    for number, key in ((1, "inn"), (2, "dock"), (3, "inn")):
        file.remember(memory.Fact(f"Fact {number}", (key,)))
    found = [fact.text for fact in reversed(file.read()) if fact.matches("s", "at the Inn")]
    assert found == ["Fact 3", "Fact 1"]
    (tmp_path / "facts.jsonl").write_text("not a fact\n")
    with pytest.raises(memory.facts.FactsUnreadable):
        file.read()


async def test_notes_last_puts_notes_behind_everything() -> None:
    plugin = read_plugin(example("notes", "tapster_notes").PLUGIN)
    async with open_sources() as sources:
        register_host_sources(sources.registry)
        sources.add(plugin.sources[0])
        sources.strategies.register(plugin.strategies[0])
        preset = normalise_preset(dict(plugin.presets[0]))
        native = [message("u1", "user", "hi")]
        result = await assemble(sources, freeze_context(preset, native, assets={"notes": ["N"]}, input_ids=["u1"]))
    assert [each["content"][0]["text"] for each in result.messages] == ["hi", "N"]
    assert result.nodes[-1].position_decision == "example.notes-last"


async def test_the_observer_reports_missing_and_repeated_sections() -> None:
    observer = example("prompt_observer", "prompt_observer")
    reports: list[Any] = []

    async def drop(value: Assembly, context: PromptContext, rest: Next[Assembly, Assembly]) -> Assembly:
        made = await rest(value)
        return attrs.evolve(made, sections=tuple(each for each in made.sections if each.name != "dropped"))

    async with open_rig() as rig:
        prompt = rig.host.prompt
        prompt.variable("who", "Ann")
        prompt.section("greeting", "Hello {{who}}.")
        prompt.section("echo", "Hello")
        prompt.section("dropped", "Never mind me.")
        stop = observer.watch(rig.host, reports.append)
        rig.host.hooks.assemble.add(drop, prepend=True)
        agent = await rig.host.create("s")
        await agent.followup("hi")
        await agent.when_idle()
        stop()
    [report] = reports
    assert [(section.name, section.matches) for section in report.sections] == [
        ("greeting", 1),
        ("echo", 2),
        ("dropped", 0),
    ]
    assert [section.name for section in report.odd] == ["echo", "dropped"]


SCRIPT = """
import trio
from tapster.actors.sources import assemble, load_plugins, open_sources
from tapster.engine.assembly import freeze_context, normalise_preset

async def main():
    async with open_sources() as sources:
        for plugin in load_plugins(sources):
            print(plugin.name, plugin.package, plugin.source_ids, plugin.error)
        rules = [{"id": "m", "kind": "example.memory"}]
        preset = {"format": "dsh-tavern-request-assembly", "version": 1, "name": "T", "rules": rules}
        content = [{"type": "text", "text": "a lantern"}]
        native = [{"id": "u", "role": "user", "content": content, "source": {"kind": "user"}}]
        result = await assemble(sources, freeze_context(normalise_preset(preset), native))
        for node in result.nodes:
            print(node.source["plugin"], node.source["resourceId"] is not None, node.text)

trio.run(main)
"""


@pytest.mark.slow
def test_the_memory_is_installed_by_pip_and_found(tmp_path: Path) -> None:
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, "--target", str(target), str(EXAMPLES / "memory")], check=True, capture_output=True)
    environment = {**os.environ, "PYTHONPATH": str(target), "TAPSTER_MEMORY_FILE": str(tmp_path / "facts.jsonl")}
    remember = "from tapster_memory.cli import main; main(['remember', '--key', 'lantern', 'The lanterns are out.'])"
    subprocess.run([sys.executable, "-c", remember], check=True, env=environment)
    ran = subprocess.run([sys.executable, "-c", SCRIPT], check=True, env=environment, capture_output=True, text=True)
    assert "memory tapster-memory-example ('example.memory',) None" in ran.stdout
    assert "tapster-memory-example True The lanterns are out." in ran.stdout

    def tapster(*arguments: str) -> str:
        program = [
            sys.executable,
            "-c",
            "from tapster.api.cli import main; main()",
            "--data-dir",
            str(tmp_path / "data"),
        ]
        done = subprocess.run([*program, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "example.memory  tapster-memory-example  version 1  module" in tapster("sources")
    rules = [{"id": kind, "kind": kind} for kind in ("example.memory", "history", "input")]
    rules[0] |= {"id": "memory", "role": "system"}
    strategy = tmp_path / "strategy.json"
    head = {"format": "dsh-tavern-request-assembly", "version": 1, "name": "With memory", "backend": "native"}
    strategy.write_text(json.dumps({**head, "rules": rules}), encoding="utf-8")
    strategy_id = tapster("strategy", "save", str(strategy)).strip()
    tapster("session", "new", "s")
    tapster("strategy", "apply", "s", strategy_id)
    shown = tapster("strategy", "preview", "s", "--draft", "Where is the lantern?")
    assert "The lanterns are out." in shown
    assert "from tapster-memory-example" in shown


def test_a_plugin_is_what_an_entry_point_names() -> None:
    assert isinstance(read_plugin(example("memory", "tapster_memory").plugin), SourcePlugin)
