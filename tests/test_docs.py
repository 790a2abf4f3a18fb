"""The documentation says what the program says, and its links lead somewhere."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import cast

import pytest

from tapster import actors
from tapster.actors import tapster as root
from tapster.api.answers import Responder
from tapster.api.config import load_config
from tapster.api.own import OWN_ROOT, OwnOptions, OwnRoot
from tapster.api.ports import Tapster
from tests.support import cli_docs, config_docs
from tests.support.cli import CARD

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(r"^```(?:sh|python)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_the_page_of_commands() -> None:
    text = cli_docs.PAGE.read_text(encoding="utf-8")
    assert text == cli_docs.page(), "run: python -m tests.support.cli_docs --write"


def test_the_page_of_settings(tmp_path: Path) -> None:
    text = config_docs.PAGE.read_text(encoding="utf-8")
    assert text == config_docs.page(), "run: python -m tests.support.config_docs --write"
    file = tmp_path / "tapster.toml"
    file.write_text(config_docs.example(), encoding="utf-8")
    assert tomllib.loads(config_docs.example())
    assert load_config(file=file).provider_url == config_docs.EXAMPLE["provider.url"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [target for target in LINK.findall(page.read_text(encoding="utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    names = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"README.md"}
    assert sorted(name for name in names if f"({name})" not in index) == []


def test_every_own_route_is_on_the_page() -> None:
    text = (ROOT / "docs" / "http.md").read_text(encoding="utf-8")
    paths = OwnRoot(cast(Tapster, None), OwnOptions(), "0", Responder()).document()["paths"]
    own = {re.sub(r"\{(\w+)\}", r":\1", path.removeprefix(OWN_ROOT)) for path in paths if path.startswith(OWN_ROOT)}
    assert sorted(path for path in own if f"`{path}`" not in text) == []
    rows = [row.split(" | ")[0] for row in text.splitlines() if row.startswith("| `/")]
    assert sorted(row for row in set(rows) if rows.count(row) > 1) == []


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_readmes_begin_with_the_two_commands(name: str) -> None:
    first = (ROOT / name).read_text(encoding="utf-8").split("```")[1]
    assert re.findall(r"^make \w+", first, re.MULTILINE) == ["make demo", "make test"]


def test_both_readmes_have_the_same_parts() -> None:
    english, chinese = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md"))
    assert len(re.findall(r"^## ", english, re.MULTILINE)) == len(re.findall(r"^## ", chinese, re.MULTILINE))
    assert LINK.findall(english)[1:] == LINK.findall(chinese)[1:]
    assert CODE.findall(english) == CODE.findall(chinese)


def test_the_python_of_the_readme_runs(tmp_path: Path) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    shutil.copy(CARD, tmp_path / "mira.card.png")
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Mira keeps the lighthouse" in done.stdout


def test_the_root_is_where_the_docs_say() -> None:
    assert actors.open_tapster is root.open_tapster
    assert {"open_tapster", "Tapster", "TapsterConfig"} <= set(dir(actors))
    with pytest.raises(AttributeError, match="no attribute 'brew'"):
        _ = actors.brew
