"""Stored documents: read once and kept as chunks, each a memory on the `resource` plane."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.domain.ids import ResourceId
from holdfast.domain.presentable import Presentable, PresentableList
from holdfast.domain.scope import Scope

SHARED_OWNER = "shared"
URI_SCHEME = "resource:"
UNNAMED = "untitled"
# No document reader accepts more.
MAX_CONTENT_BYTES = 25 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """The content of a file: its type, its title if any, and its text in chunks for search."""

    media_type: str
    title: str | None
    chunks: tuple[str, ...]
    characters: int


@dataclass(frozen=True, slots=True)
class Resource(Presentable):
    """A stored document. `sha256` and `bytes` describe the original file, which is not stored."""

    id: ResourceId
    uri: str
    name: str
    media_type: str
    sha256: str
    bytes: int
    chunks: int
    external_uri: str | None
    scope: Scope
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class ResourceAdded(Presentable):
    """The result of adding a document. `reused` if the same file was already in the scope; then nothing was written."""

    resource: Resource
    reused: bool = False


@dataclass(frozen=True, slots=True)
class ResourcePage(PresentableList[Resource]):
    """A page of resources, newest first. `next_cursor` is None on the last."""

    items: tuple[Resource, ...]
    next_cursor: str | None


def resource_uri(scope: Scope, resource_id: str) -> str:
    """Return the URI that names a resource as a source: its owner and its id."""
    return f"{URI_SCHEME}{scope.subject or scope.agent or SHARED_OWNER}:{resource_id}"
