"""Split a message into sentences and clauses that the speaker states as their own.

Quoted, pasted or pretended text and orders to an agent are left out here, so that patterns see only plain statements.
Everything is bounded: the text of a message, a sentence, and the number of sentences.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.domain.own_words import own_words
from holdfast.domain.visible_text import has_hidden
from holdfast.extract.dates import take_leading
from holdfast.extract.values import is_place_name

MAX_READ_CHARS = 20_000
MAX_SENTENCE_CHARS = 400

_BOUNDARY = re.compile(r"[.!?…]{1,6}[\"')]{0,2}(?=\s|$)|[;\n。！？；]+")
_ABBREVIATION = re.compile(r"(?:\b(?:st|mr|mrs|ms|dr|jr|sr|mt|ft|prof)|\b[A-Z])$", re.IGNORECASE)
_QUESTION = re.compile(r"[?？¿]|[吗呢么]\W*$")

_TAKEN_BACK = re.compile(r"\W*(?:not|nope|psych|no|lol no|as if|yeah right)\W*", re.IGNORECASE)

# Regions that belong to the place name before them: "Paris, Texas".
_REGIONS = (
    "Alabama|Alaska|Arizona|California|Colorado|Connecticut|Florida|Georgia|Hawaii|Illinois|Indiana|Iowa|Kansas|Kentucky"
    "|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Missouri|Montana|Nevada|New York|New Jersey|Ohio|Oregon"
    "|Oklahoma|Pennsylvania|Tennessee|Texas|Utah|Vermont|Virginia|Washington|Wisconsin|MA|CA|NY|TX|FL|IL|WA|OR|CO|PA|OH"
    "|GA|NC|AZ|MI|NJ|VA|DC|USA|US|UK|Ontario|Quebec|Alberta|Canada|Mexico|Brazil|Argentina|Chile|Peru|Colombia|England"
    "|Scotland|Wales|Ireland|France|Spain|Portugal|Germany|Italy|Austria|Switzerland|Belgium|Netherlands|Denmark|Sweden"
    "|Norway|Finland|Poland|Greece|Turkey|Russia|Ukraine|India|China|Japan|Korea|Thailand|Vietnam|Indonesia|Australia"
    "|New Zealand|Egypt|Nigeria|Kenya|South Africa|Israel|Pakistan|Philippines|Singapore|Romania|Hungary"
)
_JOINT = re.compile(
    rf",(?! ?(?:\d{{3,4}}|(?-i:{_REGIONS}))\b)"
    r"|[，、]|\s*[-–—]+\s|[()—]|\s(?:and|but|so|because|'?cause|y|e|und|et|pero|aber|mais|mas)"
    r"\s(?=(?:i|i'm|my|we|our|he|she|it|it's|they|there|now|that|this|ich|yo|je|j'|eu|mi|me|meu|mein|moi)\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|well|oh|ah|wow|yes|yeah|yep|yup|ok|okay|so|and|but|also|btw|by the way"
    r"|anyway|plus|fyi|ps|fun fact|sure"
    r"|honestly|personally|currently|nowadays|these days|right now|now|because|cause|haha|thanks|thank you|cool|great"
    r"|nice|hola|hallo|bonjour|salut|olá|oi|bueno|sí|oui|ja|sim|你好|您好|嗨|大家好|其实"
    r"|actually|no$|nope|sorry|correction|wait"
    r"|i meant?$|update|en realidad|perdón|eigentlich|en fait|na verdade|不对"
    r"|不是)(?:\s+there|\s+all|\s+everyone)?\b[\s,:!]*)+",
    re.IGNORECASE,
)
_CORRECTING = re.compile(
    r"\b(?:actually|no|nope|sorry|correction|wait|i meant?|update|en realidad|perdón|eigentlich|en fait|na verdade)\b"
    r"|其实|不对|不是",
    re.IGNORECASE,
)
_GREETING = re.compile(r"\b(?:hi|hello|hey|hola|hallo|bonjour|salut|olá|oi)\b|你好|您好|嗨|大家好", re.IGNORECASE)
_SETTING = re.compile(
    r"(?:in|on|at|according|as|when|whenever|unless|once|until|deep|like|theoretically|apparently"
    r"|officially|for|under|to"
    r"|during|before|after|with|without|legend|supposedly|sometimes|if|where|while|only|not"
    r"|technically|en|cuando|si|wenn"
    r"|quand|quando|se|dans|im|als|在|如果|要是|假如)\b|在|如果|要是|假如",
    re.IGNORECASE,
)
_RESTART = re.compile(
    r"\s*(?:i|i'm|i've|my|we|it|it's|they|they're|but|so|because|cause|especially|which|though|as"
    r"|that|that's|he|she|you"
    r"|thanks|too|and (?:i|my|it|we|that|they)|there|what|this|near|with|in|for|where|right|just|now|since"
    r"|yo|ich|je|eu|pero|aber|mais|mas|me|mi|meu)\b|\s*我|\s*$",
    re.IGNORECASE,
)
# "I live in Sintra, not Lisbon": the negated place ends the sentence, or another statement follows it.
_INSTEAD = re.compile(
    r"\s*not (?:in |at |from )?(?P<other>[^,]{1,60}?)(?: any ?more| any longer)?(?:,(?P<rest>.*))?", re.IGNORECASE
)
_FILLERS = re.compile(
    r"(?P<who>i'm|i|we|we're) (?:(?:really|also|just|absolutely|totally|still|personally|actually|currently|truly|now"
    r"|definitely|simply|recently|always|genuinely|originally|finally|officially|mainly|so|very|do"
    r"|kinda|secretly|myself"
    r"|even|already|especially|particularly) )+",
    re.IGNORECASE,
)
_LONG_FORMS = (
    (re.compile(r"\bi am\b", re.IGNORECASE), "I'm"),
    (re.compile(r"\bwe are\b", re.IGNORECASE), "we're"),
    (re.compile(r"\bdo not\b", re.IGNORECASE), "don't"),
    (re.compile(r"\b(?:cannot|can not)\b", re.IGNORECASE), "can't"),
    (re.compile(r"\bi have\b", re.IGNORECASE), "I've"),
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a sentence that may be a statement, without its lead-in ("well, actually") and fillers ("really").

    `goes_on`: a list or an attribute may follow it ("I love old, rusty cars"). `when` is a time phrase that stood
    before it. `instead`: only the name of what is not meant follows ("in Sintra, not Lisbon").
    """

    text: str
    correcting: bool = False
    greeting: bool = False
    goes_on: bool = False
    when: str | None = None
    instead: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    text: str
    clauses: tuple[Clause, ...]


