"""The house: which root may import which, and what the pure parts must not touch (design §2)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ALLOWED = {
    "engine": {"engine"},
    "runtime": {"runtime"},
    "actors": {"actors", "runtime", "engine"},
    "api": {"api", "actors", "runtime", "engine"},
}
PURE_FORBIDDEN = {
    "trio", "anyio", "asyncio", "threading", "sqlite3", "http", "httpx2", "quart", "quart_trio", "hypercorn",
    "time", "random", "secrets", "socket", "subprocess", "os", "pathlib", "shutil", "tempfile", "io", "logging",
    "structlog", "uuid",
}  # fmt: skip
STATE_FORBIDDEN = PURE_FORBIDDEN
PURE_FILE_NAMES = {"state.py", "lease.py", "frames.py"}


def imported_modules(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = path.relative_to(ROOT).parts[1:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            yield ".".join(part for part in (base, node.module) if part)


def sources(root: str) -> list[Path]:
    return sorted((ROOT / root / "tapster").rglob("*.py"))


@pytest.mark.parametrize("root", sorted(ALLOWED))
def test_imports_point_down(root: str) -> None:
    breaches = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources(root)
        for module in imported_modules(path)
        if module.startswith("tapster.") and module.split(".")[1] not in ALLOWED[root]
    ]
    assert breaches == []


def test_engine_is_pure() -> None:
    breaches = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in sources("engine")
        for module in imported_modules(path)
        if module.split(".")[0] in PURE_FORBIDDEN
    ]
    assert breaches == []


def test_state_modules_are_pure() -> None:
    breaches = [
        f"{path.relative_to(ROOT)} imports {module}"
        for root in ("runtime", "actors", "api")
        for path in sources(root)
        if path.name in PURE_FILE_NAMES
        for module in imported_modules(path)
        if module.split(".")[0] in STATE_FORBIDDEN
    ]
    assert breaches == []


@pytest.mark.parametrize("root", sorted(ALLOWED))
def test_the_namespace_has_no_init(root: str) -> None:
    assert (ROOT / root / "tapster" / root / "py.typed").exists()
    assert not (ROOT / root / "tapster" / "__init__.py").exists()
