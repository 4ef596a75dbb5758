"""Build an agent from its configuration: a model, its sessions, its memory, its tools and its skills.

An invalid configuration is an error here, before any model call. A missing part (a gateway that the mode does not
require, a skill that cannot be read) is logged once as a warning, and the agent works without it.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from holdfast.agent.config import AgentConfig, read_config
from holdfast.agent.curated import MemoryService, memory_tool
from holdfast.agent.gateway import MemoryGatewayService
from holdfast.agent.memory import AgentMemory
from holdfast.agent.ports import ChatModel, SessionStore
from holdfast.agent.providers import open_model
from holdfast.agent.session_search import session_search_tool
from holdfast.agent.skills import Skills, activate_skill_tool, read_skills
from holdfast.agent.tools import Tool, ToolBox
from holdfast.app import open_sessions
from holdfast.errors import ConfigurationError, InvalidInput
from holdfast.loops import run_in_thread
from holdfast.settings import Settings, read_settings

if TYPE_CHECKING:
    from holdfast.agent.tool_reports import ToolReports

_logger = logging.getLogger("holdfast.agent")


@dataclass(frozen=True, slots=True)
class EngineLoadResult:
    """An agent that is ready to run. Close it, or use it as an async context manager."""

    config: AgentConfig
    model: ChatModel
    sessions: SessionStore
    memory_service: MemoryService | None
    memory_gateway_service: MemoryGatewayService | None
    memory: AgentMemory
    tools: ToolBox
    skills: Skills
    warnings: tuple[str, ...] = ()
    tool_reports: ToolReports | None = None
    _opened: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False, compare=False)

    async def close(self) -> None:
        """Close everything that loading opened. Idempotent."""
        await self._opened.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class EngineLoader:
    """Loads the agent that works in a folder.

    `config` replaces the config file. `model` replaces the configured model, and its owner closes it. `tools` are
    functions that the model may call, besides the agent's own. `tool_reports` tells a runtime how their calls went.
    """

    def __init__(
        self,
        workspace: Path | str | None = None,
        *,
        settings: Settings | None = None,
        config: AgentConfig | None = None,
        model: ChatModel | None = None,
        tools: Iterable[Callable[..., Any] | Tool] = (),
        tool_reports: ToolReports | None = None,
    ) -> None:
        self._workspace = workspace
        self._settings = settings
        self._config = config
        self._model = model
        self._tools = tuple(tools)
        self._tool_reports = tool_reports

    async def load(self) -> EngineLoadResult:
        settings = self._settings or read_settings()
        config = self._config
        if config is None:
            config = await run_in_thread(lambda: read_config(self._workspace, settings))
        skills, path = await run_in_thread(functools.partial(read_skills, config.skills_folder)), config.sessions
        _check_chosen(config, skills)
        async with AsyncExitStack() as opened:
            model = self._model
            if model is None:
                model = await run_in_thread(functools.partial(open_model, config, settings))
                opened.push_async_callback(model.close)
            sessions = await run_in_thread(lambda: open_sessions(path, settings))
            opened.push_async_callback(sessions.close)
            memory = AgentMemory.from_config(config)
            opened.push_async_callback(memory.close)
            loaded = EngineLoadResult(
                config=config,
                model=model,
                sessions=sessions,
                memory_service=memory.curated,
                memory_gateway_service=memory.gateway,
                memory=memory,
                tools=self._toolbox(memory.curated, sessions, skills),
                skills=skills,
                warnings=(*config.warnings, *map(str, skills.problems)),
                tool_reports=self._tool_reports,
                _opened=opened.pop_all(),
            )
        for warning in loaded.warnings:
            _logger.warning("%s", warning)
        return loaded

    def _toolbox(self, curated: MemoryService | None, sessions: SessionStore, skills: Skills) -> ToolBox:
        """Register the agent's own tools first. The loop rebinds those that belong to one run."""
        tools = ToolBox()
        if curated is not None:
            tools.register(memory_tool(curated))
        tools.register(session_search_tool(sessions, None))
        if skills.found:
            tools.register(activate_skill_tool(lambda name: f"{name} can be activated within a run only."))
        for each in self._tools:
            if isinstance(each, Tool):
                tools.add(each)
            else:
                tools.register(each)
        return tools


def _check_chosen(config: AgentConfig, skills: Skills) -> None:
    for name in config.skills:
        try:
            skills.get_skill(name)
        except InvalidInput as error:
            raise ConfigurationError(f"agent.skills: {error.problem}; skills are in {config.skills_folder}") from None
