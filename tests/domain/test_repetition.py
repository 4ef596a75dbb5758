"""Statements that repeat, echo or change one another, and small talk."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.repetition import Reading, Statement, is_small_talk, only_asks, read_statement

SUBJECTS = ("The demo", "Our cat Momo", "Ana's flight", "the dentist of Paul", "Die Besprechung")
VERBS = ("is on", "moves to", "is cancelled on", "leaves from Porto on")
DAYS = ("3 May", "5 May", "Monday", "12.5.", "30 June at 15:00")
sentences = st.builds("{} {} {}".format, st.sampled_from(SUBJECTS), st.sampled_from(VERBS), st.sampled_from(DAYS))
anything = st.text(max_size=60) | sentences
speakers = st.sampled_from([None, "ana", "Ben"])


def repeat(one: str, other: str, *speakers: str | None) -> bool:
    first, second = speakers or (None, None)
    return read_statement(one, speaker=first).repeats(read_statement(other, speaker=second))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("I moved to Lisbon last week.", "I moved to Lisbon last week!"),
        ("I moved to Lisbon last week.", "Hey, again: I've moved to Lisbon last week"),
        ("We ship on 12 May.", "Reminder: we ship on 12 May."),
        ("The party is on 6 June.", "The party is on 6 June, don't forget!"),
        ("Das Treffen ist am 3. Mai.", "das Treffen ist am 3. Mai, bitte nicht vergessen"),
        ("我住在里斯本。", "我住在里斯本"),
    ],
)
def test_the_same_said_twice_is_a_repetition(one: str, other: str) -> None:
    assert repeat(one, other)


def test_a_memory_repeats_what_its_subject_said() -> None:
    assert repeat("Mia prefers tea over coffee.", "I prefer tea over coffee.", "mia", "Mia")
    assert not repeat("I live in Graz.", "I live in Graz.", "mia", "tom")
    assert not repeat("Mia lives in Graz.", "I live in Graz.", "mia", "tom")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The demo is on 3 May.", "The demo is on 5 May."),
        ("The demo is on 3 May.", "The demo is not on 3 May."),
        ("I like tea, not coffee.", "I like coffee, not tea."),
        ("I prefer tea over coffee.", "I prefer coffee over tea."),
        ("The flight goes from Porto to Rome.", "The flight goes to Porto from Rome."),
        ("Tell Jon about the party.", "Tell Jones about the party."),
        ("Christina likes tulips.", "Christine likes tulips."),
        ("The internal review is on Monday.", "The international review is on Monday."),
        ("His dentist is Dr. Gray.", "Her dentist is Dr. Gray."),
        ("I was a teacher.", "I am a teacher."),
        ("The dog chased the cat.", "The cat chased the dog."),
        ("El vuelo sale a las 3.", "El vuelo no sale a las 3."),
        ("我喜欢茶。", "我不喜欢茶。"),
    ],
)
def test_what_differs_in_a_number_a_name_an_order_or_a_negation_is_none(one: str, other: str) -> None:
    assert not repeat(one, other)
    assert not repeat(other, one)


@given(anything, anything, speakers, speakers)
@example("I live here", "ana lives here", "ana", None)
def test_repetition_is_symmetric(one: str, other: str, first: str | None, second: str | None) -> None:
    assert repeat(one, other, first, second) == repeat(other, one, second, first)


@given(anything, speakers)
def test_a_statement_repeats_itself_if_it_says_anything(text: str, speaker: str | None) -> None:
    read = read_statement(text, speaker=speaker)
    assert read.repeats(read) == bool(read.stems or read.numbers)
    assert not read.revises(read)
    assert read.adds_to(read) == 0


@given(sentences, st.integers(0, 10**6), st.integers(0, 10**6))
def test_texts_with_different_numbers_never_repeat_echo_or_merge(text: str, one: int, other: int) -> None:
    first, second = read_statement(f"{text} {one}"), read_statement(f"{text} {other}")
    assert first.repeats(second) == (one == other)
    assert one == other or not first.echoes(second)


@given(sentences)
def test_a_negation_never_repeats_nor_echoes_what_it_denies(text: str) -> None:
    plain, denied = (
        read_statement(text),
        read_statement(text.replace(" is ", " is not ").replace("moves", "never moves")),
    )
    if plain.is_negated != denied.is_negated:
        assert not plain.repeats(denied)
        assert not denied.echoes(plain)


@pytest.mark.parametrize(
    ("echo", "original", "expected"),
    [
        ("So you moved to Lisbon last week! How is it?", "I moved to Lisbon last week.", True),
        ("Nice to meet you, Mia! So you live in Graz with Tom and two kids.",
         "Hi! I'm Mia, I live in Graz with my husband Tom and our two kids.", True),
        ("Got it, Lena is 7 and Paul is 4. Anything else?", "Yes, Lena is 7 and Paul is 4.", True),
        ("Lena is 8 and Paul is 4.", "Lena is 7 and Paul is 4.", False),
        ("The museum is closed on Mondays; try the castle, the river cruise or the market instead.",
         "The museum is closed?", False),
    ],
)  # fmt: skip
def test_an_assistants_echo_has_few_words_of_its_own(echo: str, original: str, *, expected: bool) -> None:
    assert read_statement(echo).echoes(read_statement(original, speaker="mia")) is expected


@pytest.mark.parametrize(
    ("change", "plan", "expected"),
    [
        ("Change of plan: we now ship version 2 on 14 May.", "We ship version 2 on 12 May.", True),
        ("Small change: we ship version 2.4 on 14 May, not on 12 May.", "We ship version 2.4 on 12 May.", True),
        ("Actually the standup with Ben is on Tuesday.", "The standup with Ben is on Monday.", True),
        ("Das Treffen mit Eva ist jetzt am 5. Mai.", "Das Treffen mit Eva ist am 3. Mai.", True),
        # Another day without a word of a change may be another event.
        ("The dentist is on 5 May.", "The dentist is on 3 May.", False),
        ("Actually the standup with Eva is on Tuesday.", "The standup with Ben is on Monday.", False),
        ("Actually the demo laptop is booked until 5 June.", "The demo room is booked on 12 May.", False),
        ("Tell Ben the bus now leaves at 10.", "Tell Ben the train leaves at 9.", False),
        ("We now ship version 2 on 12 May.", "We ship version 2 on 12 May.", False),
    ],
)
def test_a_change_of_plan_announces_itself_and_keeps_the_names(change: str, plan: str, *, expected: bool) -> None:
    assert read_statement(change).revises(read_statement(plan)) is expected
    assert not read_statement(plan).revises(read_statement(change))


@given(anything, anything)
def test_of_two_statements_at_most_one_changes_the_other_if_one_has_a_word_of_a_change(one: str, other: str) -> None:
    first, second = read_statement(one), read_statement(other)
    if first.revises(second):
        assert first.announces_change
        assert first.names == second.names
        assert not first.repeats(second)


SMALL = [
    "Got it, thanks!", "ok", "👍", "haha", "Thanks, Ben!", "Great, thanks Ana!", "Good morning, everyone",
    "Never mind.", "Danke!", "Guten Morgen", "¡Muchas gracias!", "Merci beaucoup", "Tudo bem, obrigado",
    "Grazie mille, Anna!", "好的，谢谢", "ありがとうございます", "네, 감사합니다", "…", "See you later!",
]  # fmt: skip
NEWS = [
    "Hi, I'm Ana.", "It's Momo.", "Yes, Tuesday.", "Sure, Lisbon!", "Thanks, Tuesday works.",
    "Good morning from Lisbon",     "ok, 14 May", "No peanuts please", "I love you Ben and Jo", "Danke, Dienstag", "7",
    "我住在里斯本", "はい、東京です",
    "Thanks for the tulips!",
]  # fmt: skip


@pytest.mark.parametrize("text", SMALL)
def test_small_talk_is_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize("text", NEWS)
def test_news_is_no_small_talk(text: str) -> None:
    assert not is_small_talk(text)


@given(st.text(max_size=100))
def test_any_text_with_a_number_is_no_small_talk(text: str) -> None:
    assert not is_small_talk(f"{text} 5")


def test_a_message_that_only_asks_is_no_answer() -> None:
    question = Reading("When do we ship version 2?")
    for asked in ("What's my dog called?", "Hm, what? ", "¿Cómo se llama mi perro?", "Why?", "how old are they??"):
        assert only_asks(asked) is (not asked.startswith("Hm"))
    for told in (
        "Where did you stay in Lisbon?", "Shall I bring snacks on Friday?", "What? Momo ran away?", "How is Ana's leg?",
        "What a day.", "I moved. How about you?", "Did you feed the cat?", "When is the 2nd party?",
    ):  # fmt: skip
        assert not only_asks(told), told
    for asked in ("When do we ship version 2?", "when do we ship version 2 again??", "Hi, when do we ship version 2 ?"):
        assert only_asks(asked, question)
    for other in ("When do we ship version 3?", "We ship version 2.", "When do we ship version 2? On 12 May."):
        assert not only_asks(other, question)
    assert not only_asks("?", Reading("?"))


@given(st.text(max_size=5_000), speakers)
def test_any_text_can_be_read(text: str, speaker: str | None) -> None:
    assert isinstance(read_statement(text, speaker=speaker), Statement)
    is_small_talk(text)


@given(
    sentences,
    st.sampled_from(("{}", "Reminder: {}!", "Change of plan: {} now", "So {}, nice!", "hey, {} again")),
    sentences,
)
def test_statements_that_say_the_same_are_always_compared(one: str, frame: str, other: str) -> None:
    first, second = Reading(frame.format(one)), Reading(other)
    same = first.statement.repeats(second.statement) or first.statement.echoes(second.statement)
    if same or first.statement.revises(second.statement):
        assert first.may_compare(second)
