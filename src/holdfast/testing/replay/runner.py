"""Runs fixtures: on one store, and on several that must agree."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from holdfast.domain.canonical import canonical, fingerprint
from holdfast.domain.capabilities import catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.identity import MemoryIdentity
from holdfast.domain.presentable import Presentable
from holdfast.domain.profiles import Backend, backend_of, profile_of
from holdfast.domain.runtime_api.exchange import MemorySpaceImportRequest
from holdfast.errors import CapabilityUnavailable, HoldfastError, InvalidInput, ManifestMismatch
from holdfast.ports import EmbedderLike
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.settings import Settings
from holdfast.testing.fakes import CountingIds, FixedClock, ScriptedPrompts
from holdfast.testing.replay.fingerprints import fingerprint_events, fingerprint_state, read_events
from holdfast.testing.replay.fixture import ReplayExpectation, ReplayFixture
from holdfast.testing.replay.operations import PreparedOperation, ReplaySession, prepare_operations

AGENT, OWNER = "replay-agent", "replay-owner"
START = datetime.fromtimestamp(1_800_000_000, UTC)
IN_MEMORY = ":memory:"
_STEP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class ReplayFailure(Presentable):
    """The stage that failed: an operation, a part of the expectation, or `fixture_profile`; and the reason."""

    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReplayRunReport(Presentable):
    """The result of one run of a fixture. The first error stops it; every unmet expectation is a failure."""

    fixture_id: str
    profile: str
    backend: str
    operations_run: int
    state_fingerprint: str
    event_fingerprint: str
    lifecycle_operations: tuple[str, ...]
    report_fragments: tuple[str, ...]
    passed: bool
    failures: tuple[ReplayFailure, ...]

    def expectation(self) -> ReplayExpectation:
        """Return the expectation that this run meets exactly."""
        return ReplayExpectation(
            self.state_fingerprint,
            self.event_fingerprint,
            self.lifecycle_operations,
            self.operations_run,
            self.report_fragments,
            fingerprint(self.report_fragments),
        )


class _FixtureRun:
    """One run in progress."""

    def __init__(self, fixture: ReplayFixture) -> None:
        self.fixture = fixture
        self.space = space_of(fixture)
        self.failures: list[ReplayFailure] = []
        self.fragments: list[str] = []
        self.lifecycle: list[str] = []
        self.operations_run = 0
        self.state = self.events = ""

    def fail(self, stage: str, reason: object) -> None:
        self.failures.append(ReplayFailure(stage, str(reason)))

    async def play(self, session: ReplaySession, operations: Sequence[PreparedOperation]) -> None:
        for place, (name, entry, request) in enumerate(operations, 1):
            session.clock.step(_STEP_SECONDS)
            try:
                report = await entry.run(session, request)
            except HoldfastError as error:
                self.fail(name, f"operation {place}: {error}")
                return
            self.operations_run += 1
            if (lifecycle := getattr(report, "lifecycle_report", None)) is not None:
                self.lifecycle.append(str(lifecycle.operation))
            self.fragments += [f"{place} {name}: {line}" for line in entry.lines(report)]

    def compare(self) -> None:
        """Compare the run with what its fixture expects."""
        expected = self.fixture.expected
        for stage, wanted, found in (
            ("state_fingerprint", expected.state_fingerprint, self.state),
            ("event_fingerprint", expected.event_fingerprint, self.events),
        ):
            if wanted and wanted != found:
                self.fail(stage, f"expected {wanted}, found {found}")
        if self.operations_run < expected.min_reports:
            self.fail("report_count", f"expected at least {expected.min_reports}, found {self.operations_run}")
        if expected.lifecycle_operations and expected.lifecycle_operations != tuple(self.lifecycle):
            self.fail("lifecycle_operation", f"expected {list(expected.lifecycle_operations)}, found {self.lifecycle}")
        self._compare_fragments()

    def _compare_fragments(self) -> None:
        expected = self.fixture.expected
        present, required = set(self.fragments), set(expected.required_report_fragments)
        for fragment in expected.required_report_fragments:
            if fragment not in present and not any(fragment in each for each in self.fragments):
                self.fail("report_fragment", f"missing: {fragment}")
        if expected.report_fingerprint in ("", fingerprint(self.fragments)):
            return
        surplus = [fragment for fragment in self.fragments if fragment not in required]
        for fragment in surplus:
            self.fail("report_fingerprint", f"not expected: {fragment}")
        if not surplus and not self.failures:
            self.fail("report_fingerprint", "the report has the same lines in another order or number")

    def report(self, backend: str) -> ReplayRunReport:
        return ReplayRunReport(
            fixture_id=self.fixture.fixture_id,
            profile=self.fixture.profile,
            backend=backend,
            operations_run=self.operations_run,
            state_fingerprint=self.state,
            event_fingerprint=self.events,
            lifecycle_operations=tuple(self.lifecycle),
            report_fragments=tuple(self.fragments),
            passed=not self.failures,
            failures=tuple(self.failures),
        )


async def run_fixture_async(
    fixture: ReplayFixture,
    store: str = IN_MEMORY,
    *,
    profile: str | None = None,
    embedder: EmbedderLike | None = None,
) -> ReplayRunReport:
    """Run a fixture as `run_fixture` does, in a running event loop."""
    operations = prepare_operations(fixture)
    require_capability(fixture.profile, "compact_replay_fixture" if fixture.is_compact else "full_replay_suite")
    run = _FixtureRun(fixture)
    backend = _backend(fixture.profile, store)
    wanted = profile_of(fixture.profile if profile is None else profile).name
    if wanted != fixture.profile:
        run.fail("fixture_profile", f"the fixture is for {fixture.profile}, and the backend has {wanted}")
        return run.report(backend)
    try:
        async with session_on(fixture, store, embedder) as session:
            await _play_all(run, session, operations)
    except UnfitStore as error:
        run.fail(error.stage, error)
    return run.report(backend)


def run_fixture(
    fixture: ReplayFixture,
    store: str = IN_MEMORY,
    *,
    profile: str | None = None,
    embedder: EmbedderLike | None = None,
) -> ReplayRunReport:
    """Run a fixture on a store, in a space of its own that must be empty: a path, `:memory:` or a PostgreSQL URL.

    `profile` is that of the store, if it is not the fixture's. `embedder` replaces the one that the fixture names.
    """
    return asyncio.run(run_fixture_async(fixture, store, profile=profile, embedder=embedder))


@dataclass(frozen=True, slots=True)
class StoreComparison(Presentable):
    """The runs of one fixture on several stores, and each difference from the first run."""

    fixture_id: str
    runs: tuple[ReplayRunReport, ...]
    passed: bool
    differences: tuple[ReplayFailure, ...]


_COMPARED = ("state_fingerprint", "event_fingerprint", "operations_run", "lifecycle_operations", "report_fragments")


def compare_stores(
    fixture: ReplayFixture, stores: Sequence[str], *, embedder: EmbedderLike | None = None
) -> StoreComparison:
    """Run a fixture on each store. All must give the same fingerprints and reports."""
    runs = tuple(run_fixture(fixture, store, embedder=embedder) for store in stores)
    return compare_runs(fixture.fixture_id, runs)


def compare_runs(fixture_id: str, runs: Sequence[ReplayRunReport]) -> StoreComparison:
    """Compare runs of one fixture with the first of them."""
    first = runs[0]
    differences = tuple(
        ReplayFailure(name, f"{each.backend} differs from {first.backend}{_first_difference(first, each, name)}")
        for each in runs[1:]
        if each.state_fingerprint  # else it did not begin, and its failure says why
        for name in _COMPARED
        if getattr(each, name) != getattr(first, name)
    )
    passed = not differences and all(run.passed for run in runs)
    return StoreComparison(fixture_id, tuple(runs), passed, differences)


def record_expectation(
    fixture: ReplayFixture, store: str = IN_MEMORY, *, embedder: EmbedderLike | None = None
) -> ReplayFixture:
    """Return the fixture with the result of a run as its expectation; an operation that fails is an error."""
    report = run_fixture(fixture.expecting(ReplayExpectation()), store, embedder=embedder)
    if report.failures:
        failure = report.failures[0]
        raise InvalidInput(failure.stage, f"cannot be recorded: {failure.reason}")
    return fixture.expecting(report.expectation())


# --- steps ------------------------------------------------------------------------------------------------------------


class UnfitStore(InvalidInput):
    """The store cannot serve the fixture: it is made for another profile, or the fixture's space was used before."""

    def __init__(self, stage: str, problem: str) -> None:
        super().__init__("store", problem)
        self.stage = stage


