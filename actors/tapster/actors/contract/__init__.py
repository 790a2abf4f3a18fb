"""The contract's side of the actors: what its HTTP routes reach of the library, the sessions and the traces."""

from .ports import SessionHost as SessionHost
from .roleplay import Roleplay as Roleplay
from .roleplay import RpAlert as RpAlert
from .roleplay import RpReading as RpReading
from .selections import AgentRunning as AgentRunning
from .selections import ContractSelections as ContractSelections
from .sessions import ContractSessions as ContractSessions
from .traces import AuditReading as AuditReading
from .traces import ContractTraces as ContractTraces
from .view import ContractView as ContractView
from .view import contract_view as contract_view
