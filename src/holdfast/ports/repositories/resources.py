"""Port of resources: files whose text was split into memories, their chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.domain.resources import Resource
from holdfast.domain.scope import Scope
from holdfast.ports.records import NewRevision


class ResourceReader(Protocol):
    def find(self, resource_id: str) -> Resource | None: ...

    def find_file(self, scope: Scope, sha256: str, external_uri: str | None) -> Resource | None:
        """Return the resource of this file and address in exactly this scope."""

    def chunks(self, resource: Resource) -> Sequence[str]: ...  # ids, without forgotten ones

    def page(self, before: str | None, limit: int) -> Sequence[Resource]:
        """Return resources with ids below `before`, newest first."""


class ResourceWriter(ResourceReader, Protocol):
    def add(self, resource: Resource, chunks: Sequence[NewRevision], embedder: str, analyzer: int) -> None:
        """Add it with its chunks: new memories of the same scope and time, whose source is the resource's URI."""
