"""The actor of one session: what of the library enters each of its requests, and the record of why."""

from .actor import SessionActor as SessionActor
from .actor import SessionPorts as SessionPorts
from .directory import Sessions as Sessions
from .directory import SessionStatus as SessionStatus
from .embedded import EmbeddedTavern as EmbeddedTavern
from .lease import AssemblyCancelled as AssemblyCancelled
from .lease import LeaseLost as LeaseLost
from .lease import Revisions as Revisions
from .lease import Superseded as Superseded
from .messages import Applied as Applied
from .messages import Assemble as Assemble
from .messages import Assembled as Assembled
from .messages import BeginRequest as BeginRequest
from .messages import CancelAssembly as CancelAssembly
from .messages import CatchUp as CatchUp
from .messages import CommitQueuedRp as CommitQueuedRp
from .messages import EventsLogged as EventsLogged
from .messages import Preview as Preview
from .messages import RequestErrored as RequestErrored
from .messages import RequestLeft as RequestLeft
from .messages import RequestPrepared as RequestPrepared
from .messages import RequestRp as RequestRp
from .ports import Bound as Bound
from .ports import SessionLibrary as SessionLibrary
from .ports import TraceSink as TraceSink
from .roleplay import RpAnswer as RpAnswer
