"""Variants of LoCoMo's conversations: by one person, as a chat with an assistant, or with asides.

Where people have no names, questions that name them are asked in the first person, except in the set `one-person`:
there, a name leads to turns addressed to that person.

An aside is a turn that holds an answer and was moved to a random place in another session. Such data has only questions
all of whose evidence was moved. The context of the aside stays in its old place and still looks like an answer. In the
sets `passing-…` it does not: there, the turns that hold answers are placed in another person's conversations.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from bench.retrieval import datasets
from bench.retrieval.datasets import Dataset, Question, Record, Scope

_TURNS_JOINED = 3
_MOVED = 0.55
# A question that names a time asks for a turn at that time; an aside has another time.
_DATED = re.compile(
    r"\b(20\d\d|january|february|march|april|may|june|july|august|september|october|november|december|when)\b", re.I
)


def all_sets(data: Path) -> list[Dataset]:
    people = datasets.load(data, "locomo").scopes
    one = [in_first_person(one_person(scope), scope, ("I", "my"), ("I", "my")) for scope in people]
    made: dict[str, Iterable[Scope]] = {
        "one-person": map(one_person, people),
        "first-person": one,
        "joined": map(joined, people),
        "asides-people": (with_asides(scope, beside) for scope in people),
        "asides-one": (with_asides(scope, beside) for scope in one),
        "asides-within": (with_asides(scope, within) for scope in one),
        "passing-beside": (in_passing(scope, amid, beside) for scope, amid in zip(one, one[1:] + one[:1], strict=True)),
        "passing-within": (in_passing(scope, amid, within) for scope, amid in zip(one, one[1:] + one[:1], strict=True)),
    }
    return [Dataset(name, tuple(scopes)) for name, scopes in made.items()]


def one_person(scope: Scope) -> Scope:
    return replace(scope, records=tuple(replace(record, sender="user", role="user") for record in scope.records))


def in_first_person(told: Scope, scope: Scope, *instead: tuple[str, str]) -> Scope:
    """Replace the names of the scope's two people in the questions, in order of first appearance, by pronouns."""
    names = dict.fromkeys(record.sender for record in scope.records)
    questions = list(told.questions)
    for name, (subject, possessive) in zip(names, instead, strict=True):
        for number, question in enumerate(questions):
            query = re.sub(rf"\b{name}['’]s\b", possessive, question.query)
            questions[number] = replace(question, query=re.sub(rf"\b{name}\b", subject, query))
    return replace(told, questions=tuple(questions))


def joined(scope: Scope) -> Scope:
    """Make one person the user and the other the assistant, and join what each says in a few turns into one turn."""
    first = scope.records[0].sender
    records: list[Record] = []
    now: dict[str, str] = {}
    for session, turns in groupby(scope.records, key=lambda record: record.session_id):
        said = list(turns)
        step = 2 * _TURNS_JOINED
        for start in range(0, len(said), step):
            for role in ("user", "assistant"):
                own = [turn for turn in said[start : start + step] if (turn.sender == first) == (role == "user")]
                if own:
                    key = f"{session}:{len(records)}"
                    now.update({turn.id: key for turn in own})
                    records.append(
                        Record(key, session, role, role, said[start].timestamp, " ".join(turn.text for turn in own))
                    )
    # Turns of one block have one time; the number puts the assistant's after the user's.
    ordered = [replace(record, timestamp=f"{record.timestamp}.{number:06}") for number, record in enumerate(records)]
    told = replace(scope, records=tuple(ordered), questions=tuple(_asked_of(scope.questions, now)))
    return in_first_person(told, scope, ("I", "my"), ("you", "your"))


Move = Callable[[random.Random, Sequence[Record], Sequence[Record]], tuple[list[Record], dict[str, str]]]


def with_asides(scope: Scope, move: Move) -> Scope:
    chance = random.Random(scope.name)
    askable = [question for question in scope.questions if question.counted and not _DATED.search(question.query)]
    chosen = chance.sample(askable, round(_MOVED * len(askable)))
    moved = {gold for question in chosen for gold in question.gold}
    staying = [record for record in scope.records if record.id not in moved]
    records, now = move(chance, staying, [record for record in scope.records if record.id in moved])
    asked = [question for question in askable if moved.issuperset(question.gold)]
    return replace(scope, records=tuple(records), questions=tuple(_asked_of(asked, now)))


def in_passing(scope: Scope, amid: Scope, move: Move) -> Scope:
    """Move the evidence of one scope into the records of another, about which no questions are asked."""
    asked = [question for question in scope.questions if question.counted and not _DATED.search(question.query)]
    told = {gold for question in asked for gold in question.gold}
    others = [replace(record, id=f"{amid.name}:{record.id}") for record in amid.records]
    records, now = move(random.Random(scope.name), others, [record for record in scope.records if record.id in told])
    return replace(scope, records=tuple(records), questions=tuple(_asked_of(asked, now)))


def beside(
    chance: random.Random, staying: Sequence[Record], moved: Sequence[Record]
) -> tuple[list[Record], dict[str, str]]:
    """Insert each aside as a separate turn right after another."""
    after: dict[str, list[Record]] = {}
    for aside in moved:
        host = chance.choice([record for record in staying if record.session_id != aside.session_id])
        told = replace(aside, session_id=host.session_id, timestamp=host.timestamp)
        after.setdefault(host.id, []).append(told)
    records = [told for record in staying for told in (record, *after.get(record.id, ()))]
    return records, {aside.id: aside.id for aside in moved}


def within(
    chance: random.Random, staying: Sequence[Record], moved: Sequence[Record]
) -> tuple[list[Record], dict[str, str]]:
    """Insert each aside into another turn, which is about something else."""
    texts: dict[str, str] = {}
    now: dict[str, str] = {}
    for aside in moved:
        free = [record for record in staying if record.session_id != aside.session_id and record.id not in texts]
        host = chance.choice(free)
        sentences = re.split(r"(?<=[.!?])\s+", host.text)
        place = chance.randint(1, len(sentences))
        texts[host.id] = " ".join([*sentences[:place], aside.text, *sentences[place:]])
        now[aside.id] = host.id
    return [replace(record, text=texts.get(record.id, record.text)) for record in staying], now


def _asked_of(questions: Iterable[Question], now: dict[str, str]) -> list[Question]:
    """The counted questions with their evidence at its new place."""
    return [
        replace(question, gold=tuple(dict.fromkeys(now[gold] for gold in question.gold)))
        for question in questions
        if question.counted
    ]
