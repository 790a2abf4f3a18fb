"""Pending input from inbox splices, and the bounded context that a request's books are matched against."""

from .context import ActivationContext as ActivationContext
from .context import ContextMessage as ContextMessage
from .context import ContextMetadata as ContextMetadata
from .context import activate as activate
from .limits import ProjectionLimits as ProjectionLimits
from .limits import bounded_option as bounded_option
from .messages import HistoryMessage as HistoryMessage
from .messages import InputMessage as InputMessage
from .messages import greeting_applies as greeting_applies
from .messages import text_blocks as text_blocks
from .pending import InboxQueue as InboxQueue
from .pending import PendingInput as PendingInput
from .pending import end_turn as end_turn
from .pending import observe as observe
from .pending import replay as replay
