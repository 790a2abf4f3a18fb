"""``tapster assemble --renderer sillytavern`` on the sample library."""

import json
from importlib import resources

import pytest
from click.testing import CliRunner

from tapster.api.cli.main import group

SAMPLE = resources.files("tapster.api.sample")
FILES = [
    "--preset", str(SAMPLE / "evening.preset.json"),
    "--card", str(SAMPLE / "mira.card.png"),
    "--world", str(SAMPLE / "greywater.world.json"),
    "--persona", str(SAMPLE / "traveller.persona.json"),
]  # fmt: skip


def run(*options: str) -> str:
    done = CliRunner().invoke(
        group, ["assemble", *FILES, "--renderer", "sillytavern", *options], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.output


def test_messages_costs_and_reasons_as_json() -> None:
    given = json.loads(run("--message", "the lamp", "--json"))
    assert {"role": "user", "content": "the lamp"} in given["messages"]
    assert given["tokens"]["counter"] == "estimate"
    assert sum(given["tokens"]["bySource"].values()) == given["tokens"]["total"]
    assert "constant" in [entry["reason"] for entry in given["entries"]]


def test_the_same_seed_gives_the_same_request() -> None:
    assert run("--json", "--seed", "a") == run("--json", "--seed", "a")


@pytest.mark.parametrize("options", [[], ["--exact"]])
def test_for_a_person(options: list[str]) -> None:
    shown = run(*options)
    assert "Tokens by source (estimate)" in shown
    assert "World-book entries:" in shown
