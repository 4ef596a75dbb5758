"""Continuity snapshots as documents: canonical JSON with a fingerprint, and reading it back with full validation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.domain.archive_format import (
    ArchivedMemory,
    ArchivedTurn,
    encode_fields,
    is_private,
    is_withheld,
    read_memory,
    read_turn,
)
from holdfast.domain.canonical import canonical, fingerprint
from holdfast.domain.checks import checked_flag, checked_text
from holdfast.domain.ids import MessageId, checked_id
from holdfast.domain.memory import Plane
from holdfast.domain.runtime_api.exchange import (
    NOT_BUILT,
    ContinuitySnapshot,
    ExecutionState,
    SnapshotManifest,
    SummaryLine,
    TransferMode,
)
from holdfast.domain.scope import Scope, check_part
from holdfast.domain.times import checked_iso_time
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority, TranscriptState, checked_member
from holdfast.errors import InvalidInput, InvalidSnapshot

KIND = "holdfast_continuity"
VERSION = 1
MOST_MEMORIES = {TransferMode.BOOTSTRAP: 16, TransferMode.FULL_RESTORE: 48}
SUMMARY_LINES = 8
SUMMARY_CHARS = 240
_SUMMARY_HEAD = "What was said last in "
MOST_TURNS = 1_000
_ROOM = 256  # bytes for the time and the fingerprint, which are not part of the content
_ORIGIN = {"space", "subject", "agent", "channel"}
_SELF = ("self_model", "self_authored_core", "core_revision_ledger", "self_continuity", "relationship_experience")


def build_snapshot(
    mode: TransferMode,
    thread: Scope,
    memories: tuple[ArchivedMemory, ...],
    turns: tuple[ArchivedTurn, ...],
    *,
    includes_private: bool,
    exported_at: datetime,
    most_bytes: int,
) -> ContinuitySnapshot:
    """Build a snapshot of at most `most_bytes`: the oldest turns are dropped first, then the oldest memories."""
    full = mode is TransferMode.FULL_RESTORE
    truncated = False
    while True:
        manifest = SnapshotManifest(
            content_fingerprint="",
            counts={"long_term_memory": len(memories), "turns": len(turns) if full else 0},
            includes_private=includes_private,
            includes_execution_state=full,
            truncated=truncated,
        )
        made = ContinuitySnapshot(
            version=VERSION,
            exported_at=exported_at,
            mode=mode,
            chat_id=thread.conversation or "",
            origin=_origin(thread),
            manifest=manifest,
            summary=_summary(turns),
            long_term_memory=memories,
            execution_state=ExecutionState(turns) if full else None,
        )
        content = _content(made)
        if len(canonical(content)) + _ROOM <= most_bytes or not (turns or memories):
            return replace(made, manifest=replace(manifest, content_fingerprint=fingerprint(content)))
        truncated = True
        if turns:
            turns = turns[max(len(turns) // 8, 1) :]
        else:
            memories = memories[: -max(len(memories) // 8, 1)]


def to_document(snapshot: ContinuitySnapshot) -> str:
    """Return the snapshot as JSON; equal snapshots give the same text."""
    content = _content(snapshot)
    content["exported_at"] = snapshot.exported_at.isoformat()
    content["manifest"]["content_fingerprint"] = snapshot.manifest.content_fingerprint
    return canonical(content).decode()


def open_summary(snapshot: ContinuitySnapshot) -> tuple[SummaryLine, ...]:
    """Return the lines that anybody who reads the conversation may recall.

    A line without an authority may be private, if the snapshot includes private content.
    """
    if snapshot.manifest.includes_private:
        return tuple(line for line in snapshot.summary if line.authority is not None and not _is_private_line(line))
    return snapshot.summary


def _is_private_line(line: SummaryLine) -> bool:
    return line.authority is not None and is_withheld(line.authority)


def summary_text(chat_id: str, lines: Iterable[SummaryLine]) -> str:
    """Return the text of the episode that a bootstrap stores in the place of the turns."""
    said = "\n".join(f"{line.role}: {line.text}" for line in lines)
    return f"{_SUMMARY_HEAD}{chat_id}:\n{said}"


def is_summary(plane: Plane, text: str) -> bool:
    """True for such an episode. It holds raw text of a transcript."""
    return plane is Plane.EPISODE and text.startswith(_SUMMARY_HEAD)


def read_snapshot(given: object, space: str, most_bytes: int) -> ContinuitySnapshot:
    """Read an external snapshot for that space; raises `InvalidSnapshot` unless every part is valid."""
    if isinstance(given, ContinuitySnapshot):
        given = to_document(given)
    raw = given.encode(errors="replace") if isinstance(given, str) else given
    if isinstance(raw, bytes):
        _check_size(len(raw), most_bytes)
        try:
            raw = json.loads(raw)
        except (ValueError, RecursionError):
            raw = None
    if not isinstance(raw, Mapping):
        raise InvalidSnapshot("snapshot", "is not a JSON object; give a snapshot as it was exported")
    try:
        found = _read(raw, space)
        size = len(canonical(_content(found)))
    except InvalidInput as error:
        problem = error
    except (TypeError, ValueError, RecursionError):
        problem = InvalidInput("snapshot", "holds a value that cannot be read; export it again")
    else:
        _check_size(size, most_bytes)
        return found
    raise InvalidSnapshot(problem.field, problem.problem)


def _check_size(size: int, most: int) -> None:
    if size > most:
        raise InvalidSnapshot("snapshot", f"has {size:,} bytes; this profile accepts at most {most:,}")


def _origin(thread: Scope) -> dict[str, str]:
    """Return the owner and the channel, which decide whether an import can keep ids."""
    return {name: value for name, value in thread.given().items() if name in _ORIGIN}


def _summary(turns: tuple[ArchivedTurn, ...]) -> tuple[SummaryLine, ...]:
    """Begin the last messages that are not private: what a bootstrap makes of them is recalled by everybody."""
    said = [
        SummaryLine(
            message.role.value,
            " ".join(message.text.split())[:SUMMARY_CHARS],
            MessageId(message.id),
            message.authority,
        )
        for turn in turns
        if turn.state is TranscriptState.ACTIVE
        for message in turn.messages
        if message.text is not None and not is_withheld(message.authority)
    ]
    return tuple(said[-SUMMARY_LINES:])


def _content(snapshot: ContinuitySnapshot) -> dict[str, Any]:
    manifest = snapshot.manifest
    state = snapshot.execution_state
    return {
        "kind": KIND,
        "version": snapshot.version,
        "mode": snapshot.mode.value,
        "chat_id": snapshot.chat_id,
        "origin": dict(snapshot.origin),
        "manifest": {
            "counts": dict(manifest.counts),
            "includes_private": manifest.includes_private,
            "includes_execution_state": manifest.includes_execution_state,
            "truncated": manifest.truncated,
        },
        "summary": [_encode_line(line) for line in snapshot.summary],
        "long_term_memory": [encode_fields(memory) for memory in snapshot.long_term_memory],
        "execution_state": None if state is None else {"turns": [encode_fields(turn) for turn in state.turns]},
        **{name: list(getattr(snapshot, name)) for name in _SELF},
        "self_reason": snapshot.self_reason,
    }


def _encode_line(line: SummaryLine) -> dict[str, str]:
    authority = {} if line.authority is None else {"authority": line.authority.value}
    return {"role": line.role, "text": line.text, "id": line.message_id, **authority}


def _read(raw: Mapping[str, Any], space: str) -> ContinuitySnapshot:
    if raw.get("kind") != KIND:
        raise InvalidInput("kind", f"this is not a continuity snapshot of Holdfast: expected {KIND}")
    if raw.get("version") != VERSION or isinstance(raw["version"], bool):
        raise InvalidInput("version", f"must be {VERSION}, not {raw.get('version')!r:.40}")
    mode = checked_member(TransferMode, raw.get("mode"), "mode")
    check_part("chat_id", raw.get("chat_id"))
    state = raw.get("execution_state")
    if (state is not None) is not (mode is TransferMode.FULL_RESTORE):
        raise InvalidInput("execution_state", f"must {'' if state is None else 'not '}be present in a {mode} snapshot")
    found = ContinuitySnapshot(
        version=VERSION,
        exported_at=checked_iso_time(raw.get("exported_at"), "exported_at"),
        mode=mode,
        chat_id=raw["chat_id"],
        origin=_read_origin(raw.get("origin")),
        manifest=_read_manifest(raw.get("manifest")),
        summary=tuple(_read_line(line) for line in _list(raw, "summary", SUMMARY_LINES)),
        long_term_memory=tuple(
            read_memory(memory, space) for memory in _list(raw, "long_term_memory", MOST_MEMORIES[mode])
        ),
        execution_state=None if state is None else _read_state(state, space),
        self_reason=NOT_BUILT,
    )
    _check_content(found, raw)
    return found


def _check_content(found: ContinuitySnapshot, raw: Mapping[str, Any]) -> None:
    """Check that the parsed snapshot is the whole input, and matches the fingerprint."""
    content = _content(found)
    original = {name: value for name, value in raw.items() if name not in ("exported_at", "manifest")}
    if canonical(original) != canonical({name: value for name, value in content.items() if name != "manifest"}):
        raise InvalidInput("snapshot", "has unknown parts, or was changed after the export")
    if fingerprint(content) != found.manifest.content_fingerprint:
        raise InvalidInput("manifest.content_fingerprint", "does not match the content; the snapshot is damaged")
    turns = () if found.execution_state is None else found.execution_state.turns
    if dict(found.manifest.counts) != {"long_term_memory": len(found.long_term_memory), "turns": len(turns)}:
        raise InvalidInput("manifest.counts", "do not match the content")
    private = any(map(is_private, found.long_term_memory)) or any(map(is_private, turns))
    if (private or any(map(_is_private_line, found.summary))) and not found.manifest.includes_private:
        raise InvalidInput("manifest.includes_private", "is false, but the snapshot holds private content")


def _read_origin(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping) or not {"space"} <= set(value) <= _ORIGIN:
        raise InvalidInput("origin", "must have the space; subject, agent and channel are optional")
    for name, part in value.items():
        check_part(f"origin.{name}", part)
    return dict(value)


def _read_manifest(value: object) -> SnapshotManifest:
    names = {"content_fingerprint", "counts", "includes_private", "includes_execution_state", "truncated"}
    if not isinstance(value, Mapping) or set(value) != names or not isinstance(value["counts"], Mapping):
        raise InvalidInput("manifest", f"must have {', '.join(sorted(names))}")
    return SnapshotManifest(
        content_fingerprint=checked_text(value["content_fingerprint"], "manifest.content_fingerprint", max_chars=64),
        counts=dict(value["counts"]),
        includes_private=checked_flag(value["includes_private"], "manifest.includes_private"),
        includes_execution_state=checked_flag(value["includes_execution_state"], "manifest.includes_execution_state"),
        truncated=checked_flag(value["truncated"], "manifest.truncated"),
    )


def _read_line(value: object) -> SummaryLine:
    if not isinstance(value, Mapping) or set(value) - {"authority"} != {"role", "text", "id"}:
        raise InvalidInput("summary", "each line must have a role, a text, the id of its message and its authority")
    role = checked_member(Role, value["role"], "summary.role")
    text = checked_text(value["text"], "summary.text", max_chars=SUMMARY_CHARS)
    named = "authority" in value
    authority = checked_member(Authority, value["authority"], "summary.authority") if named else None
    return SummaryLine(role.value, text, MessageId(checked_id(value["id"], "summary.id")), authority)


def _read_state(value: object, space: str) -> ExecutionState:
    if not isinstance(value, Mapping) or set(value) != {"turns"}:
        raise InvalidInput("execution_state", "must have turns and nothing else")
    return ExecutionState(tuple(read_turn(turn, space) for turn in _list(value, "turns", MOST_TURNS)))


def _list(value: Mapping[str, Any], name: str, most: int) -> list[Any]:
    found = value.get(name)
    if not isinstance(found, list) or len(found) > most:
        raise InvalidInput(name, f"must be a list of at most {most:,}")
    return found
