"""Ports: what the core needs (a store, an embedder, a clock, ids), and the service that edges call.

A store runs a function inside one transaction, in a thread of its choice. A `Reader` and a `Transaction` are bound to
their grant: what the grant does not reach cannot be read, counted or written through them. Their methods are plain
calls; `read` and `write` are awaited.
"""

from holdfast.domain.forgetting import Doomed
from holdfast.domain.memory import Candidate
from holdfast.domain.resources import Document
from holdfast.domain.searching import (
    ListFilter,
    Nearest,
    NearestState,
    Order,
    QueryVector,
    Ranked,
    Scored,
    VectorBlock,
    Wanted,
)
from holdfast.ports.models import (
    TERM_BYTES,
    Analysis,
    Analyzer,
    Clock,
    Curated,
    Curator,
    Documents,
    Embedder,
    Extractor,
    Flag,
    Ids,
    Proposal,
    Purpose,
    Usage,
)
from holdfast.ports.records import (
    Answer,
    Bulk,
    Delta,
    Indexed,
    IndexRow,
    NewMessage,
    NewRevision,
    NewTurn,
    StoredMessages,
    Unindexed,
    VectorRow,
    columns_of,
)
from holdfast.ports.service import Directory, Searcher, Service, Verb
from holdfast.ports.store import Reader, Store, Transaction
from holdfast.ports.transcripts import Alias, KeptAlias, ThreadSummary, TurnState

__all__ = [
    "TERM_BYTES", "Alias", "Analysis", "Analyzer", "Answer", "Bulk", "Candidate", "Clock", "Curated", "Curator",
    "Delta", "Directory", "Document", "Documents", "Doomed", "Embedder", "Extractor", "Flag", "Ids", "IndexRow",
    "Indexed", "KeptAlias", "ListFilter", "Nearest", "NearestState", "NewMessage", "NewRevision", "NewTurn", "Order",
    "Proposal", "Purpose", "QueryVector", "Ranked", "Reader", "Scored", "Searcher", "Service", "Store",
    "StoredMessages", "ThreadSummary", "Transaction", "TurnState", "Unindexed", "Usage", "VectorBlock", "VectorRow",
    "Verb", "Wanted", "columns_of",
]  # fmt: skip
