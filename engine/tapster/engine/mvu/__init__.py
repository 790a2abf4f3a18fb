"""MVU: variables that a model's replies update, kept per message."""

from .apply import apply_update as apply_update
from .commands import Command as Command
from .commands import contains_update as contains_update
from .commands import history_text as history_text
from .commands import parse_update as parse_update
from .errors import MvuError as MvuError
from .initial import InitialState as InitialState
from .initial import initial_from_card as initial_from_card
from .initial import initial_variables as initial_variables
from .initial import initialize_running as initialize_running
from .initial import merge_initial as merge_initial
from .paths import parse_path as parse_path
from .paths import parse_pointer as parse_pointer
from .paths import read_path as read_path
from .shelf import Decision as Decision
from .shelf import MvuEditRefused as MvuEditRefused
from .shelf import VariableResource as VariableResource
from .state import Reply as Reply
from .state import VariableHistory as VariableHistory
from .state import Version as Version
from .state import counted_reply as counted_reply
from .state import open_history as open_history
from .state import replay as replay
from .variables import BOOKKEEPING as BOOKKEEPING
from .variables import normalize_variables as normalize_variables
