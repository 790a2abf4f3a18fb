"""Paths as they are typed on the command line."""

import os
from pathlib import Path
from typing import Final

import click


class TypedPath(click.Path):
    """Looks only whether there is a path: a command says itself what is wrong with one, and goes on with the others."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, readable=False)

    def convert(
        self, value: str | os.PathLike[str], parameter: click.Parameter | None, context: click.Context | None
    ) -> str | bytes | os.PathLike[str]:
        """The path; an empty one is a variable that isn't set, and never the current folder."""
        if not os.fspath(value):
            self.fail("the path is empty", parameter, context)
        if value != "-" and str(Path(value)) == "-":
            # A file of that name, as ``./-`` says, and not a standard stream.
            value = Path(value).absolute()
        return super().convert(value, parameter, context)


TYPED_PATH: Final = TypedPath()
