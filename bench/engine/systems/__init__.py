"""The measured systems by name. Opening a system imports its package; nothing else does."""

from collections.abc import Callable

from bench.engine.systems.chroma import Chroma
from bench.engine.systems.holdfast import HoldfastPostgres, HoldfastSqlite
from bench.engine.systems.lancedb import LanceDB
from bench.engine.systems.langgraph import LangGraphMemory, LangGraphPostgres
from bench.engine.systems.mem0 import Mem0
from bench.engine.systems.memsearch import MemSearch
from bench.engine.systems.protocol import Place, System

SYSTEMS: dict[str, Callable[[Place], System]] = {
    "holdfast": HoldfastSqlite,
    "holdfast-postgres": HoldfastPostgres,
    "mem0": Mem0,
    "langgraph": LangGraphMemory,
    "langgraph-postgres": LangGraphPostgres,
    "chroma": Chroma,
    "lancedb": LanceDB,
    "memsearch": MemSearch,
}
# Those that are given a database of their own.
ON_POSTGRES = frozenset({"holdfast-postgres", "langgraph-postgres"})
# Those whose content goes with their process.
IN_MEMORY = frozenset({"langgraph"})
