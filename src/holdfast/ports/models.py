"""What makes something of texts, tells the time and names things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntFlag, StrEnum
from typing import Protocol

from holdfast.domain.ids import MessageId
from holdfast.domain.memory import Candidate
from holdfast.domain.ranking import FloatArray
from holdfast.domain.resources import Document
from holdfast.domain.results import Record
from holdfast.domain.transcript import Message
from holdfast.errors import HoldfastError, ModelError


class Clock(Protocol):
    def now(self) -> datetime: ...


class Ids(Protocol):
    def new(self, prefix: str) -> str:
        """A new id, greater than every id this has given before."""


# --- embedding and analysis ------------------------------------------------------------------------------------------


class Purpose(StrEnum):
    DOCUMENT = "document"
    QUERY = "query"


class Embedder(Protocol):
    """Texts to unit vectors.

    `fingerprint` changes whenever the vectors would: model, weights, runtime. `local` embedders answer in
    milliseconds without a network, so `add` waits for them.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def local(self) -> bool: ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        """One row of float32 per text, each of length one."""

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Usage:
    """What asking a model took. Zero tokens where it does not say."""

    model: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors, and what they took. Without a usage, nobody said that there is anything to be paid for."""

    vectors: FloatArray
    usage: Usage | None = None


class MeteredEmbedder(Embedder, Protocol):
    """One that is paid for by tokens, and tells them. `provider` is whom it is paid to."""

    @property
    def provider(self) -> str: ...

    async def embed_metered(self, texts: Sequence[str], purpose: Purpose) -> Embedded:
        """As `embed`."""


class AbsentEmbedder(Embedder, Protocol):
    """One that stands in for an embedder that is not at hand, and embeds nothing."""

    def missing(self) -> HoldfastError:
        """What to tell whoever needs it."""


class Flag(IntFlag):
    """What analysis found in a text, once, when it was indexed."""

    NONE = 0
    TIME_EXPRESSION = 1
    QUESTION_ONLY = 2
    LONG = 4
    ENDS_ASKING = 8


# What each of a text's terms takes: eight bytes of hash, and two for how often it occurs.
TERM_BYTES = 10


@dataclass(frozen=True, slots=True)
class Analysis:
    """A text's terms as packed hashes and counts, how many terms it has, what it is like, and its pieces to embed."""

    terms: bytes
    length: int
    flags: Flag
    pieces: tuple[str, ...]


class Analyzer(Protocol):
    @property
    def version(self) -> int:
        """Grows when the analysis of the same text would differ: then the store re-indexes itself."""

    def analyze(self, text: str) -> Analysis: ...


# --- extraction -------------------------------------------------------------------------------------------------------


class Extractor(Protocol):
    @property
    def name(self) -> str: ...

    async def extract(self, messages: Sequence[Record], subject: str | None) -> Sequence[Candidate]: ...


# --- curation ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a model would have remembered, and the messages that it says it has this from. Nothing of it is believed."""

    text: str
    evidence: tuple[MessageId, ...]


@dataclass(frozen=True, slots=True)
class Curated:
    """A model's proposals, what they took, and how many of its answer could not be used.

    With a `failure` there are none: but what was asked until then was paid for all the same.
    """

    proposals: tuple[Proposal, ...]
    usage: Usage
    dropped: int = 0
    failure: ModelError | None = None


class Curator(Protocol):
    """Asks a model what of a conversation is worth remembering.

    If it has a `provider`, a text, that is whom its calls are paid to.
    """

    @property
    def name(self) -> str: ...

    async def curate(self, messages: Sequence[Message]) -> Curated:
        """Of the messages, the newest that fit in what it may read. Their texts are data, whatever they say."""

    async def close(self) -> None: ...


# --- documents --------------------------------------------------------------------------------------------------------


class Documents(Protocol):
    """Reads files that somebody gave, whoever made them."""

    async def read(self, content: bytes, media_type: str | None, name: str) -> Document:
        """`InvalidDocument` if it is not what it says, cannot be read, or is too large."""
