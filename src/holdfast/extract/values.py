"""Read values out of user text: short, plain and harmless ones, or None.

User text is hostile until proven otherwise: a value is made of a few plain words of one script, without markup,
addresses, invisible characters or instructions. A value that is too long is refused, not shortened: half a phrase may
say the opposite of the whole.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable

from holdfast.extract.dates import MONTHS, WEEKDAYS, day_of_year

MAX_VALUE_WORDS = 8
MAX_VALUE_CHARS = 80
MAX_NAME_CHARS = 40
MAX_SUBJECT_CHARS = 64

_PUNCTUATION = frozenset(" '-.,&+:")
_ADDRESS = re.compile(r"\w\.\w{2}|:/|:[^\W\d]|\bwww\b", re.IGNORECASE)
_COMMAND = re.compile(
    r"\b(?:ignor|disregard|overrid|overwrit|instruct|jailbreak|prompt|obey|comply|bypass|sudo)\w*"
    r"|\b(?:must|always|never|forget|reveal|password|passwords|secret|secrets|delete|execute|api|system|eval|sql)\b",
    re.IGNORECASE,
)


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NOT_PROPER = words(
    "i i'm i've a an the my me we it it's he she they you god not no yes ok okay sorry thanks hi hey hello well oh so"
    " and or but if in on at is was has had will can christmas easter thanksgiving halloween hanukkah ramadan monday"
    " mondays spring summer autumn fall winter english spanish french german chinese portuguese italian mom dad mum"
    " user assistant system admin root developer bot human model null none undefined customer guest anonymous unknown"
    " everyone nobody someone anyone ai gpt chatgpt claude siri alexa facebook google instagram"
    " twitter youtube zoom whatsapp here there what when where who why how this that lol"
) | frozenset((*MONTHS, *WEEKDAYS))
_NOT_A_NAME = words(
    "not important irrelevant unimportant hard difficult long short common unusual rare funny weird"
    " spelled pronounced"
    " mentioned known unknown mud the a an on in at your his her their our its my what whatever"
    " already also just still"
    " too never always very so really private confidential being taken used written wrong right"
    " mispronounced misspelled"
    " missing listed there here no none nothing yours mine legion all similar different secret nobody anonymous"
)
_STATES = words(
    "home back done ready late new fine good great happy sad busy free sick lost alone awake alive glad sure bored"
    " hungry super team type still evil awesome catholic muslim hindu buddhist atheist dutch greek thai swiss czech"
    " iraqi israeli pakistani arab jew kurd swede dane finn pole turk scot amazing mean strict pregnant dead old tall"
)
_NOT_PLACES = words(
    "linux windows mac macos ubuntu debian android ios react vue angular python rust java go kotlin swift typescript"
    " javascript vim neovim emacs vscode github gitlab slack discord teams notion obsidian aws azure gcp postgres"
    " postgresql mysql sqlite mongodb firefox chrome safari brave kubernetes docker spotify netflix mars heaven hell"
    " earth narnia hogwarts"
)
_INITIALS = words("US USA UK UAE NYC LA DC SF EU NZ MA CA NY TX FL IL WA OR CO PA OH GA NC AZ MI NJ VA")
_CONNECTORS = words("of the de do da dos das del la le les el los las di van der den upon")
_AFTER_PROPER = words(
    "and but with now since for because so when where which who while right these at near as too from until after"
    " before then btw by again already alone together in full-time currently to though also"
)
_AFTER_NAME = words("and but from so btw by nice pleased")

# After these words, the rest of a phrase says why, when or what else.
_CUTS = words(
    "because cause 'cause but when whenever while since so which where though although until unless"
    " especially even whether despite except cuz coz"
)
_TRAILING = words(
    "too also lately recently now already again anyways anyway though honestly tbh lol haha well"
    " much alot more most so"
    " very btw either anymore still indeed actually and or a lot the best these days just as always"
    " sometimes both right early late together"
)
# Words that refer to something outside the sentence, or to a person who is not named in it.
_POINTING = words(
    "i i'm i've i'd i'll me my mine myself we us our ours ourselves you your yours yourself y'all u ur he him his she"
    " her hers they them their theirs it its it's this that these those there here that's he's"
    " she's they're such same"
    " somewhere somehow news yesterday today tomorrow tonight ago how why what whatever thing"
    " things stuff ones something someone somebody"
    " anything anyone everything everyone everybody nothing nobody none another other others part idea way look sound"
    " looks sounds both each any every some not no n't don't doesn't isn't aren't won't can't is are was were be been"
    " will would could should might can has have had do does did if then photo pic picture image bit kind"
)
_EMPTY_START = words(
    "the a an all to of for in on at with and or as by from about more most less too very really so just like one two"
    " being seeing having hearing when how and but also ya"
)
_GENERAL = words(
    "ocean sea beach mountains outdoors theater theatre rain snow sun cold heat winter summer gym violin piano guitar"
    " countryside city dark desert forest wilderness arts environment water rainforest cinema opera ballet"
)
_EMPTY_VERBS = words(
    "say think see hear know be have do admit tell call ask make get give take keep go let put try brag bother break"
    " disagree interrupt leave believe imagine use show see share talk"
)
_NOT_WORK = words(
    "home night nights least times it living free money myself hours days weekends shifts progress silence"
    " pairs groups teams bed moment minute team group peace tandem person office school church"
)

FOREIGN_POINTING = words(
    "eso esto esta este ese esa tu tus mi mis que cuando cómo ella él ti usted su"
    " sus lo dich dein deine das dies diese"
    " dieser es ihn sie du euch wie wenn dass mein meine mich ça cela ce cette ces"
    " ton ta tes mon ma mes que quand comment"
    " te vous lui elle isso isto esse essa seu sua teu tua meu minha ele ela quando"
    " como você nicht pas não no nada y und"
    " et e pero aber mais mas porque weil parce más mehr"
)

Reader = Callable[[str], str | None]


def is_plain(value: str) -> bool:
    """True if a value is a few words of letters, digits and everyday punctuation, in one script, and no instruction."""
    return (
        0 < len(value) <= MAX_VALUE_CHARS
        and all(char in _PUNCTUATION or unicodedata.category(char)[0] in "LMN" for char in value)
        and unicodedata.normalize("NFKC", value) == value
        and not _ADDRESS.search(value.replace("CS:GO", ""))
        and not _COMMAND.search(value)
        and all(_has_one_script(word) for word in value.split())
    )


def _has_one_script(word: str) -> bool:
    if word.isascii():
        return True
    marks = sum(unicodedata.category(char).startswith("M") for char in word)
    scripts = {_script(char) for char in word if char.isalpha()}
    return len(scripts) <= 1 and marks * 2 <= len(word)


def _script(char: str) -> str:
    """Return the first word of a character's name; the scripts that Japanese mixes count as one."""
    script = unicodedata.name(char, "?").split()[0]
    return "CJK" if script in ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else script


