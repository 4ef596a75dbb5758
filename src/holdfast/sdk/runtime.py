"""`MemoryRuntime`: a host's runtime that owns one memory. Asynchronous, with a blocking facade."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Generator
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from holdfast.app import make_curator, open_engine
from holdfast.domain.access import Action, authorize
from holdfast.domain.agent_skills import DIRECTORIES_UNAVAILABLE, AgentSkillDirectoryReport, ScanSkills
from holdfast.domain.call_errors import explain_arguments
from holdfast.domain.capabilities import MemoryCapabilityCatalog, catalogue
from holdfast.domain.governance import Governance
from holdfast.domain.location import is_server_url
from holdfast.domain.profiles import backend_of, checked_backend, profile_of, with_budgets
from holdfast.domain.runtime_api.writing import MemoryCloseReport, MemoryCloseRequest
from holdfast.errors import InvalidInput
from holdfast.loops import BlockingFacade, blocking, inline
from holdfast.opening import validate_location
from holdfast.pending_call import pending_methods
from holdfast.runtime.transcripts.capabilities import ShowCapabilities
from holdfast.sdk.builder import MemoryRuntimeBuilder, Openable, Plan
from holdfast.sdk.retrieval import RetrievalOperations
from holdfast.sdk.skills import SkillOperations
from holdfast.sdk.transcripts import TranscriptOperations
from holdfast.sdk.transfer import TransferOperations
from holdfast.sdk.writing import WritingOperations
from holdfast.settings import read_settings
from holdfast.skill_folders.mounts import SkillMounts


@pending_methods("runtime")
class AsyncMemoryRuntime(
    TranscriptOperations,
    RetrievalOperations,
    WritingOperations,
    SkillOperations,
    TransferOperations,
    Openable["RuntimeOpening"],
):
    """Every operation takes a request, returns a report, and writes one operation row, also if it fails."""

    _closed = False

    @classmethod
    def builder(cls) -> MemoryRuntimeBuilder[RuntimeOpening]:
        """`async with AsyncMemoryRuntime.builder().store("memory.db").open() as runtime: …`"""
        return MemoryRuntimeBuilder(RuntimeOpening)

    @property
    def _sync_safe(self) -> bool:
        return self._service.sync_safe

    async def capabilities(self) -> MemoryCapabilityCatalog:
        """List what this runtime can do, and why the rest is unavailable."""
        return await self._perform(Action.CAPABILITIES, ShowCapabilities)

    async def close(self, request: MemoryCloseRequest | str | None = None) -> MemoryCloseReport:
        """Record the end, then close the store. Every later call raises `StoreClosed`."""
        self._closed = True
        try:
            return await super().close(request)
        finally:
            await self._service.close()

    async def _leave(self) -> None:
        """Close the store without a record of the end."""
        await self._service.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._closed:
            await self.close()


class RuntimeOpening:
    """The result of an asynchronous builder's `open`: await it, or use it with `async with`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._runtime: AsyncMemoryRuntime | None = None

    async def open_runtime(self, *, manifest: bool = True) -> AsyncMemoryRuntime:
        """Open the runtime. Without `manifest`, that of the store is neither written nor checked."""
        plan = self._plan
        location = validate_location(plan.location)
        if is_server_url(location):
            raise InvalidInput(
                "store", "is a server's address; a runtime opens a store: a path, :memory: or PostgreSQL"
            )
        # Refuse an unauthorized actor before anything is opened.
        authorize(plan.actor, Action.CAPABILITIES, plan.identity.scope)
        profile = with_budgets(profile_of(plan.profile), plan.budget)
        backend = checked_backend(profile, backend_of(location, plan.backend))
        settings = plan.settings or read_settings()
        model = plan.model
        model_options = (None, None, None) if model is None else (model.name, model.url, model.key)
        curator = make_curator(settings, *model_options, max_chars=profile.budget.maintenance_chars)
        maintains = curator is not None and "maintain" in (settings.asked_verbs or {"maintain"})
        governance = make_governance(plan, settings.skill_folders, model=maintains)
        engine = await open_engine(
            location,
            settings,
            embedder=plan.embedder,
            clock=plan.clock,
            new_ids=plan.new_ids,
            curator=curator,
            work=False,
        )
        try:
            if manifest:
                await engine.present(profile, backend, plan.identity.space)
        except BaseException:
            await engine.close()
            raise
        if plan.work:
            engine.start_worker()
        return AsyncMemoryRuntime(engine, plan.actor, governance)

    def __await__(self) -> Generator[Any, None, AsyncMemoryRuntime]:
        return self.open_runtime().__await__()

    async def __aenter__(self) -> AsyncMemoryRuntime:
        self._runtime = await self.open_runtime()
        return self._runtime

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runtime is not None:
            await self._runtime.__aexit__(kind, error, trace)


