"""The suite for source authors, under the short name they import it by."""

from tapster.actors.testing.sources import SourceSuite as SourceSuite
