"""The measured systems by name. A package is imported only when its system is opened."""

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
# Systems that need their own database.
ON_POSTGRES = frozenset({"holdfast-postgres", "langgraph-postgres"})
# Systems that keep their content only in memory.
IN_MEMORY = frozenset({"langgraph"})
