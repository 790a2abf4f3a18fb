"""The command line as a person uses it, over a data folder of the test's own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import IO, Any

import attrs
import pytest
from click.testing import CliRunner, Result

from tapster.api.cli.main import group

SAMPLE = Path(str(resources.files("tapster.api.sample")))
PRESET = str(SAMPLE / "evening.preset.json")
CARD = str(SAMPLE / "mira.card.png")
WORLD = str(SAMPLE / "greywater.world.json")
PROGRAM = (sys.executable, "-c", "from tapster.api.cli import main; main()")
PERSONA = str(SAMPLE / "traveller.persona.json")


@attrs.frozen
class Cli:
    """Runs commands; what isn't a declared refusal fails the test."""

    home: Path

    def run(self, *arguments: str, code: int = 0, typed: str | None = None) -> str:
        """What a command prints (standard error too), after its exit code was checked."""
        result = self.invoke(arguments, typed)
        assert result.exit_code == code, result.output
        assert "Traceback" not in result.output
        return result.output

    def json(self, *arguments: str, code: int = 0, typed: str | None = None) -> Any:
        """What a command prints as JSON."""
        result = self.invoke((*arguments, "--json"), typed)
        assert result.exit_code == code, result.output
        return json.loads(result.stdout)

    def process_of_nobody(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """A command in a process with the rights that a file's mode gives; skips where root can't give up more."""
        if os.geteuid() != 0:
            return self.process(*arguments)
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("needs setpriv to give up root's right to every file")
        rights = "-dac_override,-dac_read_search"
        return self.process(*arguments, wrapper=(setpriv, f"--bounding-set={rights}", f"--inh-caps={rights}"))

    def process(
        self,
        *arguments: str,
        encoding: str = "utf-8",
        wrapper: Sequence[str] = (),
        stdin: int | IO[str] | None = None,
        stdout: int | IO[bytes] | None = subprocess.PIPE,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """A command in a process of its own, on a terminal of an encoding."""
        return subprocess.run(
            [*wrapper, *PROGRAM, *arguments],
            env={**self._process_environment(), "PYTHONIOENCODING": encoding, **environment},
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    def started(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """A command that runs beside the test; leaving it waits for its end."""
        return subprocess.Popen(
            [*PROGRAM, *arguments],
            env={**self._process_environment(), **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )

    def invoke(self, arguments: Sequence[str], typed: str | None = None, **environment: str | None) -> Result:
        """The whole result; an error that isn't declared is raised here."""
        others = {name: None for name in os.environ if name.startswith("TAPSTER_")}
        runner = CliRunner(env={**others, **self._own(), **environment})
        return runner.invoke(group, list(arguments), input=typed, prog_name="tapster", catch_exceptions=False)

    def _process_environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TAPSTER_")}
        return {**kept, **self._own()}

    def _own(self) -> dict[str, str]:
        home = str(self.home)
        return {"HOME": home, "XDG_CONFIG_HOME": home, "TAPSTER_DATA_DIR": str(self.home / "data")}
