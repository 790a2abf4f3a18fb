"""Tapster's own HTTP root, ``/tapster/api/v1`` (design §7)."""

from .admission import OWN_ROOT as OWN_ROOT
from .admission import OwnOptions as OwnOptions
from .root import OwnRoot as OwnRoot
from .routing import OwnCall as OwnCall
from .routing import OwnRoute as OwnRoute
from .routing import own_route as own_route
