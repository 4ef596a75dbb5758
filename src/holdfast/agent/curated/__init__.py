"""Curated memory: two small files that the agent maintains, and that go into its prompt verbatim."""

from holdfast.agent.curated.entries import Change, CuratedAction, CuratedTarget
from holdfast.agent.curated.files import MemoryStore
from holdfast.agent.curated.service import MemoryService, MemorySnapshot
from holdfast.agent.curated.threats import threat_in
from holdfast.agent.curated.tool import memory_tool

__all__ = [
    "Change",
    "CuratedAction",
    "CuratedTarget",
    "MemoryService",
    "MemorySnapshot",
    "MemoryStore",
    "memory_tool",
    "threat_in",
]
