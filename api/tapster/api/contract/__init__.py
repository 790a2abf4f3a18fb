"""The contract's HTTP root: v1 and v3 (spec/http)."""

from .dispatch import ROUTES as ROUTES
from .dispatch import ContractRoot as ContractRoot
from .routing import Route as Route
