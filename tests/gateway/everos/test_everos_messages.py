"""EverOS messages become drafts that hold all their content, and are returned as they were sent."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from holdfast.domain.memory import Evidence
from holdfast.domain.results import Hit, HitKind
from holdfast.domain.scope import Scope
from holdfast.domain.transcript import Draft, Message
from holdfast.errors import AccessDenied, InvalidInput
from holdfast.gateway.everos import presenters
from holdfast.gateway.everos.messages import drafts_of, to_unprocessed_message
from holdfast.gateway.everos.presenters import SessionNames, shorten
from holdfast.gateway.everos.schemas import MessageItem

NOW = datetime(2026, 5, 28, 11, 30, 36, tzinfo=UTC)


def item(**given: Any) -> MessageItem:
    return MessageItem.model_validate({"sender_id": "ana", "role": "user", "timestamp": 1, "content": "x", **given})


def call(name: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}


def kept(draft: Draft) -> Message:
    scope = Scope(subject="ana", app="a", project="p", conversation="c")
    return Message(
        "msg_1", "turn_1", scope, 0, draft.text, draft.sender, draft.role, draft.said_at or NOW, NOW, None, None,
        draft.metadata,
    )  # type: ignore[arg-type]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "one"}], "one"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two", "name": "n", "extras": {}}], "one\ntwo"),
    ],
)
def test_text_items_are_joined(content: Any, text: str) -> None:
    assert [draft.text for draft in drafts_of([item(content=content)], "ana")] == [text]


@pytest.mark.parametrize(
    ("timestamp", "moment"),
    [
        (1_779_967_836_125, datetime(2026, 5, 28, 11, 30, 36, 125_000, tzinfo=UTC)),
        (1_779_967_836, datetime(2026, 5, 28, 11, 30, 36, tzinfo=UTC)),
        (1, datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)),
    ],
)
def test_milliseconds_and_seconds_are_told_apart_as_everos_does(timestamp: int, moment: datetime) -> None:
    assert drafts_of([item(timestamp=timestamp)], "ana")[0].said_at == moment


def test_tool_calls_are_in_the_text_and_come_back_apart_from_it() -> None:
    calls = [call("weather", '{"at": "Porto"}'), call("news")]
    (draft,) = drafts_of([item(role="assistant", sender_id="bot", content="I look.", tool_calls=calls)], "ana")
    assert draft.text == 'I look.\nweather({"at": "Porto"})\nnews({})'
    told = to_unprocessed_message(kept(draft), "s")
    assert (told.content, told.tool_calls) == ("I look.", calls)


def test_calls_too_long_for_metadata_stay_in_the_text() -> None:
    long = json.dumps({"body": "word " * 2_000})
    (draft,) = drafts_of([item(role="assistant", content="", tool_calls=[call("write", long)])], "ana")
    assert draft.text == f"write({long})"
    told = to_unprocessed_message(kept(draft), "s")
    assert (told.content, told.tool_calls) == ("", None)


def test_two_tools_that_answer_the_same_are_two_messages_and_a_retry_is_none() -> None:
    def answers(*calls: str) -> list[str | None]:
        given = [item(role="tool", sender_id="t", content="ok", tool_call_id=call) for call in calls]
        return [draft.external_id for draft in drafts_of(given, "ana")]

    assert len(set(answers("c1", "c2"))) == 2
    assert answers("c1") == answers("c1")
    assert drafts_of([item()], "ana")[0].external_id is None


def test_a_message_that_says_nothing_is_passed_over_and_a_batch_of_them_refused() -> None:
    empty = item(role="tool", sender_id="t", content="", tool_call_id="c1")
    assert [draft.text for draft in drafts_of([item(content="said"), empty], "ana")] == ["said"]
    with pytest.raises(InvalidInput, match="all messages are empty"):
        drafts_of([empty], "ana")


def test_refusals_name_the_message() -> None:
    with pytest.raises(AccessDenied, match=r"messages\[1\]\.sender_id"):
        drafts_of([item(), item(sender_id="bob")], "ana")
    with pytest.raises(HTTPException, match=r"messages\[0\]\.content\[0\]\.type"):
        drafts_of([item(content=[{"type": "image", "uri": "https://example.org/x.png"}])], "ana")
    with pytest.raises(InvalidInput, match=r"messages\[0\]\.content"):
        drafts_of([item(content="a\0b")], "ana")


@pytest.mark.parametrize("odd", ["{", "5", '["x"]', "[" * 100_000])
def test_metadata_of_another_callers_is_no_tool_call(odd: str) -> None:
    message = kept(Draft("text", metadata={"tool_calls": odd[:4_000], "content_chars": "many"}))
    told = to_unprocessed_message(message, "s")
    assert (told.tool_calls, told.content) == (None, "text")


# --- episodes ---


def test_a_long_text_has_a_short_summary_and_a_shorter_subject() -> None:
    text = "  A first line of some length.\n" + "and more words " * 100
    hit = Hit("msg_1", HitKind.MESSAGE, text, 0.5, Scope(subject="ana"), (), NOW, NOW, "ana")
    told = presenters.found_episode(hit, SessionNames(None))
    assert (told.episode, told.subject) == (text, "A first line of some length.")
    assert told.summary.startswith("A first line of some length. and more")
    assert len(told.summary) <= 200
    assert told.summary.endswith("…")


@pytest.mark.parametrize("text", ["x" * 5_000, "word " * 2_000, "a\n" * 3_000, "x" * 199 + " y", "short", "é" * 200])
def test_a_text_is_cut_to_one_line(text: str) -> None:
    cut = shorten(text, 200)
    assert 0 < len(cut) <= 200
    assert cut == " ".join(cut.split())
    assert cut.removesuffix("…") in " ".join(text.split())


def test_a_memory_is_told_with_the_session_and_senders_of_its_evidence() -> None:
    evidence = tuple(Evidence(f"msg_{name}", "t", name, NOW, f"talk {name}") for name in ("ana", "bob", "ana"))  # type: ignore[arg-type]
    hit = Hit("mem_1", HitKind.MEMORY, "A fact.", 0.5, Scope(subject="ana"), evidence, NOW)
    told = presenters.found_episode(hit, SessionNames({"OR": [{"session_id": {"in": ["chat:talk ana"]}}]}))
    assert (told.session_id, told.sender_ids, told.timestamp) == (
        "chat:talk ana",
        ["ana", "bob"],
        "2026-05-28T11:30:36Z",
    )
    assert [fact.content for fact in told.atomic_facts] == ["A fact."]
