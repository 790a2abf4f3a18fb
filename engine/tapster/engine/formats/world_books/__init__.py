"""World books."""

from .model import BookFile as BookFile
from .model import BookFormat as BookFormat
from .model import BookSettings as BookSettings
from .model import BookSource as BookSource
from .model import CharacterFilter as CharacterFilter
from .model import Diagnostic as Diagnostic
from .model import EntryContainer as EntryContainer
from .model import EntrySource as EntrySource
from .model import Group as Group
from .model import MatchSources as MatchSources
from .model import Position as Position
from .model import Recursion as Recursion
from .model import Role as Role
from .model import SelectiveLogic as SelectiveLogic
from .model import TimedEffects as TimedEffects
from .model import WorldBook as WorldBook
from .model import WorldBookDocument as WorldBookDocument
from .model import WorldBookEntry as WorldBookEntry
