"""Which world-book entries fire, and why each one did or did not; modes ``tavern`` and ``sillytavern``."""

from .explanations import Explanation as Explanation
from .explanations import explain as explain
from .keys import KeyRules as KeyRules
from .keys import match_key as match_key
from .session_settings import ACTIVATION_MODES as ACTIVATION_MODES
from .session_settings import ActivationMode as ActivationMode
from .session_settings import ActivationSettings as ActivationSettings
from .session_state import SessionState as SessionState
