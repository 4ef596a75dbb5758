from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from holdfast.documents.limits import Limits
from holdfast.documents.reader import DocumentReader
from holdfast.domain.resources import Document
from holdfast.errors import InvalidDocument

Read = Callable[..., Document]
Refusal = Callable[..., InvalidDocument]


@pytest.fixture
def read() -> Read:
    """Read a file as an edge would have it read."""

    def reading(content: bytes, name: str = "file", media_type: str | None = None, **limits: float) -> Document:
        return asyncio.run(DocumentReader(Limits(**limits)).read(content, media_type, name))  # type: ignore[arg-type]

    return reading


@pytest.fixture
def refusal(read: Read) -> Refusal:
    """How a file is refused; a failure of the test if it is not, or with any other error."""

    def refusing(*given: object, **limits: object) -> InvalidDocument:
        with pytest.raises(InvalidDocument) as caught:
            read(*given, **limits)
        return caught.value

    return refusing
