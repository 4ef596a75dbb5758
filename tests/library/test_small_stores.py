"""A newcomer's first records: a question about them finds the answer, a question about the world recalls nothing."""

from __future__ import annotations

import pytest

import holdfast
from holdfast.search.embedders.static import StaticEmbedder

# Per record, a question in the first person, and one that names the owner.
OWN = {
    "I live in Lisbon.": ("Where do I live?", "Where does Ana live?"),
    "I work as a nurse at the city hospital.": ("What is my job?", "Where does Ana work?"),
    "My sister Marta is getting married in June.": ("When is my sister's wedding?", "When does Marta get married?"),
    "I am allergic to peanuts.": ("What am I allergic to?", "What is Ana allergic to?"),
    "My dog is called Bruno.": ("What is my dog called?", "What's the name of Ana's dog?"),
    "I started learning the cello last winter.": ("Which instrument am I learning?", "What instrument does Ana play?"),
    "We are flying to Oslo on 12 March.": ("When do we fly to Oslo?", "Where is Ana flying in March?"),
    "I drive an old blue Volvo.": ("What car do I drive?", "What does Ana drive?"),
    "My favourite food is lasagne.": ("What is my favourite food?", "What is Ana's favourite food?"),
    "I quit smoking two years ago.": ("When did I quit smoking?", "Does Ana smoke?"),
}
OFFICE = {
    "The printer on the third floor is broken again.": "What is broken?",
    "The budget was approved: 84,000 euros.": "How much is the budget?",
    "We ship the portal on 5 May.": "When do we ship?",
    "The team lunch is on Thursday at noon.": "When is the team lunch?",
}
FOREIGN = (
    "What is the capital of Mongolia?",
    "Who painted the Sistine Chapel?",
    "How tall is the Eiffel Tower?",
    "Who won the Nobel Prize in chemistry in 1911?",
)


@pytest.mark.parametrize("records", [1, 2, 3, 5, 10])
def test_the_first_records_of_a_person_answer_their_questions_and_no_others(
    records: int, static_embedder: StaticEmbedder
) -> None:
    with holdfast.open(":memory:", embedder=static_embedder) as memory:
        known = list(OWN.items())[:records]
        for text, _ in known:
            memory.add(text, subject="ana")
        for text, questions in known:
            for question in questions:
                assert [hit.text for hit in memory.recall(question, subject="ana").hits][:1] == [text], question
        for question in FOREIGN:
            assert not memory.recall(question, subject="ana").hits, question


@pytest.mark.parametrize("subject", ["team", None])
def test_a_few_notes_answer_nothing_about_the_world(subject: str | None, static_embedder: StaticEmbedder) -> None:
    with holdfast.open(":memory:", embedder=static_embedder) as memory:
        for text in OFFICE:
            memory.add(text, subject=subject)
        for text, question in OFFICE.items():
            assert memory.recall(question, subject=subject).hits[0].text == text
        for question in FOREIGN:
            nothing = memory.recall(question, subject=subject)
            assert (nothing.hits, nothing.message) == ((), "")
            assert "nothing bears on the query" in (nothing.reason or "")


def test_an_assistant_speaks_of_itself_in_the_first_person(static_embedder: StaticEmbedder) -> None:
    """What "I" asks is about the owner: their own words hold it, those of an assistant do not."""

    def score(role: str) -> float:
        with holdfast.open(":memory:", embedder=static_embedder) as memory:
            memory.add([{"text": "I moved to Lisbon last week.", "role": role}], subject="ana")
            return memory.search("Where do I live?", subject="ana")[0].score

    assert score("user") > 2 * score("assistant")