def looks_like_a_name(text: str) -> bool:
    """True for up to three capitalized words, or a few letters of a script without capitals."""
    parts = text.split()
    return (
        0 < len(parts) <= 3
        and len(text) <= MAX_NAME_CHARS
        and is_plain(text)
        and all(_is_proper(part) for part in parts)
        and not any(char.isdigit() for char in text)
    )


def is_plain_subject(text: str) -> bool:
    """True if a subject's id can stand in a sentence: "ana", "user-42", "ana@example.com"."""
    return len(text) <= MAX_SUBJECT_CHARS and re.fullmatch(r"\w[\w @.'-]*", text) is not None and text.isprintable()


def _is_proper(word: str) -> bool:
    if word.isupper() and word.isascii():
        return word in _INITIALS or len(word) > 3
    first = word[0]
    cased = first.upper() != first.lower()
    return (first.isupper() if cased else first.isalpha()) and word.casefold() not in _NOT_PROPER and len(word) > 1


def _leading_proper(tokens: list[str], connectors: Iterable[str] = ()) -> list[str]:
    """Return the capitalized words at the start of a text; connectors count between and before them."""
    count = 0
    for index, token in enumerate(tokens):
        if _is_proper(token):
            count = index + 1
        elif token not in connectors:
            break
    return tokens[:count]


def read_name(raw: str) -> str | None:
    """Read a person's own name, with nothing after it but the beginning of another statement."""
    tokens = raw.split()
    name = _leading_proper(tokens)[:3]
    if not name and len(tokens) == 1 and raw.isalpha() and raw.islower() and raw not in _NOT_A_NAME | _NOT_PROPER:
        name = [raw.title()]
    if not name or (len(tokens) > len(name) and tokens[len(name)].casefold() not in _AFTER_NAME):
        return None
    joined = " ".join(name)
    return joined if looks_like_a_name(joined) and joined.casefold() not in _NOT_A_NAME else None


def read_capital_name(raw: str) -> str | None:
    return read_name(raw) if raw[:1].isupper() else None


def read_introduced_name(raw: str) -> str | None:
    """Read a name where a state or an origin could stand as well: "I'm ...", "my boss is ..."."""
    name = read_capital_name(raw)
    if name is None or re.search(r"(?:ese|ish|[^l]ian|ican|rean|ing|ed|day)$", name):
        return None
    return None if not _STATES.isdisjoint(name.casefold().split()) else name


def read_someone(raw: str) -> str | None:
    """Read the name of a person who is mentioned; the sentence may go on after it."""
    tokens = [re.sub(r"'s?$", "", token) for token in raw.split()[:2]]
    if raw.split()[0].endswith(("'s", "'")):
        tokens = tokens[:1]
    name = " ".join(_leading_proper(tokens))
    return name if name and looks_like_a_name(name) and not name.isupper() else None


