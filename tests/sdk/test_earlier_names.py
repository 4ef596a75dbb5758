"""Earlier names of public types and fields work for one more version, and say what to write instead."""

from __future__ import annotations

import dataclasses

import pytest

from holdfast import sdk
from holdfast.domain.transcript_turns import ConversationKey
from holdfast.errors import InvalidCall

RENAMED = {
    "Catalogue": "MemoryCapabilityCatalog",
    "RedactedSlice": "RedactedTranscriptSlice",
    "RedactionItem": "TranscriptRedactionReportItem",
    "RefVisibility": "HostRefVisibility",
    "ReplayAudit": "TranscriptReplayAudit",
}
KEY = ConversationKey("home", "chat", "1")


@pytest.mark.parametrize(("old", "new"), RENAMED.items())
def test_an_earlier_name_is_the_type_of_the_new_one_with_a_warning(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        assert getattr(sdk, old) is getattr(sdk, new)
    with pytest.warns(DeprecationWarning, match=new):
        exec(f"from holdfast.sdk import {old}")
    assert old not in sdk.__all__
    assert new in sdk.__all__


def test_the_parts_of_a_key_have_their_earlier_names_with_a_warning() -> None:
    assert [part.name for part in dataclasses.fields(KEY)] == ["memory_space_id", "channel_id", "conversation_id"]
    for old, new in (("space", "memory_space_id"), ("channel", "channel_id"), ("conversation", "conversation_id")):
        with pytest.warns(DeprecationWarning, match=f"ConversationKey.{old} is now {new}"):
            assert getattr(KEY, old) == getattr(KEY, new)
    with pytest.warns(DeprecationWarning, match=r"ConversationKey.channel is now channel_id"):
        assert sdk.ConversationKey("home", channel="chat", conversation_id="1") == KEY
    with pytest.raises(InvalidCall, match="nonsense"):
        sdk.ConversationKey("home", nonsense="chat")


def test_other_names_are_errors_and_json_has_the_new_ones() -> None:
    with pytest.raises(AttributeError, match="Nonsense"):
        sdk.Nonsense
    assert dataclasses.asdict(KEY) == {"memory_space_id": "home", "channel_id": "chat", "conversation_id": "1"}
