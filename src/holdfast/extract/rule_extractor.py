"""Extract facts from a conversation by plain patterns: no model, no network, in time linear in the text.

It proposes only what people state explicitly about themselves, their relatives, animals and things, and what they want
of an assistant for good. Questions, wishes, reported speech, quotations, orders for once and jokes yield nothing, and
neither does any message of an assistant, a tool or the system.
Every candidate is one short sentence that names its speaker and cites the messages it was read from.

Days are those of the extractor's zone: in another one, "yesterday" said near midnight may be a day off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

from holdfast.domain.memory import ALWAYS, Trust, Validity
from holdfast.domain.results import Record
from holdfast.domain.transcript import Message, Role
from holdfast.extract.dates import When, is_past, long_date, resolve, take_trailing
from holdfast.extract.patterns import LANGUAGES
from holdfast.extract.patterns.english.vocabulary import SAME_RELATION
from holdfast.extract.patterns.rules import ExtractionRule, Language, Needs, Since
from holdfast.extract.phrases import reader_of, slot_values
from holdfast.extract.sentences import Clause, sentences_of
from holdfast.extract.values import is_plain_subject, looks_like_a_name
from holdfast.ports import Candidate

MAX_FACT_CHARS = 200
MAX_KEY_CHARS = 120

# Values that a speaker can correct by naming the new one: "no, I meant Lisbon".
_REPAIR = re.compile(r"(?P<meant>i (?:meant|mean)(?: to say)?|make that|it should be|it's) (?P<raw>.+)", re.IGNORECASE)
_REPAIRABLE = ("place", "name", "capital_name", "introduced", "someone", "day")
# Groups that read a date, which otherwise is split off before a pattern is compared.
_DATED = frozenset({"day", "dated"})
_LONG_AGO = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class _RuleMatch:
    """A rule that matched, and the values that it read."""

    rule: ExtractionRule
    values: dict[str, str]
    when: When | None = None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class _Fact:
    """A reading with its candidate, held so that the speaker's next words can correct it."""

    reading: _RuleMatch
    language: Language
    candidate: Candidate
    turn: int


class RuleExtractor:
    """Reads candidates from messages by the patterns of `languages`."""

    def __init__(self, *, zone: tzinfo = UTC, languages: Sequence[Language] = LANGUAGES) -> None:
        self._zone = zone
        self._languages = tuple(languages)

    @property
    def name(self) -> str:
        return "rules"

    async def extract(self, messages: Sequence[Record], subject: str | None) -> Sequence[Candidate]:
        """Return candidates in the order of the messages; a repeated fact is one candidate with both as evidence."""
        found: dict[tuple[str, str], Candidate] = {}
        for fact in self._facts(messages, subject):
            identity = (fact.key, fact.text)
            earlier = found.get(identity)
            found[identity] = fact if earlier is None else _merge_candidates(earlier, fact)
        return tuple(found.values())

    def _facts(self, messages: Sequence[Record], subject: str | None) -> Iterator[Candidate]:
        latest: dict[str | None, _Fact] = {}
        for turn, message in enumerate(messages):
            if not isinstance(message, Message) or message.role is not Role.USER:
                continue
            speaker = _speaker(message, subject)
            for fact in self._facts_of(message, speaker, turn, latest.get(speaker)):
                latest[speaker] = fact
                yield fact.candidate

    def _facts_of(self, message: Message, speaker: str | None, turn: int, latest: _Fact | None) -> Iterator[_Fact]:
        said_at = _in_zone(message.said_at, self._zone)
        for sentence in sentences_of(message.text):
            for language in self._languages:
                if not language.may_state(sentence.text, sentence.words):
                    continue
                readings = [
                    *_match_anywhere(language, sentence.text),
                    *_match_clauses(language, sentence.clauses, said_at),
                ]
                correctable = latest is not None and turn - latest.turn <= 2
                if not (readings or correctable) or language.doubt.search(sentence.text):
                    continue
                for reading in _without_repeats(readings):
                    candidate = _candidate(reading, language, message, speaker, said_at)
                    if candidate is not None:
                        latest = _Fact(reading, language, candidate, turn)
                        yield latest
                if not readings and latest is not None and correctable:
                    repaired = _apply_correction(latest, sentence.clauses, message, speaker, said_at)
                    if repaired is not None:
                        latest = replace(repaired, turn=turn)
                        yield latest


def _in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """Convert to the zone; unchanged at the edges of the calendar, where it has no date in that zone."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment


def _speaker(message: Message, subject: str | None) -> str | None:
    """Return the speaker's name for use in a sentence; None if it is unknown."""
    if message.sender is not None and looks_like_a_name(message.sender):
        return message.sender
    return subject if subject is not None and is_plain_subject(subject) else None


def _match_anywhere(language: Language, sentence: str) -> Iterator[_RuleMatch]:
    for rule in language.rules:
        if rule.anywhere:
            for found in rule.pattern.finditer(sentence):
                values = _values(found)
                if values is not None:
                    yield _RuleMatch(rule, values)


def _without_repeats(readings: Sequence[_RuleMatch]) -> Iterator[_RuleMatch]:
    """Leave out "Ana's son is called Max" where another reading says more of "Ana's son Max"."""
    for reading in readings:
        name = reading.values.get("someone", "") if reading.rule.anywhere else ""
        others = [other.values for other in readings if other is not reading and not other.rule.anywhere]
        if not name or not any(name in value for values in others for value in values.values()):
            yield reading