def read_place(raw: str) -> str | None:
    """Read a place that has a name."""
    tokens = raw.split()
    place = _leading_proper(tokens, _CONNECTORS)
    if not _NOT_PLACES.isdisjoint(raw.casefold().split()):
        return None
    if not place or len(place) > 5 or (len(place) == 1 and place[0].isupper() and place[0] not in _INITIALS):
        return None
    if len(tokens) > len(place) and tokens[len(place)].casefold() not in _AFTER_PROPER:
        return None
    joined = " ".join(place)
    return joined if is_plain(joined) else None


def is_place_name(text: str) -> bool:
    """True if the text is, or could be, the name of a place and nothing else."""
    return read_place(text) == text


def read_thing(raw: str) -> str | None:
    """Read something that one may like: general, not dependent on the moment ("it", "your hat")."""
    return _phrase(raw, _EMPTY_START)


def read_doing(raw: str) -> str | None:
    """Read an activity, which follows "to"."""
    phrase = _phrase(raw, _EMPTY_START | _EMPTY_VERBS)
    return phrase if phrase and phrase[0].islower() else None


def read_item(raw: str) -> str | None:
    """Read a thing with a name of its own or a short description: "The Hobbit", "dark blue"."""
    return _phrase(raw.replace('"', ""), words("when how to at on for with in because being getting"), limit=6)


def read_kind(raw: str) -> str | None:
    """Read the kind of a favourite: "book", "kind of music"."""
    return _phrase(raw, _EMPTY_START, limit=3)


def read_event(raw: str) -> str | None:
    """Read what somebody did, in words that are self-contained and say more than that it was fine."""
    return (
        None
        if re.search(r"\b(?:time|blast|experience|moment)$", raw)
        else _phrase(raw, words("of so really very too also one some off out up back away on over in through rid"))
    )


def read_work(raw: str) -> str | None:
    """Read a profession, an employer or a field."""
    tokens = re.split(
        r" (?:in|at|for|with|to|and|on|from|near|by|as|during|that|full-time|part-time)\b", raw, maxsplit=1
    )
    phrase = _phrase(tokens[0], words("to of so it at about for hard abroad online alone late all"), limit=5)
    if phrase is None or phrase.casefold().removeprefix("the ").removeprefix("a ") in _NOT_WORK | _NOT_PROPER - words(
        "google facebook"
    ):
        return None
    return None if phrase.split()[-1].casefold() in _NOT_WORK or any(char.isdigit() for char in phrase) else phrase


def read_number(raw: str) -> str | None:
    return raw if raw.isascii() and raw.isdigit() and 4 <= int(raw) <= 119 else None


def read_taste(raw: str) -> str | None:
    """Read a few words of another language verbatim: few, since references in them are not recognized."""
    tokens = raw.split()
    return raw if len(tokens) <= 4 and is_plain(raw) and FOREIGN_POINTING.isdisjoint(raw.casefold().split()) else None


def read_hanzi(raw: str) -> str | None:
    return (
        raw if is_plain(raw) and not any(char in "你他她它这那我们吗呢吧的了是不没谁什么和跟" for char in raw) else None
    )


def _phrase(raw: str, not_first: frozenset[str], limit: int = MAX_VALUE_WORDS) -> str | None:
    tokens = _trim_tokens(raw.split())
    folded = [token.casefold() for token in tokens]
    if not 0 < len(tokens) <= limit or not _POINTING.isdisjoint(folded):
        return None
    if folded[0] in not_first and not (folded[0] == "the" and len(tokens) > 1 and _is_general(tokens[1])):
        return None
    joined = " ".join(tokens)
    return joined if is_plain(joined) and any(char.isalpha() for char in joined) else None


def _is_general(word: str) -> bool:
    return word in _GENERAL or _is_proper(word)


def _trim_tokens(tokens: list[str]) -> list[str]:
    for index, token in enumerate(tokens):
        if token.casefold() in _CUTS:
            tokens = tokens[:index]
            break
    while tokens and tokens[-1].casefold() in _TRAILING:
        tokens = tokens[:-1]
    return tokens


# Keyed by the name of the group in a pattern.
READERS: dict[str, Reader] = {
    "name": read_name,
    "capital_name": read_capital_name,
    "introduced": read_introduced_name,
    "someone": read_someone,
    "place": read_place,
    "former": read_place,
    "thing": read_thing,
    "doing": read_doing,
    "item": read_item,
    "kind": read_kind,
    "event": read_event,
    "work": read_work,
    "day": day_of_year,
    "number": read_number,
    "word": str.casefold,  # from a closed list in the pattern itself
    "home": read_place,
    "taste": read_taste,
    "hanzi": read_hanzi,
}
