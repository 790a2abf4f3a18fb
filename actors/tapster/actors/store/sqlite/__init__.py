"""The default engine: one SQLite file, written by one connection and read by a small pool."""

from .connection import Connect as Connect
from .connection import connect as connect
from .engine import SqliteEngine as SqliteEngine
