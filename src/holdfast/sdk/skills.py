"""Runtime skills of a `MemoryRuntime`: list, show, edit, switch and delete. `write` makes them."""

from __future__ import annotations

from holdfast.domain.access import Action
from holdfast.domain.runtime_api.skills import (
    RuntimeSkillDeleteRequest,
    RuntimeSkillDetailReport,
    RuntimeSkillDetailRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillListReport,
    RuntimeSkillListRequest,
    RuntimeSkillMutationReport,
    RuntimeSkillSetEnabledRequest,
)
from holdfast.pending_call import pending_methods
from holdfast.runtime.skills.change_skills import DeleteSkill, EditSkill, SetSkillEnabled
from holdfast.runtime.skills.read_skills import GetSkill, ListSkills
from holdfast.sdk.operations import Operations, request_from


@pending_methods("runtime")
class SkillOperations(Operations):
    async def list_runtime_skills(self, request: RuntimeSkillListRequest | str | None = None) -> RuntimeSkillListReport:
        """List the runtime skills, the newest first. A text is the query."""
        options = (
            RuntimeSkillListRequest() if request is None else request_from(request, RuntimeSkillListRequest, "query")
        )
        return await self._perform(Action.LIST_SKILLS, lambda governance: ListSkills(governance, options))

    async def get_runtime_skill(self, request: RuntimeSkillDetailRequest | str) -> RuntimeSkillDetailReport:
        """Show a skill by its name: its text, citations, lineage and outcomes. Nothing is executed."""
        wanted = request_from(request, RuntimeSkillDetailRequest, "name")
        return await self._perform(Action.GET_SKILL, lambda governance: GetSkill(governance, wanted))

    async def edit_runtime_skill(self, request: RuntimeSkillEditRequest) -> RuntimeSkillMutationReport:
        """Give a skill a new text, as a revision."""
        return await self._perform(Action.EDIT_SKILL, lambda governance: EditSkill(governance, request))

    async def set_runtime_skill_enabled(self, request: RuntimeSkillSetEnabledRequest) -> RuntimeSkillMutationReport:
        """Switch a skill on or off. Only an operator enables one that needs an approval."""
        return await self._perform(Action.SET_SKILL_ENABLED, lambda governance: SetSkillEnabled(governance, request))

    async def delete_runtime_skill(self, request: RuntimeSkillDeleteRequest | str) -> RuntimeSkillMutationReport:
        """Delete a skill by its name, with its history."""
        wanted = request_from(request, RuntimeSkillDeleteRequest, "name")
        return await self._perform(Action.DELETE_SKILL, lambda governance: DeleteSkill(governance, wanted))
