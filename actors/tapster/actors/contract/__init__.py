"""What the contract's HTTP routes read of the traces and the sessions."""

from .readings import AuditReading as AuditReading
from .readings import RpReading as RpReading
from .traces import ContractTraces as ContractTraces
