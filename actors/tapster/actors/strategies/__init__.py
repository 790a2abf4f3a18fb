"""Strategies at run time: which preset each session has applied, and the sources that its requests are made from."""

from .library import Strategies as Strategies
from .library import open_strategies as open_strategies