def _match_clauses(language: Language, clauses: Sequence[Clause], said_at: datetime) -> Iterator[_RuleMatch]:
    covered = 0
    for clause in clauses:
        # A rule that reads on to the end of the sentence has read the clauses that follow.
        if clause.start < covered:
            continue
        phrase, undated = take_trailing(clause.text)
        for rule in language.rules_for(clause.text):
            # A date that is the fact itself stays in the text.
            dated = not _DATED.isdisjoint(rule.pattern.groupindex)
            text = clause.to_end if rule.across else clause.text if dated else undated
            reading = _reading(rule, clause, text, None if rule.across else phrase or clause.when, said_at)
            if reading is not None:
                covered = clause.end if rule.across else covered
                yield reading
                break


def _reading(
    rule: ExtractionRule, clause: Clause, text: str, phrase: str | None, said_at: datetime
) -> _RuleMatch | None:
    """Apply the rule to the clause; None unless it matches and the clause has what the rule needs."""
    if rule.needs is Needs.GREETING and not clause.greeting:
        return None
    found = rule.pattern.fullmatch(text)
    if found is None:
        return None
    # A negated place ("in Sintra, not Lisbon") does not change the meaning.
    goes_on = clause.goes_on and not (clause.instead and "place" in rule.pattern.groupindex)
    if rule.needs is Needs.WHOLE and goes_on:
        return None
    # What holds today may not hold tomorrow: it is an event, or nothing.
    if _is_now(phrase) and (rule.ahead or "{when}" not in rule.template):
        return None
    ahead = rule.ahead or rule.needs is Needs.COMING_DATE
    when = _when(rule, phrase, said_at, ahead)
    if when is None and (
        rule.needs in (Needs.PAST_DATE, Needs.COMING_DATE) or (not rule.ahead and _is_to_come(phrase))
    ):
        return None
    values = _values(found)
    return None if values is None else _RuleMatch(rule, values, when, rule.replaces or clause.correcting)


def _when(rule: ExtractionRule, phrase: str | None, said_at: datetime, ahead: bool) -> When | None:
    if phrase is None:
        return None
    when = resolve(phrase, said_at, ahead=ahead)
    if when is None and rule.ahead and not is_past(phrase):
        # It has several meanings: it stays, with the day on which it was said.
        return When(f" {phrase} (said on {long_date(said_at)})".lstrip(), None)
    return when


def _is_now(phrase: str | None) -> bool:
    return phrase is not None and phrase.casefold().startswith(("today", "tonight", "this morning"))


def _is_to_come(phrase: str | None) -> bool:
    return phrase is not None and phrase.casefold().startswith(("next", "tomorrow"))


def _values(found: re.Match[str]) -> dict[str, str] | None:
    """Read every group with its reader; None if one of them is refused. A group that did not take part is empty."""
    values: dict[str, str] = {}
    for group, raw in found.groupdict().items():
        value = "" if raw is None else reader_of(group)(raw.strip())
        if value is None:
            return None
        values[group] = value
    if "word" in values:
        values["word"] = SAME_RELATION.get(values["word"], values["word"])
    return values


def _candidate(
    reading: _RuleMatch, language: Language, message: Message, speaker: str | None, said_at: datetime
) -> Candidate | None:
    rule, when = reading.rule, reading.when
    who = speaker or language.nobody
    if speaker in reading.values.values() and rule.key == "name":
        return None
    text = rule.template.format(
        who=who,
        whose=f"{who}'s",
        when=f" {when.text}" if when else "",
        said_on=long_date(said_at),
        **reading.values,
    )
    # A group that read nothing leaves two spaces, or one before the full stop.
    text = " ".join(text.split()).replace(" .", ".")
    if len(text) > MAX_FACT_CHARS:
        return None
    slot = rule.key.format(when=when.text if when else "", **slot_values(reading.values))
    return Candidate(
        text=text,
        evidence=(message.id,),
        trust=Trust.MODEST,
        validity=_validity(rule, when, message.said_at),
        key=f"{speaker or 'the user'}/{slot}".casefold()[:MAX_KEY_CHARS],
        replaces=reading.replaces and not _is_old_news(when, said_at),
        former=rule.ends.format(**reading.values) if rule.ends else None,
    )


def _validity(rule: ExtractionRule, when: When | None, said_at: datetime) -> Validity:
    if rule.since is Since.ALWAYS:
        return ALWAYS
    return Validity(since=_in_zone(when.since, UTC) if when and when.since else said_at)


def _is_old_news(when: When | None, said_at: datetime) -> bool:
    """True if it happened so long ago that newer facts may already be known."""
    return when is not None and when.since is not None and said_at - when.since > _LONG_AGO


def _apply_correction(
    fact: _Fact, clauses: Sequence[Clause], message: Message, speaker: str | None, said_at: datetime
) -> _Fact | None:
    """Replace the value of the fact with the speaker's correction: "no, I meant Lisbon"."""
    group = next((name for name in _REPAIRABLE if name in fact.reading.values), None)
    if group is None:
        return None
    for clause in clauses:
        found = _REPAIR.fullmatch(clause.text)
        if found is None or (found["meant"].casefold() == "it's" and not clause.correcting):
            continue
        value = reader_of(group)(found["raw"])
        if value is None or value == fact.reading.values[group]:
            continue
        reading = replace(fact.reading, values={**fact.reading.values, group: value}, replaces=True)
        candidate = _candidate(reading, fact.language, message, speaker, said_at)
        if candidate is not None:
            evidence = tuple(dict.fromkeys((*fact.candidate.evidence, message.id)))
            return _Fact(reading, fact.language, replace(candidate, evidence=evidence, key=fact.candidate.key), 0)
    return None


def _merge_candidates(earlier: Candidate, later: Candidate) -> Candidate:
    evidence = tuple(dict.fromkeys((*earlier.evidence, *later.evidence)))
    return replace(earlier, evidence=evidence, replaces=earlier.replaces or later.replaces)
