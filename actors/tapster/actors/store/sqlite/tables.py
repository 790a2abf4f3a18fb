"""All state of one connection."""

import sqlite3
from typing import final

from tapster.actors.store.retention import Retention

from .documents import SqliteDocuments
from .resources import SqliteResources
from .sessions import SqliteSessionLogs
from .traces import SqliteTraces


@final
class SqliteTables:
    """The ``Tables`` of a connection."""

    def __init__(self, connection: sqlite3.Connection, retention: Retention) -> None:
        self.documents = SqliteDocuments(connection)
        self.resources = SqliteResources(connection)
        self.sessions = SqliteSessionLogs(connection)
        self.traces = SqliteTraces(connection, self.resources, retention)
