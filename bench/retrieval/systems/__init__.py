"""The measured systems by name. Opening a system imports its package; nothing else does."""

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
# memsearch takes about a second to make a collection, and more than all others together to search them: only if named.
DEFAULT = tuple(name for name in SYSTEMS if name != "memsearch")
