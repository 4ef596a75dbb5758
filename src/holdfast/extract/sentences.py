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
from holdfast.extract.spelling import add_subject, drop_afterthought, plain_forms, write_out
from holdfast.extract.values import is_place_name

MAX_READ_CHARS = 20_000
MAX_SENTENCE_CHARS = 400

_BOUNDARY = re.compile(r"[.!?…]{1,6}[\"')]{0,2}(?=\s|$)|[;\n。！？；]+")
_ABBREVIATION = re.compile(r"(?:\b(?:st|mr|mrs|ms|dr|jr|sr|mt|ft|prof)|(?<!')\b[A-Z])$", re.IGNORECASE)
_ORDINAL = re.compile(
    r"\b\d{1,2}\. (?:jan|feb|mär|mar|apr|mai|maj|jun|jul|aug|sep|okt|nov|dez|dec|klasse|stock|semester|etage)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_QUESTION = re.compile(r"[?？¿]|[吗呢么]\W*$")

_TAKEN_BACK = re.compile(r"\W*(?:not|nope|psych|no|lol no|as if|yeah right)\W*", re.IGNORECASE)

# Regions that belong to the place name before them: "Paris, Texas".
_REGIONS = (
    "Alabama|Alaska|Arizona|California|Colorado|Connecticut|Florida|Georgia|Hawaii|Illinois|Indiana|Iowa"
    "|Kansas|Kentucky"
    "|Louisiana|Maine|Maryland|Massachusetts|Michigan|Minnesota|Missouri|Montana|Nevada|New York|New Jersey|Ohio|Oregon"
    "|Oklahoma|Pennsylvania|Tennessee|Texas|Utah|Vermont|Virginia|Washington|Wisconsin|MA|CA|NY|TX|FL|IL|WA|OR|CO|PA|OH"
    "|GA|NC|AZ|MI|NJ|VA|DC|USA|US|UK|Ontario|Quebec|Alberta|Canada|Mexico|Brazil|Argentina|Chile|Peru|Colombia|England"
    "|Scotland|Wales|Ireland|France|Spain|Portugal|Germany|Italy|Austria|Switzerland|Belgium|Netherlands|Denmark|Sweden"
    "|Norway|Finland|Poland|Greece|Turkey|Russia|Ukraine|India|China|Japan|Korea|Thailand|Vietnam|Indonesia|Australia"
    "|New Zealand|Egypt|Nigeria|Kenya|South Africa|Israel|Pakistan|Philippines|Singapore|Romania|Hungary"
)
# After "and", one of these verbs begins a statement of the same speaker: "I quit and moved to Oslo".
_OWN_VERBS = (
    "am|moved|joined|bought|adopted|became|switched|quit|sold|gave up|am now|now|live in|work (?:at|for|as|in|in)"
    "|love|hate|got|speak|started|have (?:a|an|two|three)|was born|grew up|don't|can't|carry|never|come back"
    "|come from|took up"
)
_JOINT = re.compile(
    rf",(?! ?(?:\d{{3,4}}|(?-i:{_REGIONS}))\b)"
    r"|[，、]|\s*[-–—]+\s|[()—]|\s(?:and|but|so|because|'?cause|y|e|und|et|pero|aber|mais|mas)"
    r"\s(?=(?:i|i'm|i've|my|we|our|he|she|it|it's|they|there|now|that|this|ich|yo|je|j'|eu|mi|me|meu|mein"
    r"|moi|ahora|agora|jetzt|maintenant|adesso|ora|soy|sou|sono|trabajo|vivo|trabalho|moro|lavoro|tengo"
    r"|tenho|ho)\b(?! (?:are|have|broke|split|got|moved)\b))"
    rf"|\s(?:and|but)\s(?=(?:{_OWN_VERBS})\b)",
    re.IGNORECASE,
)
_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|well|oh|ah|wow|yes|yeah|yep|yup|ok|okay|so|and|but|also|btw|by the way"
    r"|anyway|plus|fyi|ps|fun fact|sure"
    r"|honestly|personally|currently|nowadays|these days|right now|now|because|cause|haha|thanks|thank you|cool|great"
    r"|nice|hola|hallo|bonjour|salut|olá|oi|bueno|sí|oui|ja|sim|你好|您好|嗨|大家好|其实"
    r"|actually|no$|nope|sorry|correction|wait"
    r"|i meant?$|(?:please )?(?:remember|note|keep in mind|bear in mind)(?: that)?(?= (?:i|i'm|my|we)\b)"
    r"|just so you know|for the record|you should know(?: that)?|turns out|big news|update|en realidad"
    r"|perdón|eigentlich|en fait|na verdade|不对"
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
    r"|mostly|mainly|usually|ideally|sometimes|often|always|never|living|working|studying|no|please|lol"
    r"|haha|best|hardest|pretty|really|since"
    r"|for|has|have|is|was|also|even|except|including|like|such|from|by|at|on|to|after|before|every|about|around"
    r"|thanks|too|and (?:i|my|it|we|that|they)|there|what|this|near|with|in|for|where|right|just|now|since"
    r"|yo|ich|je|eu|pero|aber|mais|mas|me|mi|meu)\b|\s*我|\s*$",
    re.IGNORECASE,
)
# "I live in Sintra, not Lisbon": the negated place ends the sentence, or another statement follows it.
_INSTEAD = re.compile(
    r"\s*not (?:in |at |from )?(?P<other>[^,]{1,60}?)(?: any ?more| any longer)?(?:,(?P<rest>.*))?", re.IGNORECASE
)
_OWN = re.compile(r"(?:i|i'm|i've|we|we're|we've)\b", re.IGNORECASE)
# A habit's time or place may stand before it: "On Fridays I work from home".
_HABIT = re.compile(
    r"(?P<lead>(?:on|at|in|every|each|for|by|since|after|before|most|twice|once)\b[^,]{0,40}?),? "
    r"(?P<rest>(?:i|i'm|i've|we|we're|we've)\b.*)",
    re.IGNORECASE,
)
# "From now on" and the like begin an instruction, "not a fan" a statement.
_OWN_SETTING = re.compile(
    r"from now on|in (?:the )?future\b(?! i)|in general|as a rule|not (?:a|an)\b|when(?:ever)? you "
    r"(?:write|answer|reply|give|show"
    r"|explain|suggest|recommend|list|make)\b",
    re.IGNORECASE,
)
_HABITUAL = re.compile(
    r"on (?:mon|tues|wednes|thurs|fri|satur|sun)days|(?:every|each) (?!time)[\w ]+|at (?:weekends|the "
    r"weekend|night|home)"
    r"|at work|on weekends|in my (?:free|spare) time|in the (?:mornings?|evenings?|afternoons?)|most \w+|for work"
    r"|by profession|by trade|once a \w+|twice a \w+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a sentence that may be a statement, without its lead-in ("well, actually") and fillers ("really").

    `goes_on`: a list or an attribute may follow it ("I love old, rusty cars"). `when` is a time phrase that stood
    before it. `instead`: only the name of what is not meant follows ("in Sintra, not Lisbon"). `to_end` is the text
    from here to the end of the sentence, `start` and `end` are the places of both in it.
    """

    text: str
    correcting: bool = False
    greeting: bool = False
    goes_on: bool = False
    when: str | None = None
    instead: bool = False
    to_end: str = ""
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in plain forms; `words` are its own and those of its first clause, to which a subject may be added."""

    text: str
    clauses: tuple[Clause, ...]
    words: frozenset[str]


def sentences_of(text: str) -> Iterator[Sentence]:
    """Yield the statements of a message, in order."""
    pieces = list(_split(own_words(text[:MAX_READ_CHARS])))
    for (sentence, mark), (following, _) in zip(pieces, [*pieces[1:], ("", "")], strict=True):
        if not _is_statement(sentence, mark) or (following and _TAKEN_BACK.fullmatch(following)):
            continue
        plain = plain_forms(write_out(sentence))
        clauses = tuple(_clauses(plain))
        first = clauses[0].text if clauses else ""
        yield Sentence(plain, clauses, frozenset(_WORD.findall(f"{plain} {first}".casefold())))


def _split(text: str) -> Iterator[tuple[str, str]]:
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        if boundary.group() == "." and _ORDINAL.search(text[max(start, boundary.start() - 3) : boundary.end() + 12]):
            continue
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
    own = True
    when: str | None = None
    for start, text, following in _pieces(sentence):
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
        habit = _HABIT.fullmatch(rest)
        if habit and _HABITUAL.fullmatch(habit["lead"]):
            rest = f"{habit['rest']} {habit['lead'].lower()}" if "by " not in habit["lead"].lower() else habit["rest"]
        if _SETTING.match(rest) and not _OWN_SETTING.match(rest):
            unsettled = True
        elif not unsettled:
            plain = _own_clause(rest, own)
            own = _OWN.match(plain) is not None
            yield Clause(
                plain,
                correcting or instead,
                greeting,
                _goes_on(following),
                when,
                instead,
                to_end=plain if habit else _own_clause(sentence[start + text.find(rest) :], own),
                start=start,
                end=len(sentence),
            )
        correcting, when = False, None


def _own_clause(text: str, own: bool) -> str:
    """Return the plain form of a clause; one without a subject is the speaker's if the one before it is."""
    with_subject = add_subject(text) if own else text
    return drop_afterthought(with_subject if with_subject == text else plain_forms(with_subject))


def _pieces(sentence: str) -> Iterator[tuple[int, str, str | None]]:
    """Yield the place of each clause, the clause, and the text after its comma."""
    start = 0
    for joint in _JOINT.finditer(sentence):
        after = sentence[joint.end() :] if joint.group() in ",，、" else None
        yield start, sentence[start : joint.start()].strip(), after
        start = joint.end()
    yield start, sentence[start:].strip(), None


def _is_instead(following: str | None) -> bool:
    """True if the text after a clause only names what is not meant, and adds nothing to the statement."""
    found = None if following is None else _INSTEAD.fullmatch(following)
    return found is not None and is_place_name(found["other"]) and not _goes_on(found["rest"])


def _goes_on(following: str | None) -> bool:
    return following is not None and not _RESTART.match(following)