def require_capability(profile: str, capability: str) -> None:
    """Raise `CapabilityUnavailable` if the profile does not offer the capability."""
    found = profile_of(profile)
    Governance(MemoryIdentity(), found, catalogue(found)).require(capability)


def _backend(profile: str, store: str) -> str:
    """Return the backend of a store. A file is `embedded` under a profile that knows no other."""
    found = backend_of(store)
    backends = profile_of(profile).backends
    return Backend.EMBEDDED if found is Backend.SQLITE and found not in backends else found


@contextlib.asynccontextmanager
async def session_on(fixture: ReplayFixture, store: str, embedder: EmbedderLike | None) -> AsyncIterator[ReplaySession]:
    """Open a runtime with a fixed clock, counted ids and a scripted model; no setting of the environment counts."""
    clock, model = FixedClock(START), ScriptedPrompts()
    # Fixtures share a store, so each has ids of its own.
    first = int.from_bytes(hashlib.sha256(fixture.fixture_id.encode()).digest()[:5]) << 48
    opening = (
        AsyncMemoryRuntime.builder()
        .settings(Settings.model_construct())
        .profile(fixture.profile)
        .store(store, backend=_backend(fixture.profile, store))
        .identity(space=space_of(fixture), subject_id=OWNER, agent_id=AGENT)
        .embedder(fixture.embedder if embedder is None else embedder)
        .model(model)
        .agent_skill_dirs(())
        .clock(clock, CountingIds(first + 1))
        .without_worker()
        .open()
    )
    try:
        runtime = await opening
    except (ManifestMismatch, CapabilityUnavailable) as error:
        problem: HoldfastError = error
    except InvalidInput as error:
        if error.field != "backend":
            raise
        problem = error
    else:
        async with runtime:
            yield ReplaySession(runtime, clock, model)
        return
    raise UnfitStore("fixture_profile", str(problem))


