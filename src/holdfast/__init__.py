"""Holdfast: one memory for AI agents.

memory = holdfast.open("memory.db")
memory.add("I moved to Lisbon last week.", subject="ana")
for hit in memory.search("Where does Ana live?", subject="ana"):
    print(hit.text, hit.score, hit.evidence)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast import errors
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.control_api import AsyncControlPlane, ControlPlane
    from holdfast.domain.access import Actor, ActorKind
    from holdfast.domain.backups import BackupResult, RestoreResult, RetainedBackup
    from holdfast.domain.conditions import AllOf, AnyOf, Compare, Not
    from holdfast.domain.custom_embedder import CustomEmbedder
    from holdfast.domain.events import Event, EventPage
    from holdfast.domain.forgetting import ForgetPreview, ForgetReceipt
    from holdfast.domain.memory import Evidence, MemoryRecord, Plane, Status, Trust, Validity
    from holdfast.domain.presentable import Results
    from holdfast.domain.ranking import Weights
    from holdfast.domain.resources import Resource, ResourceAdded, ResourcePage
    from holdfast.domain.results import (
        Absence,
        Added,
        Browsed,
        Component,
        Copied,
        Explanation,
        Flushed,
        Hit,
        HitKind,
        Page,
        Recall,
        Stats,
        Way,
    )
    from holdfast.domain.scope import Scope
    from holdfast.domain.transcript import Draft, Message, Role
    from holdfast.domain.users import Issued, User, UserPage
    from holdfast.library import AsyncMemory
    from holdfast.opening import (  # like codecs.open: always called as holdfast.open
        backup,
        copy,
        open,  # noqa: A004
        open_async,
        restore,
    )
    from holdfast.sync import Memory

__version__ = "0.1.0"

__all__ = [
    "Absence",
    "Actor",
    "ActorKind",
    "Added",
    "AllOf",
    "AnyOf",
    "AsyncControlPlane",
    "AsyncMemory",
    "BackupResult",
    "Browsed",
    "Compare",
    "Component",
    "ControlPlane",
    "Copied",
    "CustomEmbedder",
    "Draft",
    "Event",
    "EventPage",
    "Evidence",
    "Explanation",
    "Flushed",
    "ForgetPreview",
    "ForgetReceipt",
    "Hit",
    "HitKind",
    "HoldfastError",
    "Issued",
    "Memory",
    "MemoryRecord",
    "Message",
    "Not",
    "Page",
    "Plane",
    "Recall",
    "Resource",
    "ResourceAdded",
    "ResourcePage",
    "RestoreResult",
    "Results",
    "RetainedBackup",
    "Role",
    "Scope",
    "Stats",
    "Status",
    "Trust",
    "User",
    "UserPage",
    "Validity",
    "Way",
    "Weights",
    "backup",
    "copy",
    "errors",
    "open",
    "open_async",
    "restore",
]

# The module of each public name. Names are loaded on first use: opening a memory needs no control plane, and
# `holdfast --version` needs neither. A test compares this with the imports for type checkers above.
_HOMES = {
    "holdfast.domain.access": ("Actor", "ActorKind"),
    "holdfast.domain.backups": ("BackupResult", "RestoreResult", "RetainedBackup"),
    "holdfast.domain.conditions": ("AllOf", "AnyOf", "Compare", "Not"),
    "holdfast.domain.custom_embedder": ("CustomEmbedder",),
    "holdfast.domain.events": ("Event", "EventPage"),
    "holdfast.domain.forgetting": ("ForgetPreview", "ForgetReceipt"),
    "holdfast.domain.memory": ("Evidence", "MemoryRecord", "Plane", "Status", "Trust", "Validity"),
    "holdfast.domain.presentable": ("Results",),
    "holdfast.domain.ranking": ("Weights",),
    "holdfast.domain.resources": ("Resource", "ResourceAdded", "ResourcePage"),
    "holdfast.domain.results": (
        *("Absence", "Added", "Browsed", "Component", "Copied", "Explanation", "Flushed", "Hit", "HitKind"),
        *("Page", "Recall", "Stats", "Way"),
    ),
    "holdfast.domain.scope": ("Scope",),
    "holdfast.domain.transcript": ("Draft", "Message", "Role"),
    "holdfast.domain.users": ("Issued", "User", "UserPage"),
    "holdfast.library": ("AsyncMemory",),
    "holdfast.opening": ("backup", "copy", "open", "open_async", "restore"),
    "holdfast.control_api": ("AsyncControlPlane", "ControlPlane"),
    "holdfast.sync": ("Memory",),
}
_LAZY = {name: (home, name) for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        from holdfast.domain.call_errors import missing_attribute

        raise AttributeError(missing_attribute("holdfast", __all__, name))
    home, known_as = _LAZY[name]
    found = globals()[name] = getattr(import_module(home), known_as)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
