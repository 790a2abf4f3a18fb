"""A real disk that fills up, and writes or syncs that fail in a running server as the test says."""

import mmap
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, Literal, Protocol

import attrs
import httpx2
import pytest
import trio

from tapster.api.running_file import find_server

SOURCE: Final = Path(__file__).resolve().parents[1] / "crash" / "disk_faults.c"
KINDS: Final = {"writes": 1, "syncs": 2}
START_S: Final = 30.0


class Disk(Protocol):
    """A disk under a server's data folder, whole or failing."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the server's process needs."""

    def fail(self) -> None:
        """Let it fail from now on."""

    def mend(self) -> None:
        """Let it work again."""


@attrs.define(eq=False)
class PreloadedFaults:
    """Writes or syncs of a folder that fail with an errno, by a library preloaded into the server."""

    library: Path
    control: Path
    folder: Path
    kind: Literal["writes", "syncs"]
    number: int

    @property
    def environment(self) -> Mapping[str, str]:
        """As ``Disk.environment``."""
        return {
            "LD_PRELOAD": str(self.library),
            "DISK_FAULTS_CONTROL": str(self.control),
            "DISK_FAULTS_FOLDER": str(self.folder),
        }

    def fail(self) -> None:
        """As ``Disk.fail``."""
        self._set(KINDS[self.kind], self.number, -1)

    def mend(self) -> None:
        """As ``Disk.mend``; the calls that failed are known to have been some."""
        self._set(0, 0, 0)
        assert self.failed > 0, "no call was made to fail: is the library preloaded?"

    @property
    def failed(self) -> int:
        """How many calls failed."""
        with self.control.open("rb") as file, mmap.mmap(file.fileno(), 16, prot=mmap.PROT_READ) as shared:
            return int(struct.unpack_from("i", shared, 12)[0])

    def _set(self, kinds: int, number: int, count: int) -> None:
        with self.control.open("r+b") as file, mmap.mmap(file.fileno(), 16) as shared:
            struct.pack_into("iii", shared, 0, kinds, number, count)


def build_faults(place: Path, folder: Path, kind: Literal["writes", "syncs"], number: int) -> PreloadedFaults:
    """The library, compiled; skips the test where that can't be."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler to preload failing calls")
    library, control = place / "disk_faults.so", place / "control"
    run = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(run, check=True, capture_output=True)
    control.write_bytes(bytes(16))
    return PreloadedFaults(library, control, folder, kind, number)


@attrs.define(eq=False)
class FullDisk:
    """A small file system in memory that is filled to the last byte, and emptied again."""

    folder: Path

    @property
    def environment(self) -> Mapping[str, str]:
        """As ``Disk.environment``."""
        return {}

    def fail(self) -> None:
        """As ``Disk.fail``: whatever is freed meanwhile is not filled again."""
        ballast = (self.folder / "ballast").open("wb", buffering=0)
        with ballast, pytest.raises(OSError, match="No space"):
            while True:
                ballast.write(bytes(4096))

    def mend(self) -> None:
        """As ``Disk.mend``."""
        (self.folder / "ballast").unlink()

    def seal(self) -> None:
        """Let it be read only; nothing may be open for writing."""
        subprocess.run(["mount", "-o", "remount,ro", str(self.folder)], check=True, capture_output=True)


@contextmanager
def mounted_disk(folder: Path, size: str) -> Iterator[FullDisk]:
    """A tmpfs of that size; skips the test where mounting isn't allowed."""
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=False, capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"a small file system can't be mounted here: {done.stderr.strip()}")
    try:
        yield FullDisk(folder)
    finally:
        for _ in range(50):
            if subprocess.run(["umount", str(folder)], check=False, capture_output=True).returncode == 0:
                break
            time.sleep(0.1)


@attrs.frozen
class LoggedServer:
    """A server process of its own interpreter, its client, and what it has logged."""

    process: subprocess.Popen[bytes]
    client: httpx2.AsyncClient
    log: Path

    def said(self, event: str) -> int:
        """How many log lines name an event."""
        return sum(f'"{event}"' in line for line in self.log.read_text(encoding="utf-8").splitlines())


@asynccontextmanager
async def open_logged_server(
    data_dir: Path, log: Path, store: str, environment: Mapping[str, str], stderr: int | None = None
) -> AsyncIterator[LoggedServer]:
    """``tapster serve`` with an environment of the test's; killed when left.

    Args:
        log: what it prints goes there, and what it logs unless ``stderr`` is another descriptor.
    """
    code = "from tapster.api.cli.main import main; main()"
    run = [sys.executable, "-c", code, "--data-dir", str(data_dir), "serve", "--port", "0", "--store", store]
    with log.open("ab") as lines:
        errors = lines.fileno() if stderr is None else stderr
        process = subprocess.Popen(run, stdout=lines, stderr=errors, env={**os.environ, **environment})
    try:
        with trio.fail_after(START_S):
            while (url := find_server(data_dir)) is None:
                assert process.poll() is None, log.read_text(encoding="utf-8")
                await trio.sleep(0.01)
        async with httpx2.AsyncClient(base_url=url, trust_env=False, timeout=20, headers={"Origin": url}) as client:
            yield LoggedServer(process, client, log)
    finally:
        process.kill()
        process.wait(10)
