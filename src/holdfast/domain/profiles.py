"""Profiles: resource limits of a memory by platform, from a microcontroller to a server.

A profile is a ceiling. A request can only tighten it. Budgets never grant access.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from holdfast.domain.checks import checked_whole
from holdfast.domain.presentable import Presentable
from holdfast.domain.redaction import TranscriptGovernanceBudget
from holdfast.domain.transcript_turns import checked_member
from holdfast.errors import InvalidInput

KIB = 1024
MIB = 1024 * KIB
PREFIX = "profile-"
_MOST_CHARS = 1_000_000_000


class SystemKind(StrEnum):
    """Deployment of the memory: a program of its own, or embedded in its host."""

    STANDALONE = "standalone"
    SDK_EMBEDDED = "sdk_embedded"


class Backend(StrEnum):
    """The storage of a runtime. All but the last are one SQLite store, in memory or in a file."""

    IN_MEMORY = "in_memory"
    FILE = "file"
    SQLITE = "sqlite"
    EMBEDDED = "embedded"
    POSTGRES = "postgres"


class Pressure(StrEnum):
    """Resource pressure on the host."""

    NORMAL = "normal"
    CAUTIOUS = "cautious"
    CRITICAL = "critical"


PERCENT = {Pressure.NORMAL: 100, Pressure.CAUTIOUS: 60, Pressure.CRITICAL: 35}


@dataclass(frozen=True, slots=True)
class Budget(Presentable):
    """Upper limits. None may be zero, since such a memory could not work."""

    records: int
    events: int
    blob_bytes: int
    snapshot_bytes: int
    http_body_bytes: int
    source_chars: int
    render_chars: int
    maintenance_chars: int
    cache_entries: int
    wss_connections: int

    def __post_init__(self) -> None:
        for name in self.__slots__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidInput(f"budget.{name}", f"must be a whole number above 0, not {value!r:.40}")

    @property
    def recent_messages(self) -> int:
        """Number of preceding messages that a projection may use."""
        return max(self.source_chars // 256, 4)

    @property
    def transcript(self) -> TranscriptGovernanceBudget:
        """Limits of one response about transcripts."""
        return TranscriptGovernanceBudget(
            page_size=max(self.source_chars // 256, 4),
            host_refs_per_turn=max(self.http_body_bytes // (8 * KIB), 1),
            redaction_items=max(self.source_chars // 128, 8),
            derived_refs=max(self.records // 512, 4),
            repair_issues=max(self.events // 512, 4),
        )


@dataclass(frozen=True, slots=True)
class Profile(Presentable):
    name: str
    kind: SystemKind
    budget: Budget
    backends: tuple[Backend, ...] = tuple(Backend)
    # Names of capabilities that this profile never has, even if built and configured.
    without: frozenset[str] = frozenset()


_ALL = tuple(Backend)
# No reliable file system, and no one to mount a folder or register tools.
_ON_ESP = (Backend.IN_MEMORY, Backend.EMBEDDED)
# Long replays and benchmarks are for those who build a memory, not for those who run one.
_DEV_ONLY = frozenset({"full_replay_suite", "benchmark_gate", "full_proposal_sandbox"})
# No one is there to review what a device proposes: it tries the form of a proposal, and submits it elsewhere.
_NOT_ON_ESP = _DEV_ONLY | {
    *("agent_skill_directories", "agent_tool_registries", "memory_harness"),
    *("compact_proposal_sandbox", "proposal_submission"),
}
# Many callers share a gateway: one must not page through the turns of all.
_NOT_ON_A_GATEWAY = _DEV_ONLY | {"replay"}

# fmt: off
_BUDGETS = {
    #                        records  events        blob   snapshot  http body  source  render   maint cache  wss
    "esp-standalone":   Budget( 4096,  2048,   4 * MIB,   1 * MIB,  16 * KIB,   2048,   4096,   2048,   16,    8),
    "esp-embedded":     Budget(  512,   256,   1 * MIB, 256 * KIB,   8 * KIB,   1024,   2048,   1024,    8,    4),
    "linux-device":     Budget(12000,  4096,  16 * MIB,   4 * MIB,  64 * KIB,   4096,   8192,   4096,   32,   16),
    "macos-standalone": Budget(20000,  8192,  32 * MIB,   8 * MIB,  96 * KIB,   8192,  12288,   8192,   64,   32),
    "desktop-embedded": Budget( 4096,  2048,   8 * MIB,   2 * MIB,  32 * KIB,   2048,   4096,   2048,   16,    8),
    "gateway":          Budget(40000, 16384,  64 * MIB,  16 * MIB, 128 * KIB,   8192,  16384,   8192,  128,   64),
    "dev-full":         Budget(80000, 32768, 128 * MIB,  32 * MIB, 256 * KIB,  16384,  32768,  16384,  256,  128),
}
_PROFILES = (
    Profile("esp-standalone-memory", SystemKind.STANDALONE, _BUDGETS["esp-standalone"], _ON_ESP, _NOT_ON_ESP),
    Profile("esp-embedded-sdk", SystemKind.SDK_EMBEDDED, _BUDGETS["esp-embedded"], _ON_ESP, _NOT_ON_ESP),
    Profile("linux-device-standalone-memory", SystemKind.STANDALONE, _BUDGETS["linux-device"], _ALL, _DEV_ONLY),
    Profile("desktop-macos-standalone-memory", SystemKind.STANDALONE, _BUDGETS["macos-standalone"], _ALL, _DEV_ONLY),
    Profile("desktop-macos-embedded-sdk", SystemKind.SDK_EMBEDDED, _BUDGETS["desktop-embedded"], _ALL, _DEV_ONLY),
    Profile("desktop-windows-embedded-sdk", SystemKind.SDK_EMBEDDED, _BUDGETS["desktop-embedded"], _ALL, _DEV_ONLY),
    Profile(
        "server-linux-memory-gateway", SystemKind.STANDALONE, _BUDGETS["gateway"], _ALL, _NOT_ON_A_GATEWAY
    ),
    Profile("server-linux-dev-full", SystemKind.STANDALONE, _BUDGETS["dev-full"]),
)
# fmt: on
PROFILES: Mapping[str, Profile] = MappingProxyType({profile.name: profile for profile in _PROFILES})
DEFAULT_PROFILE = "server-linux-dev-full"


def profile_of(name: object) -> Profile:
    """Return the profile of that name, which may have the prefix `profile-`."""
    found = PROFILES.get(name.removeprefix(PREFIX)) if isinstance(name, str) else None
    if found is None:
        raise InvalidInput("profile", f"there is no profile {name!r:.80}; use one of {', '.join(PROFILES)}")
    return found


def with_budgets(profile: Profile, budgets: Mapping[str, int]) -> Profile:
    """Return the profile with some budgets replaced."""
    if unknown := sorted(set(budgets) - set(Budget.__slots__)):
        raise InvalidInput("budget", f"there is no budget {unknown[0]!r:.80}; use {', '.join(Budget.__slots__)}")
    return replace(profile, budget=replace(profile.budget, **budgets)) if budgets else profile


_IN_A_FILE = (Backend.SQLITE, Backend.FILE, Backend.EMBEDDED)


def backend_of(location: str, named: object = None) -> Backend:
    """Return the backend of a location. A path is a SQLite file unless `named` says otherwise."""
    if location == ":memory:":
        fitting: tuple[Backend, ...] = (Backend.IN_MEMORY,)
    elif "://" in location:
        fitting = (Backend.POSTGRES,)
    else:
        fitting = _IN_A_FILE
    found = fitting[0] if named is None else next((backend for backend in fitting if backend == named), None)
    if found is None:
        raise InvalidInput("backend", f"this location is {' or '.join(fitting)}, not {named!r:.40}")
    return found


def checked_backend(profile: Profile, backend: Backend) -> Backend:
    """Return the backend if this profile allows it."""
    if backend not in profile.backends:
        usable = " or ".join(profile.backends)
        raise InvalidInput("backend", f"{profile.name} does not support {backend}; choose {usable}")
    return backend


def render_budget(profile: Profile, requested: int | None = None, provider_max: int | None = None) -> int:
    """Return the character limit of a projection: the least of the profile's, the caller's and the model's."""
    limits = {"requested": requested, "provider_max": provider_max}
    checked = [checked_whole(value, name, 1, _MOST_CHARS) for name, value in limits.items() if value is not None]
    return min([profile.budget.render_chars, *checked])


def pressure_of(name: object) -> Pressure:
    return checked_member(Pressure, name, "pressure")


def scale_budget(chars: int, pressure: Pressure) -> int:
    """Reduce a budget under pressure, to 1 at least."""
    return max(1, checked_whole(chars, "chars", 1, _MOST_CHARS) * PERCENT[pressure_of(pressure)] // 100)
