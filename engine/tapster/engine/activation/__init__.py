"""Which world-book entries fire, and why each one did or did not; modes ``tavern`` and ``sillytavern``."""

from .explanations import Explanation as Explanation
from .explanations import explain as explain
from .keys import KeyRules as KeyRules
from .keys import match_key as match_key
