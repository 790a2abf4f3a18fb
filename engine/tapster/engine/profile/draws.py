"""Random draws that can be taken again from the start."""

from tapster.engine.text.tavern_macros import Draw


class Tape:
    """A draw source that repeats what it gave since the start each time it's rewound."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._values: list[float] = []
        self._next = 0

    def __call__(self) -> float:
        if self._next == len(self._values):
            self._values.append(self._draw())
        self._next += 1
        return self._values[self._next - 1]

    def rewind(self) -> None:
        """Start again at the first draw."""
        self._next = 0
