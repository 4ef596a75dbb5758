"""A store that tests damage by direct access to its tables."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from holdfast.domain.derived_refs import TranscriptCheck
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.manifest import ROWS
from holdfast.domain.results import Finding
from holdfast.ports import Store
from holdfast.stores.postgres import PostgresStore
from holdfast.stores.sql.checksums import VECTORS
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing.store_suite.scribe import ANA, EMBEDDER, EVERYTHING, read_grant
from postgres import AnyServer, schema_of


@dataclass(frozen=True)
class Place:
    """A store with a transcript of three turns, and direct access to its tables."""

    location: str
    server: AnyServer | None
    message: MessageId
    memory: MemoryId

    def opened(self) -> Store:
        return SqliteStore(self.location) if self.server is None else PostgresStore(self.location)

    def damage(self, *statements: str) -> None:
        if self.server is None:
            with closing(sqlite3.connect(self.location, isolation_level=None)) as database:
                for statement in statements:
                    database.execute(statement)
            return
        script = "; ".join(statements)
        # Bypass triggers and foreign keys, as a partial restore does.
        self.server.execute(
            f"SET search_path = {schema_of(self.location)}, public; SET session_replication_role = replica; {script};"
            " SET session_replication_role = DEFAULT; SET search_path = public"
        )

    def checked(self, limit: int = 20) -> TranscriptCheck:
        async def look(store: Store) -> TranscriptCheck:
            try:
                return await store.read(read_grant(ANA), lambda r: r.transcripts.check(ANA, limit))
            finally:
                await store.close()

        return asyncio.run(look(self.opened()))

    def findings(self) -> Sequence[Finding]:
        """Return what breaks a rule between rows. That a row itself was changed is left out."""
        return [finding for finding in self.all_findings() if finding.check not in (ROWS, VECTORS)]

    def all_findings(self) -> Sequence[Finding]:
        async def look(store: Store) -> Sequence[Finding]:
            try:
                return (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1]
            finally:
                await store.close()

        return asyncio.run(look(self.opened()))
