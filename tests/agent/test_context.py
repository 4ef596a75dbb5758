"""The model's input: each part in its fixed place and nowhere else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.agent.context import ANSWERED, MAX_HISTORY_CHARS, PROMPTED, ContextBuilder, history_of
from holdfast.agent.ports import ModelMessage, Role, SessionEvent, ToolSpec
from holdfast.agent.result import Layer, MemorySource, content_words, explain
from holdfast.agent.skills import Skills, activation_text
from holdfast.skill_folders.document import Skill

LETTERS = Skill("letters", "Writing\nletters.", "Begin with the date.")
TOOLS = [ToolSpec(name, "…", {}) for name in ("memory", "session_search", "activate_skill", "weather")]


def event(number: int, run: str, kind: str, content: str = "") -> SessionEvent:
    role = {PROMPTED: Role.USER, ANSWERED: Role.ASSISTANT}.get(kind)
    return SessionEvent(
        number, "s", run, datetime(2026, 1, 1, tzinfo=UTC), kind, content or f"{kind} {run}", role, {}, True
    )


def history(events: list[SessionEvent], last: int = 40) -> list[str]:
    return [message.content for message in history_of(events, last=last)]


def test_the_order_is_system_skills_reference_history_prompt() -> None:
    built = ContextBuilder("Be brief.", Skills({"letters": LETTERS})).build_messages(
        "And now?",
        memory="About the user:\n- likes tea",
        tools=TOOLS,
        activated=[LETTERS],
        reference=[ModelMessage(Role.USER, "Reference: tea")],
        history=[ModelMessage(Role.USER, "Before?"), ModelMessage(Role.ASSISTANT, "Yes.")],
    )
    assert [message.role for message in built] == [
        Role.SYSTEM, Role.USER, Role.USER, Role.USER, Role.ASSISTANT, Role.USER,
    ]  # fmt: skip
    system, skill, *others = [message.content for message in built]
    assert others == ["Reference: tea", "Before?", "Yes.", "And now?"]
    assert skill == activation_text(LETTERS)
    assert system.startswith("Be brief.\n\nAbout the user:\n- likes tea\n\n")
    assert "Begin with the date." not in system


def test_tools_are_advised_only_if_they_are_there() -> None:
    builder = ContextBuilder("Be brief.", Skills({"letters": LETTERS}))
    assert builder.system_prompt("", []) == "Be brief."
    every = builder.system_prompt("", TOOLS)
    assert "- letters: Writing letters." in every
    assert "memory tool" in every
    one = builder.system_prompt("", TOOLS[1:2])
    assert "session_search" in one
    assert "letters" not in one
    assert "memory tool" not in one


def test_history_is_the_prompts_and_answers_of_runs_that_were_completed() -> None:
    events = [
        event(1, "a", PROMPTED), event(2, "a", ANSWERED), event(3, "failed", PROMPTED), event(4, "b", PROMPTED),
        event(5, "c", PROMPTED), event(6, "c", ANSWERED), event(7, "b", ANSWERED), event(8, "now", PROMPTED),
    ]  # fmt: skip
    told = ["user_message a", "assistant_message a", "user_message c", "assistant_message c"]
    assert history(events) == [*told, "user_message b", "assistant_message b"]


@given(st.integers(0, 12), st.integers(0, 20))
def test_history_holds_the_latest_whole_pairs(runs: int, last: int) -> None:
    kinds = (PROMPTED, ANSWERED)
    events = [event(2 * run + at, str(run), kind) for run in range(runs) for at, kind in enumerate(kinds)]
    kept = history(events, last)
    assert len(kept) == min(2 * runs, last - last % 2)
    assert kept == [each.content for each in events][len(events) - len(kept) :]


def test_an_answer_whose_prompt_was_not_read_is_left_out() -> None:
    assert history([event(2, "a", ANSWERED), event(3, "b", PROMPTED), event(4, "b", ANSWERED)]) == [
        "user_message b",
        "assistant_message b",
    ]


def test_a_history_too_long_to_be_shown_begins_later() -> None:
    long = "x" * (MAX_HISTORY_CHARS // 2)
    events = [event(1, "a", PROMPTED, long), event(2, "a", ANSWERED, "short"), event(3, "b", PROMPTED, long)]
    assert history([*events, event(4, "b", ANSWERED, "short")]) == [long, "short"]


# --- sources of an answer -------------------------------------------------------------------------------------------

DOG = MemorySource(Layer.CURATED, "The dog is called Rex.")
PARK = MemorySource(Layer.GATEWAY, "The dog park closes at nine.")
TEA = MemorySource(Layer.SESSIONS, "Green tea, please.")


def test_what_shares_words_with_the_answer_is_marked() -> None:
    told = explain("What is my dog called?", "Your dog is called Rex.", [DOG, PARK, TEA])
    assert [(source.text, source.shared) for source in told.used_sources] == [(DOG.text, ("rex",))]
    assert [source.text for source in told.of(Layer.GATEWAY)] == [PARK.text]


def test_words_of_the_prompt_count_if_there_are_no_others() -> None:
    told = explain("Is my dog called Rex?", "Yes, Rex.", [DOG, PARK])
    assert [source.text for source in told.used_sources] == [DOG.text]


def test_nothing_is_marked_if_nothing_is_shared() -> None:
    told = explain("How are you?", "Well, thanks.", [DOG, TEA])
    assert told.used_sources == ()
    assert len(told.sources) == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The Café is at 12 o'clock", {"cafe", "12", "clock"}),
        ("我住在里斯本", {"我", "住", "在", "里", "斯", "本"}),
        ("who are you", set()),
        ("", set()),
    ],
)
def test_words_are_compared_without_case_accents_and_what_says_nothing(text: str, words: set[str]) -> None:
    assert content_words(text) == words
