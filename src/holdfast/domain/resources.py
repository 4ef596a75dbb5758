"""Documents that somebody gave to be searched: read once, kept as chunks, each a memory on the plane of resources."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from holdfast.domain.ids import ResourceId
from holdfast.domain.scope import Scope

SHARED_OWNER = "shared"
URI_SCHEME = "resource:"
UNNAMED = "untitled"
# No reader takes more.
MAX_CONTENT_BYTES = 25 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """What was read out of a file: its type, its title if it has one, and its text in pieces fit for search."""

    media_type: str
    title: str | None
    chunks: tuple[str, ...]
    characters: int


@dataclass(frozen=True, slots=True)
class Resource:
    """A document as it is kept. `sha256` and `bytes` are of the file as it was given; the file itself is not kept."""

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
class ResourceAdded:
    """`reused` if the same file was in the same scope already: then nothing was written."""

    resource: Resource
    reused: bool = False


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """A page of resources, newest first. `next_cursor` is None on the last."""

    items: tuple[Resource, ...]
    next_cursor: str | None


def resource_uri(scope: Scope, resource_id: str) -> str:
    """How a resource is named as a source: by whom it belongs to, and its id."""
    return f"{URI_SCHEME}{scope.subject or scope.agent or SHARED_OWNER}:{resource_id}"
