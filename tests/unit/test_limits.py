"""The limits module names each limit once: a second one would silently replace the first."""

import ast
from collections import Counter
from pathlib import Path

from tapster.engine import limits


def test_every_limit_has_one_name() -> None:
    tree = ast.parse(Path(limits.__file__).read_text(encoding="utf-8"))
    names = [target.id for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
             if isinstance(target, ast.Name)]  # fmt: skip
    assert [name for name, count in Counter(names).items() if count > 1] == []
