"""The folders of skills that a runtime has mounted. Each scan reads only what changed since the one before."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from threading import Lock

from holdfast.domain.agent_skills import (
    NO_SKILL,
    SUMMARY_CHARS,
    AgentSkill,
    AgentSkillDirectory,
    AgentSkillDirectoryReport,
    InvalidAgentSkill,
    fnv1a64,
    shorten_text,
)
from holdfast.domain.visible_text import one_line
from holdfast.skill_folders.document import UnusableSkill
from holdfast.skill_folders.reader import MAX_SKILLS, FolderReader, FolderScan, SkillDocument, SkillProblem

MAX_DEPTH = 4
MAX_DOCUMENT_BYTES = 24 * 1024
_MAX_SHOWN_CHARS = 80


class SkillMounts:
    """Mounted folders. A missing one is reported, and read when it is there. Safe to use from several threads."""

    def __init__(self, folders: Iterable[str], now_ns: Callable[[], int] = time.time_ns) -> None:
        roots = dict.fromkeys(os.path.abspath(folder) for folder in folders)
        self._readers = [(_short_name(root), _make_reader(root, now_ns)) for root in roots]
        self._lock = Lock()

    def scan(self) -> AgentSkillDirectoryReport:
        """Return the skills of all folders, in the order in which they were mounted; 256 of them at most."""
        directories: list[AgentSkillDirectory] = []
        skills: list[AgentSkill] = []
        invalid: list[InvalidAgentSkill] = []
        room = MAX_SKILLS
        with self._lock:
            for shown, reader in self._readers:
                found = _scan(reader, room)
                room -= found.documents
                skills += found.skills
                invalid += (InvalidAgentSkill(shown, each.folder, each.problem) for each in found.problems)
                directories.append(AgentSkillDirectory(shown, len(found.skills), len(found.problems)))
        return AgentSkillDirectoryReport(
            tuple(directories), tuple(skills), tuple(invalid), reason=None if skills else NO_SKILL
        )


def _short_name(root: str) -> str:
    """Return the name of a folder without the path to it, which is the host's own matter."""
    return f".../{one_line(os.path.basename(root))[:_MAX_SHOWN_CHARS]}"


def _make_reader(root: str, now_ns: Callable[[], int]) -> FolderReader[AgentSkill]:
    summarize = partial(_summarize, _short_name(root))
    return FolderReader(Path(root), summarize, max_depth=MAX_DEPTH, max_bytes=MAX_DOCUMENT_BYTES, now_ns=now_ns)


def _scan(reader: FolderReader[AgentSkill], room: int) -> FolderScan[AgentSkill]:
    try:
        return reader.scan(room)
    except FileNotFoundError:
        problem = "there is no such folder; create it, or mount another"
    except NotADirectoryError:
        problem = "is a file; mount the folder that holds the skills' folders"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    return FolderScan([], [SkillProblem(".", problem)], 0)


def _summarize(directory: str, source: SkillDocument) -> AgentSkill:
    skill, resources = source.skill, source.resources
    description = one_line(skill.description)
    if not description:
        raise UnusableSkill("has a description of hidden characters alone")
    parts = (source.document, *(str(count) for count in resources.values()))
    return AgentSkill(
        name=skill.name,
        description=description,
        body_summary=shorten_text(one_line(skill.body), SUMMARY_CHARS),
        directory=directory,
        path=one_line(source.path),
        scripts=resources["scripts"],
        references=resources["references"],
        assets=resources["assets"],
        fingerprint=fnv1a64(part.encode() for part in parts),
    )