def sentences_of(text: str) -> Iterator[Sentence]:
    """Yield the statements of a message, in order."""
    pieces = list(_split(own_words(text[:MAX_READ_CHARS])))
    for (sentence, mark), (following, _) in zip(pieces, [*pieces[1:], ("", "")], strict=True):
        if not _is_statement(sentence, mark) or (following and _TAKEN_BACK.fullmatch(following)):
            continue
        yield Sentence(sentence, tuple(_clauses(sentence)))


def _split(text: str) -> Iterator[tuple[str, str]]:
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        if boundary.group() == "." and _ABBREVIATION.search(text, max(start, boundary.start() - 5), boundary.start()):
            continue
        yield text[start : boundary.start()].strip(), boundary.group()
        start = boundary.end()
    yield text[start:].strip(), ""


def _is_statement(sentence: str, mark: str) -> bool:
    return (
        0 < len(sentence) <= MAX_SENTENCE_CHARS
        and not _QUESTION.search(mark)
        and not _QUESTION.search(sentence)
        and not has_hidden(sentence, anywhere=True)
        and not any(unicodedata.category(char) in ("Cf", "Cc", "Cn") for char in sentence)
    )


def _clauses(sentence: str) -> Iterator[Clause]:
    correcting = greeting = unsettled = False
    when: str | None = None
    for text, following in _pieces(sentence):
        instead = _is_instead(following)
        lead = _LEAD.match(text)
        rest = text
        if lead:
            correcting = correcting or bool(_CORRECTING.search(lead.group()))
            greeting = greeting or bool(_GREETING.search(lead.group()))
            rest = text[lead.end() :].strip()
        led, rest = take_leading(rest)
        when = led or when
        if not rest:
            continue
        if _SETTING.match(rest):
            unsettled = True
        elif not unsettled:
            yield Clause(_plain(rest), correcting or instead, greeting, _goes_on(following), when, instead)
        correcting, when = False, None


def _pieces(sentence: str) -> Iterator[tuple[str, str | None]]:
    """Yield each clause, and the text after its comma."""
    start = 0
    for joint in _JOINT.finditer(sentence):
        after = sentence[joint.end() :] if joint.group() in ",，、" else None
        yield sentence[start : joint.start()].strip(), after
        start = joint.end()
    yield sentence[start:].strip(), None


def _is_instead(following: str | None) -> bool:
    """True if the text after a clause only names what is not meant, and adds nothing to the statement."""
    found = None if following is None else _INSTEAD.fullmatch(following)
    return found is not None and is_place_name(found["other"]) and not _goes_on(found["rest"])


def _goes_on(following: str | None) -> bool:
    return following is not None and not _RESTART.match(following)


def _plain(clause: str) -> str:
    for long_form, short_form in _LONG_FORMS:
        clause = long_form.sub(short_form, clause)
    return _FILLERS.sub(r"\g<who> ", clause)