def space_of(fixture: ReplayFixture) -> str:
    """Return the space in which a fixture runs."""
    return f"replay-{fixture.fixture_id}"


async def require_empty(runtime: AsyncMemoryRuntime, fixture: ReplayFixture) -> None:
    """Raise `UnfitStore` if the space of the fixture has a history."""
    space = space_of(fixture)
    if await read_events(runtime.service, space):
        raise UnfitStore("store", f"the space {space} was used before; give an empty store")


async def _play_all(run: _FixtureRun, session: ReplaySession, operations: Sequence[PreparedOperation]) -> None:
    runtime = session.runtime
    await require_empty(runtime, run.fixture)
    if run.fixture.store_snapshot:
        lines = b"".join(canonical(line) + b"\n" for line in run.fixture.store_snapshot)
        try:
            await runtime.import_space(MemorySpaceImportRequest(content=lines))
        except HoldfastError as error:
            run.fail("store_snapshot", error)
            return
    await run.play(session, operations)
    run.state = await fingerprint_state(runtime)
    run.events = await fingerprint_events(runtime.service, run.space)
    run.compare()


def _first_difference(first: ReplayRunReport, other: ReplayRunReport, name: str) -> str:
    if name != "report_fragments":
        return f": {getattr(other, name)!r:.200} and {getattr(first, name)!r:.200}"
    only = [each for each in other.report_fragments if each not in first.report_fragments]
    missing = [each for each in first.report_fragments if each not in other.report_fragments]
    return f": {(only or ['nothing'])[0]!r:.200} for {(missing or ['nothing'])[0]!r:.200}"
