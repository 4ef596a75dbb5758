"""An agent's sessions in one SQLite file, with a full-text index over the messages."""

from holdfast.stores.sessions.store import SqliteSessions

__all__ = ["SqliteSessions"]
