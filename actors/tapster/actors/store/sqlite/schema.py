"""The database's tables, one migration for each schema version.

A migration is never changed once released; a new version appends one. ``PRAGMA user_version`` holds the number applied.
"""

from typing import Final

APPLICATION_ID: Final = 0x54415053
"""``TAPS``: tells Tapster's files from other SQLite databases."""

_VERSION_1: Final = """
CREATE TABLE blobs (
    sha256 TEXT PRIMARY KEY,
    data BLOB NOT NULL
);
CREATE TABLE documents (
    place INTEGER PRIMARY KEY,
    collection TEXT NOT NULL,
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    revision TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (collection, scope, name)
);
CREATE TABLE resources (
    place INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    revision TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    original TEXT REFERENCES blobs,
    cover TEXT REFERENCES blobs,
    UNIQUE (kind, id)
);
CREATE INDEX resources_by_revision ON resources (revision);
CREATE INDEX resources_by_original ON resources (original);
CREATE INDEX resources_by_cover ON resources (cover);
CREATE TABLE traces (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    host TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (host, session, id)
);
CREATE TABLE trace_uses (
    trace INTEGER NOT NULL REFERENCES traces ON DELETE CASCADE,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    revision TEXT NOT NULL REFERENCES blobs,
    PRIMARY KEY (trace, kind, id, revision)
) WITHOUT ROWID;
CREATE INDEX trace_uses_by_revision ON trace_uses (revision);
CREATE TABLE trace_totals (records INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO trace_totals VALUES (0, 0);
CREATE TRIGGER trace_added AFTER INSERT ON traces BEGIN
    UPDATE trace_totals SET records = records + 1, bytes = bytes + new.size_bytes;
END;
CREATE TRIGGER trace_removed AFTER DELETE ON traces BEGIN
    UPDATE trace_totals SET records = records - 1, bytes = bytes - old.size_bytes;
END;
CREATE TRIGGER trace_resized AFTER UPDATE OF size_bytes ON traces BEGIN
    UPDATE trace_totals SET bytes = bytes + new.size_bytes - old.size_bytes;
END;
CREATE TABLE sessions (
    place INTEGER PRIMARY KEY,
    host TEXT NOT NULL,
    session TEXT NOT NULL,
    header BLOB NOT NULL,
    next_seq INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (host, session)
);
CREATE TABLE events (
    place INTEGER PRIMARY KEY,
    log INTEGER NOT NULL REFERENCES sessions ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    type TEXT NOT NULL,
    body BLOB NOT NULL,
    UNIQUE (log, seq)
);
CREATE INDEX events_by_type ON events (log, type, seq);
CREATE TABLE applied (
    key TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
"""

_VERSION_2: Final = """
CREATE INDEX traces_by_age ON traces (recorded_at);
"""

_VERSION_3: Final = """
DROP INDEX IF EXISTS events_by_type;
"""

MIGRATIONS: Final[tuple[str, ...]] = (_VERSION_1, _VERSION_2, _VERSION_3)
