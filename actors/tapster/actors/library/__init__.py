"""The library: resources, relations, durable selections, templates and settings, with published revisions."""

from .characters import Characters as Characters
from .counters import Counters as Counters
from .errors import ResourceExists as ResourceExists
from .errors import ResourceNotFound as ResourceNotFound
from .errors import TooLarge as TooLarge
from .files import ExportedFile as ExportedFile
from .handle import Library as Library
from .handle import LibraryConfig as LibraryConfig
from .handle import open_library as open_library
from .imports import ImportedResource as ImportedResource
from .imports import ImportReport as ImportReport
from .imports import Imports as Imports
from .presets import Presets as Presets
from .relations import Relations as Relations
from .selections import Selections as Selections
from .sessions import SessionSide as SessionSide
from .settings import Settings as Settings
from .templates import Templates as Templates
from .users import Users as Users
from .world_books import WorldBooks as WorldBooks
from .writes import RelationLimits as RelationLimits
