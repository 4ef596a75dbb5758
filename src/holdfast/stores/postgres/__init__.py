"""The store for teams: PostgreSQL with pgvector, shared by several processes."""

from holdfast.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
