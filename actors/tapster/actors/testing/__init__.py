"""Suites, doubles and stand-ins for those who build on Tapster, its own tests and the demonstration."""

from tapster.actors.sources import FakeSource as FakeSource

from .model_server import Answer as Answer
from .model_server import ModelServer as ModelServer
from .model_server import Received as Received
from .model_server import error_answer as error_answer
from .model_server import open_model_server as open_model_server
from .model_server import text_deltas as text_deltas
from .sources import SourceSuite as SourceSuite
