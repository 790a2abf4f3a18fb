"""What authors test their plug-ins with; the same as ``tapster.actors.testing``."""

from tapster.actors.testing import FakeSource as FakeSource
from tapster.actors.testing import SourceSuite as SourceSuite
