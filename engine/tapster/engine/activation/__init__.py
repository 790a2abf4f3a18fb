"""Which world-book entries fire, and why each one did or did not; modes ``tavern`` and ``sillytavern``."""
