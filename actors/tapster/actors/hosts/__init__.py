"""Hosts of conversations: the port that Tapster asks, and the hosts behind it."""

from .port import HostError as HostError
from .port import HostSession as HostSession
from .port import Inspection as Inspection
from .port import MemorySessionLog as MemorySessionLog
from .port import Page as Page
from .port import SessionExists as SessionExists
from .port import SessionLog as SessionLog
from .port import SessionNotFound as SessionNotFound
