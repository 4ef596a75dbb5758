"""The embedded store: one SQLite file."""

from holdfast.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
