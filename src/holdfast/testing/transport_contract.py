"""The conformance suite of transports: the same request gets the same answer, and leaves the same operation row.

Subclass `TransportContract` and define a fixture `served` that gives a factory: an asynchronous context manager of a
`TransportUnderTest`, each on a new store.

    class TestMyTransport(TransportContract):
        @pytest.fixture
        def served(self, tmp_path: Path) -> TransportFactory:
            @asynccontextmanager
            async def opened() -> AsyncIterator[TransportUnderTest]:
                …
                yield TransportUnderTest(send, service, read_rows, actor, governance)

            return opened

The suite sends every step of a conversation over the transport, and to the adapter in this process on the twin store
that the factory opens again. Ids and times are compared by their places.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.domain.access import Actor
from holdfast.domain.governance import Governance
from holdfast.domain.operations import Operation
from holdfast.ports import Service
from holdfast.transports.adapter import AdapterCaller, TransportAdapter
from holdfast.transports.decoder import operations
from holdfast.transports.envelope import AdapterEnvelope, EnvelopeAuth, EnvelopeSource

__all__ = ["TransportContract", "TransportFactory", "TransportUnderTest"]

Answer = Mapping[str, Any]
_OWN = ("request_id", "audit_id")


@dataclass(frozen=True, slots=True)
class TransportUnderTest:
    """A transport on a new store.

    `send` delivers an envelope as the transport does, and returns the response as JSON. `read_rows` returns all
    operation rows, oldest first. The transport calls `service` as `actor`, under `governance`; `operations` are those
    that it has.
    """

    send: Callable[[AdapterEnvelope], Awaitable[Answer]]
    service: Service
    read_rows: Callable[[], Awaitable[Sequence[Operation]]]
    actor: Actor
    governance: Governance
    operations: frozenset[str] = field(default_factory=lambda: frozenset(operations()))

    async def send_in_process(self, envelope: AdapterEnvelope) -> Answer:
        """Hand an envelope to the adapter itself."""
        caller = AdapterCaller(self.service, self.actor, self.governance.identity)
        known = replace(envelope, auth=EnvelopeAuth(True, "local", str(self.actor)))
        return (await TransportAdapter(self.governance).handle(caller, known)).to_dict()


TransportFactory = Callable[[], AbstractAsyncContextManager[TransportUnderTest]]

# --- the conversation -------------------------------------------------------------------------------------------------

_SOURCE = EnvelopeSource(source_id="conformance", source_kind="test", channel="local", chat_id="chat-1")
_TURN = {"turn_id": "turn-1", "messages": [{"text": "I moved to Lisbon last week.", "message_id": "m-1"}]}
_PROCEDURE = {
    "content": "1. Open the deployment page of the site.\n2. Press the button, and wait until the light is green.",
    "title": "Deploy the site",
    "topic": "deployment",
    "citations": ["runbook 7"],
}
_CANDIDATE = {"candidate_id": "c-1", "authority": "user_asserted", "content": "Ana lives in Lisbon."}
_SKILL = "runtime_skill__deploy_the_site"


def _step(operation: str, payload: Mapping[str, Any] | None = None, key: str | None = None) -> AdapterEnvelope:
    return AdapterEnvelope(
        operation, payload or {}, source=_SOURCE, request_id=f"request-{operation}", idempotency_key=key
    )


# Each changes only what the next ones expect.
CONVERSATION: tuple[AdapterEnvelope, ...] = (
    _step("capabilities"),
    _step("commit_transcript", {"turn": _TURN}, "key-commit"),
    _step("commit_transcript", {"turn": _TURN}, "key-commit"),
    _step("commit_transcript", {"turn": {**_TURN, "turn_id": "turn-2"}}, "key-commit"),
    _step("write", _PROCEDURE, "key-write"),
    _step("write", _PROCEDURE, "key-write"),
    _step("write", {"writes": [_PROCEDURE], "source": "task_learning"}, "key-writes"),
    _step("write", {"candidates": [_CANDIDATE]}, "key-candidate"),
    _step("recall", {"query": "Where does Ana live?"}),
    _step("recall", {"query": "Where does Ana live?", "limit": 1, "scope": {"chat_id": "elsewhere"}}),
    _step("project", {"query": "Where does Ana live?", "max_len": 1000}),
    _step("inspect", {"query": "Lisbon"}),
    _step("replay", {"chat_id": "chat-1"}),
    _step("replay_transcript", {"view": "host_ui"}),
    _step("export_transcript", {"limit": 4}),
    _step("repair_transcript"),
    _step("list_runtime_skills", {"query": "site"}),
    _step("get_runtime_skill", {"name": _SKILL}),
    _step("edit_runtime_skill", {"name": _SKILL, "title": "Deploy"}, "key-edit"),
    _step("set_runtime_skill_enabled", {"name": _SKILL, "enabled": False}, "key-switch"),
    _step("maintain", {}, "key-maintain"),
    _step("recover", {}, "key-recover"),
    _step("export", {"chat_id": "chat-1"}),
    _step("request_transcript_lifecycle", {"transition": "mask", "reason": "asked for"}, "key-mask"),
    _step("request_transcript_lifecycle", {"transition": "mask", "reason": "asked for"}, "key-mask"),
    _step("delete_runtime_skill", {"name": _SKILL}, "key-delete"),
    _step("delete_runtime_skill", {"name": _SKILL}, "key-delete"),
    _step("close", {"reason": "done"}),
)
# Each is refused, and changes nothing.
REFUSED: tuple[AdapterEnvelope, ...] = (
    _step("recall", {"query": "x", "operation": "write"}),
    _step("recall", {}),
    _step("recall", {"query": "x", "limt": 3}),
    _step("recall", {"query": "x", "limit": "three"}),
    _step("recall", {"query": " "}),
    _step("project", {"query": "x", "user_query": "y"}),
    _step("project", {"query": "x", "include_private": True}),
    _step("replay_transcript", {"view": "raw_owner_only"}),
    _step("replay_transcript", {"view": "nonsense"}),
    _step("export", {"chat_id": "no-such-chat"}),
    _step("write", _PROCEDURE),
    _step("write", {}, "key-empty"),
    _step("write", {"candidats": []}, "key-misspelt"),
    _step("write", {"tool_usage_feedback": {}}, "key-feedback"),
    _step("commit_transcript", {"turn": {"turn_id": "t"}}, "key-no-messages"),
    _step("import", {"snapshot": {"kind": "nonsense"}}, "key-import"),
    _step("import", {"snapshot": 3}, "key-import"),
    _step("get_runtime_skill", {"name": "runtime_skill__none"}),
)

# --- comparison -------------------------------------------------------------------------------------------------------

_ID = re.compile(r"\b(?:[a-z]{2,4}_)?[0-9a-f]{16,64}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z)")


def comparable(value: Any, places: dict[str, str] | None = None) -> Any:
    """Replace each id by the place of its first occurrence, and each time by a word."""
    known = {} if places is None else places
    if isinstance(value, str):
        text = _TIME.sub("<time>", value)
        return _ID.sub(lambda found: known.setdefault(found.group(), f"<id {len(known)}>"), text)
    if isinstance(value, Mapping):
        return {comparable(name, known): comparable(part, known) for name, part in value.items() if name not in _OWN}
    if isinstance(value, Sequence):
        return [comparable(part, known) for part in value]
    return value


def _facts(row: Operation) -> tuple[Any, ...]:
    return row.action, row.outcome, row.error_code, row.record_count, row.scope, row.actor


class TransportContract:
    """The promises of every transport. Subclass it and supply a `served` fixture: a factory of transports."""

    def test_a_conversation_has_the_answers_and_the_rows_that_it_has_in_process(self, served: TransportFactory) -> None:
        asyncio.run(_compare(served, CONVERSATION))

    def test_a_refusal_has_the_same_key_and_reason_and_leaves_the_same_row(self, served: TransportFactory) -> None:
        answers = asyncio.run(_compare(served, REFUSED))
        assert all(answer["status"] == "rejected" for answer in answers), [answer["status"] for answer in answers]

    def test_what_was_exported_is_imported(self, served: TransportFactory) -> None:
        async def move() -> None:
            async with served() as transport:
                if not {"export", "import", "commit_transcript"} <= transport.operations:
                    return
                await transport.send(_step("commit_transcript", {"turn": _TURN}, "key-commit"))
                exported = (await transport.send(_step("export", {"chat_id": "chat-1"})))["report"]
                for number, form in enumerate(("snapshot", "document")):
                    payload = {"snapshot": exported[form], "target_chat_id": f"chat-{form}"}
                    answer = await transport.send(_step("import", payload, f"key-{number}"))
                    assert answer["status"] == "accepted", answer
                    assert answer["report"]["taken"]["turns"] == 1

        asyncio.run(move())

    def test_a_repeated_key_is_answered_with_the_stored_report_and_has_one_effect(
        self, served: TransportFactory
    ) -> None:
        async def repeat() -> None:
            async with served() as transport:
                if "write" not in transport.operations:
                    return
                first, *others = [await transport.send(_step("write", _PROCEDURE, "one-key")) for _ in range(3)]
                assert first["status"] == "accepted"
                for again in others:
                    assert (again["status"], again["idempotency_key"]) == ("duplicated", "one-key")
                    assert again["report"] == first["report"]
                    assert again["audit_id"] == first["audit_id"]
                rows = await transport.read_rows()
                assert sum(row.record_count for row in rows if row.action == "write") == 1

        asyncio.run(repeat())

    def test_the_audit_id_is_that_of_the_operation_row_unless_the_sender_has_one(
        self, served: TransportFactory
    ) -> None:
        async def trace() -> None:
            async with served() as transport:
                answer = await transport.send(_step("recall", {"query": "anything"}))
                assert answer["request_id"] == "request-recall"
                assert answer["audit_id"] == (await transport.read_rows())[-1].id
                own = replace(_step("recall", {"query": "anything"}), audit_id="audit-7")
                assert (await transport.send(own))["audit_id"] == "audit-7"

        asyncio.run(trace())


async def _compare(served: TransportFactory, steps: Sequence[AdapterEnvelope]) -> list[Answer]:
    answers: list[Answer] = []
    async with served() as transport, served() as twin:
        for step in (each for each in steps if each.operation in transport.operations):
            answer, expected = await transport.send(step), await twin.send_in_process(step)
            assert comparable(answer) == comparable(expected), step.operation
            answers.append(answer)
        rows, expected_rows = await transport.read_rows(), await twin.read_rows()
        assert [_facts(row) for row in rows] == [_facts(row) for row in expected_rows]
        assert len(rows) == len(answers), "each envelope leaves one row"
    return answers