@contextlib.asynccontextmanager
async def visit_store(plan: Plan) -> AsyncIterator[AsyncMemoryRuntime]:
    """Open a runtime for a single call: the store gets no manifest by it, and its log no end of a runtime."""
    runtime = await RuntimeOpening(replace(plan, work=False)).open_runtime(manifest=False)
    try:
        yield runtime
    finally:
        await runtime._leave()


def make_governance(plan: Plan, skill_folders: tuple[str, ...], *, model: bool) -> Governance:
    """Decide what a runtime may do. `skill_folders` are those of the settings; `model`: one is configured."""
    profile = with_budgets(profile_of(plan.profile), plan.budget)
    capabilities = catalogue(profile, plan.circumstances(model=model))
    governance = Governance(plan.identity, profile, capabilities, plan.switched_off)
    return replace(governance, scan_skills=_mount_skills(plan, skill_folders, governance))


def _mount_skills(plan: Plan, skill_folders: tuple[str, ...], governance: Governance) -> ScanSkills | None:
    folders = skill_folders if plan.agent_skill_dirs is None else plan.agent_skill_dirs
    if not folders:
        return None
    if plan.agent_skill_dirs is not None:
        governance.require("agent_skill_directories")
    if not governance.catalogue["agent_skill_directories"].visible:
        # The settings are for all runtimes of the machine: one that can mount nothing works without.
        return lambda: AgentSkillDirectoryReport(reason=DIRECTORIES_UNAVAILABLE)
    return SkillMounts(folders).scan


class MemoryRuntime(BlockingFacade[AsyncMemoryRuntime], Openable["MemoryRuntime"]):
    """The blocking facade of a runtime. See `AsyncMemoryRuntime` for its methods."""

    _opened_by = 'MemoryRuntime.open("memory.db", subject="ana")'
    _opened_async_by = 'async with AsyncMemoryRuntime.open("memory.db", subject="ana") as runtime'

    @classmethod
    def builder(cls) -> MemoryRuntimeBuilder[MemoryRuntime]:
        """`with MemoryRuntime.builder().store("memory.db").identity(subject_id="ana").open() as runtime: …`"""
        return MemoryRuntimeBuilder(lambda plan: cls(RuntimeOpening(plan).open_runtime))

    capabilities = inline(AsyncMemoryRuntime.capabilities)
    write = blocking(AsyncMemoryRuntime.write)
    recall = inline(AsyncMemoryRuntime.recall)
    project = inline(AsyncMemoryRuntime.project)
    maintain = blocking(AsyncMemoryRuntime.maintain)
    inspect = inline(AsyncMemoryRuntime.inspect)
    replay = inline(AsyncMemoryRuntime.replay)
    export = blocking(AsyncMemoryRuntime.export)
    import_ = blocking(AsyncMemoryRuntime.import_)
    recover = blocking(AsyncMemoryRuntime.recover)
    list_runtime_skills = inline(AsyncMemoryRuntime.list_runtime_skills)
    get_runtime_skill = inline(AsyncMemoryRuntime.get_runtime_skill)
    edit_runtime_skill = blocking(AsyncMemoryRuntime.edit_runtime_skill)
    set_runtime_skill_enabled = blocking(AsyncMemoryRuntime.set_runtime_skill_enabled)
    delete_runtime_skill = blocking(AsyncMemoryRuntime.delete_runtime_skill)
    commit_transcript = inline(AsyncMemoryRuntime.commit_transcript)
    finalize_turn_and_maintain = blocking(AsyncMemoryRuntime.finalize_turn_and_maintain)
    replay_transcript = inline(AsyncMemoryRuntime.replay_transcript)
    request_transcript_lifecycle = blocking(AsyncMemoryRuntime.request_transcript_lifecycle)
    repair_transcript = blocking(AsyncMemoryRuntime.repair_transcript)
    export_transcript = blocking(AsyncMemoryRuntime.export_transcript)
    export_space = blocking(AsyncMemoryRuntime.export_space)
    import_space = blocking(AsyncMemoryRuntime.import_space)

    @explain_arguments
    def close(self, request: MemoryCloseRequest | str | None = None) -> MemoryCloseReport | None:
        """Record the end, then close the store. Returns None if it was already closed."""
        report: MemoryCloseReport | None = self._close_behind(request)
        return report
