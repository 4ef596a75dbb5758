"""Ports: what the core needs (a store, an embedder, a clock, ids), and the service that edges call.

A store runs a function inside one transaction, in a thread of its choice. A `Reader` and a `Transaction` are bound to
their grant: what the grant does not reach cannot be read, counted or written through them. Each has one repository per
noun, such as `reader.records` (`ports/repositories/`), whose methods are plain calls; `read` and `write` are awaited.
"""

from holdfast.domain.forgetting import ForgetPlan
from holdfast.domain.memory import Candidate
from holdfast.domain.resources import Document
from holdfast.domain.search import (
    ListFilter,
    NearestIndex,
    NearestState,
    Order,
    QueryVector,
    RankedCandidates,
    ScoredCandidate,
    SearchOptions,
    VectorBlock,
)
from holdfast.ports.models import (
    TERM_BYTES,
    Analysis,
    Analyzer,
    Clock,
    CurationResult,
    Curator,
    DocumentLoader,
    Embedder,
    Extractor,
    IdGenerator,
    ModelCallUsage,
    Proposal,
    Purpose,
    TextFlag,
)
from holdfast.ports.records import (
    Alias,
    IndexRow,
    IndexUpdate,
    LazyRows,
    NewMessage,
    NewRevision,
    NewTurn,
    PartitionDelta,
    StoredAlias,
    StoredMessages,
    StoredResponse,
    ThreadSummary,
    TurnState,
    UnindexedRecord,
    VectorRow,
    columns_of,
)
from holdfast.ports.service import KeyDirectory, Searcher, Service, Verb
from holdfast.ports.store import Reader, Store, Transaction

__all__ = [
    "TERM_BYTES",
    "Alias",
    "Analysis",
    "Analyzer",
    "Candidate",
    "Clock",
    "CurationResult",
    "Curator",
    "Document",
    "DocumentLoader",
    "Embedder",
    "Extractor",
    "ForgetPlan",
    "IdGenerator",
    "IndexRow",
    "IndexUpdate",
    "KeyDirectory",
    "LazyRows",
    "ListFilter",
    "ModelCallUsage",
    "NearestIndex",
    "NearestState",
    "NewMessage",
    "NewRevision",
    "NewTurn",
    "Order",
    "PartitionDelta",
    "Proposal",
    "Purpose",
    "QueryVector",
    "RankedCandidates",
    "Reader",
    "ScoredCandidate",
    "SearchOptions",
    "Searcher",
    "Service",
    "Store",
    "StoredAlias",
    "StoredMessages",
    "StoredResponse",
    "TextFlag",
    "ThreadSummary",
    "Transaction",
    "TurnState",
    "UnindexedRecord",
    "VectorBlock",
    "VectorRow",
    "Verb",
    "columns_of",
]  # fmt: skip
