"""The measured systems by name. A package is imported only when its system is opened."""

from collections.abc import Callable

from bench.retrieval.systems.chroma import Chroma
from bench.retrieval.systems.holdfast import Holdfast, HoldfastPlain
from bench.retrieval.systems.lancedb import LanceDB
from bench.retrieval.systems.langgraph import LangGraph
from bench.retrieval.systems.mem0 import Mem0
from bench.retrieval.systems.memsearch import MemSearch
from bench.retrieval.systems.plain import Plain
from bench.retrieval.systems.protocol import Setup, System

SYSTEMS: dict[str, Callable[[Setup], System]] = {
    "holdfast": Holdfast,
    "holdfast-plain": HoldfastPlain,
    "mem0": Mem0,
    "langgraph": LangGraph,
    "chroma": Chroma,
    "lancedb": LanceDB,
    "memsearch": MemSearch,
    "plain": Plain,
}
# memsearch takes about a second to create a collection, and longer to search than all others together: only if named.
DEFAULT = tuple(name for name in SYSTEMS if name != "memsearch")
