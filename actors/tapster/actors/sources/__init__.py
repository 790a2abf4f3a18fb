"""Sources at run time: registration, resolving all of a request's sources at once, plug-ins, remote sources."""

from .entry_points import GROUP as GROUP
from .entry_points import LoadedPlugin as LoadedPlugin
from .entry_points import installed_plugins as installed_plugins
from .entry_points import load_plugins as load_plugins
from .entry_points import read_plugin as read_plugin
from .errors import SourceDeaf as SourceDeaf
from .errors import SourceFailed as SourceFailed
from .errors import SourceGone as SourceGone
from .errors import SourceTimeout as SourceTimeout
from .fake import FakeSource as FakeSource
from .home import GRACE_S as GRACE_S
from .home import Home as Home
from .home import SourceStatistics as SourceStatistics
from .interface import SOURCE_DEADLINE_S as SOURCE_DEADLINE_S
from .interface import Output as Output
from .interface import Source as Source
from .interface import SourcePlugin as SourcePlugin
from .interface import definition_of as definition_of
from .registrations import Sources as Sources
from .registrations import open_sources as open_sources
from .remote import RemoteAnswerInvalid as RemoteAnswerInvalid
from .remote import SourceCaller as SourceCaller
from .remote import context_json as context_json
from .remote import remote_source as remote_source
from .resolve import PLACE_DEADLINE_S as PLACE_DEADLINE_S
from .resolve import assemble as assemble
