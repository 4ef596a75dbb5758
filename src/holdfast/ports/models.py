"""Ports of models and small services: embedder, analyzer, extractor, curator, document reader, clock and ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntFlag, StrEnum
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

from holdfast.domain.custom_embedder import CustomEmbedder, EmbedderTarget
from holdfast.domain.ids import MemoryId, MessageId
from holdfast.domain.memory import ALWAYS, Candidate, FactRelation, MemoryRecord, Plane, Validity
from holdfast.domain.ranking import FloatArray
from holdfast.domain.resources import Document
from holdfast.domain.results import Record
from holdfast.domain.transcript import Message
from holdfast.errors import HoldfastError, ModelError

R = TypeVar("R")


class Clock(Protocol):
    def now(self) -> datetime: ...


class IdGenerator(Protocol):
    def new(self, prefix: str) -> str:
        """Return a new id, greater than every earlier one of this generator."""


# --- embedding and analysis ------------------------------------------------------------------------------------------


class Purpose(StrEnum):
    DOCUMENT = "document"
    QUERY = "query"


class Embedder(Protocol):
    """Maps texts to unit vectors.

    `fingerprint` changes whenever the vectors would: model, weights, runtime. `local` embedders respond in
    milliseconds without a network, so `add` waits for them.
    """

    @property
    def fingerprint(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    @property
    def local(self) -> bool: ...

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> FloatArray:
        """Return one row of float32 per text, each of length one."""

    async def close(self) -> None: ...


# Anything that `holdfast.open` accepts as an embedder.
EmbedderLike: TypeAlias = str | Embedder | CustomEmbedder | EmbedderTarget


@dataclass(frozen=True, slots=True)
class ModelCallUsage:
    """Usage of a model. Zero tokens if it reports none."""

    model: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: ModelCallUsage) -> ModelCallUsage:
        return replace(
            self,
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """Vectors and their usage. Without a usage, none was reported."""

    vectors: FloatArray
    usage: ModelCallUsage | None = None


class MeteredEmbedder(Embedder, Protocol):
    """An embedder that is billed by tokens and reports them. `provider` is the biller."""

    @property
    def provider(self) -> str: ...

    async def embed_metered(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingResult:
        """Embed as `embed`, and report the usage."""


class AbsentEmbedder(Embedder, Protocol):
    """A placeholder for an embedder that is not available. It embeds nothing."""

    def missing_error(self) -> HoldfastError:
        """Return the error to raise where vectors are needed."""


class TextFlag(IntFlag):
    """Features that the analysis found in a text when it was indexed."""

    NONE = 0
    TIME_EXPRESSION = 1
    QUESTION_ONLY = 2
    LONG = 4
    ENDS_ASKING = 8


# Size of a packed term: eight bytes of hash and two of count.
TERM_BYTES = 10


@dataclass(frozen=True, slots=True)
class Analysis:
    """A text's terms as packed hashes and counts, its length in terms, its features, and its pieces to embed."""

    terms: bytes
    length: int
    flags: TextFlag
    pieces: tuple[str, ...]


class Analyzer(Protocol):
    @property
    def version(self) -> int:
        """Grows whenever the analysis of a text would differ; then the store re-indexes itself."""

    def analyze(self, text: str) -> Analysis: ...


# --- extraction -------------------------------------------------------------------------------------------------------


class Extractor(Protocol):
    @property
    def name(self) -> str: ...

    async def extract(self, messages: Sequence[Record], subject: str | None) -> Sequence[Candidate]: ...


# --- curation ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The text that a model answered, and the usage of the request. Untrusted."""

    text: str
    usage: ModelCallUsage


class PromptModel(Protocol):
    """A model that answers one prompt with JSON. `provider` is the biller of its calls, `url` its endpoint."""

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str: ...

    @property
    def url(self) -> str: ...

    async def answer(self, instructions: str, content: str, schema: Mapping[str, object]) -> ModelAnswer:
        """Ask once. `schema` is that of the answer, for models that can be bound to one.

        Raises `ModelMisconfigured` if asking again is in vain, else `ModelUnavailable`.
        """

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """A memory that a model proposes, with the messages it cites. Untrusted.

    `relation` is the relation to the known memory `target`, if the model was shown any. On the procedural plane it is a
    procedure.
    """

    text: str
    evidence: tuple[MessageId, ...]
    relation: FactRelation | None = None
    target: MemoryId | None = None
    validity: Validity = ALWAYS
    plane: Plane = Plane.LONG_TERM


@dataclass(frozen=True, slots=True)
class CurationResult:
    """The proposals of a model, their usage, and the number of unusable ones in its response.

    With a `failure` there are none, but the usage until then still counts.
    """

    proposals: tuple[Proposal, ...]
    usage: ModelCallUsage
    dropped: int = 0
    failure: ModelError | None = None

    def __add__(self, other: CurationResult) -> CurationResult:
        return CurationResult(
            self.proposals + other.proposals,
            self.usage + other.usage,
            self.dropped + other.dropped,
            self.failure or other.failure,
        )


class Curator(Protocol):
    """Asks a model which facts of a conversation are worth remembering.

    If it has an attribute `provider` (text), that is the biller of its calls.
    """

    @property
    def name(self) -> str: ...

    @property
    def max_chars(self) -> int:
        """The most characters of messages that one request shows to the model."""

    async def curate(self, messages: Sequence[Message], known: Sequence[MemoryRecord] = ()) -> CurationResult:
        """Curate the newest messages that fit the model's input. Their texts are data, never instructions.

        `known` are memories that the new facts may repeat, update or contradict.
        """

    async def close(self) -> None: ...


@runtime_checkable
class ProcedureCurator(Protocol):
    """A curator that also asks its model which procedures a conversation teaches. Others teach none."""

    async def curate_procedures(self, messages: Sequence[Message]) -> CurationResult:
        """Propose procedures, on the procedural plane, from messages of turns in which tools were used."""


@runtime_checkable
class ProcedureReviser(Protocol):
    """A curator that also asks its model to word a failed procedure again. Others revise none."""

    async def revise_procedure(self, messages: Sequence[Message], procedure: str, note: str | None) -> CurationResult:
        """Propose a better wording of a procedure that failed in these messages. The `note` says how it went."""


# --- documents --------------------------------------------------------------------------------------------------------


class DocumentLoader(Protocol):
    """Reads uploaded files, which are untrusted."""

    async def read(self, content: bytes, media_type: str | None, name: str, caller: str) -> Document:
        """Read a file; raises `InvalidDocument` if its type is wrong, it cannot be read, or it is too large.

        Raises `DocumentsBusy` if the caller's share of the queue is used up.
        """

    async def run_in_turn(self, caller: str, work: Callable[[], R]) -> R:
        """Run a short piece of work on a document's text, in turn with that of other callers."""
