"""Tell whether tools and external content were used in the turns that a model learns from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority
from holdfast.ports import Reader, StoredResponse, Transaction
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.transcripts.candidate_writer import CitedMessage, EvidenceResolver
from holdfast.runtime.transcripts.turn_input import EXTERNAL_CONTENT_USED


class ToolContext(NamedTuple):
    """Without tools there is no procedure to learn. With external content, what is learned needs an approval."""

    tools: bool
    external: bool


def note_tool_use(
    transaction: Transaction, scope: Scope, message_ids: Sequence[str], use: ToolContext, now: datetime
) -> None:
    """Store what a host says of these messages, for the job that learns from them."""
    if any(use):
        key = _key(scope, message_ids)
        if transaction.records.response(scope.partition, key) is None:
            transaction.records.put_response(scope.partition, key, StoredResponse(key, json.dumps(use)), now)


def read_tool_use(reader: Reader, scope: Scope, message_ids: Sequence[str]) -> ToolContext:
    """Return what the host said, and what the messages themselves tell."""
    stored = reader.records.response(scope.partition, _key(scope, message_ids))
    stated = ToolContext(False, False) if stored is None else ToolContext(*json.loads(stored.body))
    evidence = EvidenceResolver(reader, scope)
    messages = [message for message in map(evidence.message, message_ids) if message is not None]
    grounds = [cited.ground for cited in map(evidence.cite, messages) if isinstance(cited, CitedMessage)]
    tools = any(message.role is Role.TOOL for message in messages)
    external = any(message.metadata.get(EXTERNAL_CONTENT_USED) for message in messages)
    return ToolContext(stated.tools or tools, stated.external or external or Authority.EXTERNAL_CONTENT in grounds)


def _key(scope: Scope, message_ids: Sequence[str]) -> str:
    return digest_of("tool_use", scope.given(), sorted(message_ids))
