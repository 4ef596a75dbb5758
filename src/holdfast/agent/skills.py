"""Skills: instructions for one kind of task, each a folder with a `SKILL.md`, read when the agent starts.

A skill is as trusted as the configuration beside it. One that cannot be used is reported and left out; the others work.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from holdfast.errors import InvalidInput
from holdfast.skill_folders.document import MAX_BODY_BYTES, MAX_NAME_CHARS, Skill
from holdfast.skill_folders.reader import FolderReader, SkillProblem

_MAX_HEAD_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class Skills:
    """The usable skills by name, and the folders that could not be read as a skill."""

    found: Mapping[str, Skill] = field(default_factory=dict)
    problems: tuple[SkillProblem, ...] = ()

    def get_skill(self, name: str) -> Skill:
        """Return the skill. The error of an unknown name lists the known ones."""
        if name in self.found:
            return self.found[name]
        for each in self.problems:
            if each.folder == name:
                raise InvalidInput("skill", f"{name!r} cannot be used: {each.problem}")
        there_is = ", ".join(self.found) or "none"
        raise InvalidInput("skill", f"there is no skill named {name[:MAX_NAME_CHARS]!r}; there is {there_is}")


def read_skills(root: Path) -> Skills:
    """Read all skills directly under `root`, sorted by name. A missing folder has no skills."""
    reader = FolderReader(root, lambda source: source.skill, max_depth=1, max_bytes=_MAX_HEAD_BYTES + MAX_BODY_BYTES)
    try:
        scan = reader.scan()
    except (FileNotFoundError, NotADirectoryError):
        return Skills()
    except OSError as error:
        return Skills(problems=(SkillProblem(root.name, f"the folder cannot be read: {error.strerror}"),))
    return Skills({skill.name: skill for skill in scan.skills}, tuple(scan.problems))


def activation_text(skill: Skill) -> str:
    """Return the message that activates a skill: a label, then the instructions verbatim."""
    return f"[Skill: {skill.name}] These instructions are active for this task.\n\n{skill.body}"


def activate_skill_tool(activate: Callable[[str], str]) -> Callable[..., Awaitable[str]]:
    """Make the tool by which a model activates a skill for the run; `activate` does it and returns the answer."""

    async def activate_skill(
        name: Annotated[str, Field(min_length=1, max_length=64, description="The name of the skill.")],
    ) -> str:
        """Activate one of the skills that are listed for you. Its instructions then hold for the rest of this task."""
        return activate(name)

    return activate_skill
