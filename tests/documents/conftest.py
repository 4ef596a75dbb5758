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
    """Read a file as the gateway or the library would."""

    def reading(content: bytes, name: str = "file", media_type: str | None = None, **limits: float) -> Document:
        return asyncio.run(DocumentReader(Limits(**limits)).read(content, media_type, name, "me"))  # type: ignore[arg-type]

    return reading


@pytest.fixture
def refusal(read: Read) -> Refusal:
    """Return the `InvalidDocument` of a refused file; fail if it is read or raises another error."""

    def refusing(*given: object, **limits: object) -> InvalidDocument:
        with pytest.raises(InvalidDocument) as caught:
            read(*given, **limits)
        return caught.value

    return refusing
