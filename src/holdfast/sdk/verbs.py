"""The tables of a runtime's operations: their requests declare the arguments.

`VERBS` have a command. The conversation of a request is named by the options of every command, and `hidden` are
arguments that no command has. `OPERATIONS` are those that a transport's adapter dispatches.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.runtime_api.exchange import MemoryExportRequest, MemoryImportRequest
from holdfast.domain.runtime_api.retrieval import MemoryInspectionRequest, MemoryProjectionRequest, MemoryRecallRequest
from holdfast.domain.runtime_api.skills import (
    RuntimeSkillDeleteRequest,
    RuntimeSkillDetailRequest,
    RuntimeSkillEditRequest,
    RuntimeSkillListRequest,
    RuntimeSkillSetEnabledRequest,
    RuntimeSkillWrite,
)
from holdfast.domain.runtime_api.transcripts import (
    MemoryReplayRequest,
    MemoryTranscriptCommitRequest,
    MemoryTranscriptExportRequest,
    MemoryTranscriptLifecycleRequest,
    MemoryTranscriptRepairRequest,
    MemoryTranscriptReplayRequest,
)
from holdfast.domain.runtime_api.writing import (
    MemoryCloseRequest,
    MemoryMaintainRequest,
    MemoryRecoverRequest,
    MemoryWriteRequest,
)
from holdfast.runtime.verb_entry import VerbEntry

# A command has no host whose state or tools could matter.
_OF_HOSTS = ("mode_input", "tool_registry_refs")
_MAX_LEN = {"user_query": "query", "system_max_len": "max_len"}

VERBS: Mapping[str, VerbEntry] = {
    each.name: each
    for each in (
        VerbEntry("write_procedural", RuntimeSkillWrite),
        VerbEntry("recall", MemoryRecallRequest, hidden=_OF_HOSTS),
        VerbEntry("project", MemoryProjectionRequest, names=_MAX_LEN, hidden=_OF_HOSTS),
        VerbEntry("inspect", MemoryInspectionRequest, positional=("query",), names=_MAX_LEN, hidden=_OF_HOSTS),
        # The options of the conversation name the chat and its channel.
        VerbEntry("replay", MemoryReplayRequest, hidden=("chat_id", "channel")),
        VerbEntry("export", MemoryExportRequest, hidden=("chat_id", *_OF_HOSTS)),
        # `--input` names the file with the snapshot, and the options of the conversation its target.
        VerbEntry("import_", MemoryImportRequest, hidden=("snapshot", "target_chat_id", *_OF_HOSTS)),
        VerbEntry("list_runtime_skills", RuntimeSkillListRequest, positional=("query",)),
        VerbEntry("get_runtime_skill", RuntimeSkillDetailRequest),
        VerbEntry("edit_runtime_skill", RuntimeSkillEditRequest, names={"edit_reason": "reason"}),
        # `enable` and `disable` are commands.
        VerbEntry("set_runtime_skill_enabled", RuntimeSkillSetEnabledRequest, hidden=("enabled",)),
        VerbEntry("delete_runtime_skill", RuntimeSkillDeleteRequest),
        VerbEntry("close", MemoryCloseRequest),
    )
}

_WRITTEN = {"given": "candidates", "extraction": "long_term_extraction", "tool_feedback": "tool_usage_feedback"}

_SHARED = (
    *("recall", "project", "inspect", "replay", "export", "import_", "close"),
    *("list_runtime_skills", "get_runtime_skill", "edit_runtime_skill"),
    *("set_runtime_skill_enabled", "delete_runtime_skill"),
)

# `capabilities` takes no request. All of a request's arguments count, also those that no command has.
OPERATIONS: Mapping[str, VerbEntry] = {
    each.name: each
    for each in (
        VerbEntry("write", MemoryWriteRequest, names=_WRITTEN),
        *(VERBS[name] for name in _SHARED),
        VerbEntry("maintain", MemoryMaintainRequest),
        VerbEntry("recover", MemoryRecoverRequest),
        VerbEntry("commit_transcript", MemoryTranscriptCommitRequest),
        VerbEntry("replay_transcript", MemoryTranscriptReplayRequest),
        VerbEntry("request_transcript_lifecycle", MemoryTranscriptLifecycleRequest),
        VerbEntry("repair_transcript", MemoryTranscriptRepairRequest),
        VerbEntry("export_transcript", MemoryTranscriptExportRequest),
        VerbEntry("capabilities", None),
    )
}
