"""Turn the speaker's own words into words about the speaker: "my parents" becomes "their parents".

The readers here are wider than those of `values`: a rule that uses them says in its phrasing what kind of statement it
is. Words that point outside the sentence are still refused, and so are conditions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from holdfast.extract import values
from holdfast.extract.dates import MONTHS, WEEKDAYS
from holdfast.extract.patterns.english.vocabulary import SAME_RELATION, TONGUES
from holdfast.extract.values import Reader, is_plain, words

MAX_WORDS = 14
MAX_NAMES = 6

_ABOUT_SPEAKER = {
    "my": "their",
    "our": "their",
    "me": "them",
    "us": "them",
    "myself": "themselves",
    "ourselves": "themselves",
    "mine": "theirs",
}
_CUTS = words("because cause 'cause cuz coz so but which who whom whose where though although cause as and,")
_CUT_PAST = words("when after before while since until")
_CONDITIONS = words(
    "if unless whether when whenever while i i'm i've i'd i'll we we're we've you your yours you're u "
    "yourself this that"
    " that's these those it it's its something somebody someone here there today tomorrow yesterday"
    " tonight now then how why what whatever thing things stuff same not don't didn't isn't won't can't would"
    " could should might may must will"
)
_OTHERS = words("he him his she her hers they them he's she's they're himself herself")
_TRAILING = words(
    "too also lately recently again anyways anyway though tho honestly tbh lol haha hahaha well btw "
    "either anymore still"
    " indeed actually and or a an the of to please pls right both as already now yay finally sadly unfortunately"
    " obviously basically of course since for at in on with my me our that is just so but thankfully luckily"
)
_POINTED_AT = words(
    "file files text code answer answers one ones version versions error errors problem problems call link document"
    " image page paragraph line lines app tests test server function button script table list email message question"
    " point same way first second third last next other following above below previous result results output input data"
    " database branch commit bug issue ticket tab window screen user prompt sentence word words option options example"
    " dishes video song part rest whole end beginning time moment phone"
)
_COUNTED = words("floor year grade trimester semester")
_NOT_HELD = words(
    "question questions no point minutes hours seconds tabs users servers problem problems issue issues idea"
    " ideas feeling bug error headache cold fever hangover minute moment second look chat talk word lot bit few"
    " break blast go plan plans meeting deadline call crush choice doubt reason chance hunch request favour favor"
    " dream nightmare rough long hard good bad great nice terrible busy day week time week's way hard-on right"
    " mind thing things stuff clue coffee beer drink sandwich pizza snack lunch dinner breakfast nap shower kick"
    " laugh ton message email text reply response answer result hold suspicion draft file list task tasks ticket"
    " version copy link errors guess sense preference"
)
_NOT_HABITS = words(
    "think guess know mean hope wish want need feel hear say tell ask wonder suppose believe doubt remember forget"
    " agree promise swear bet get's assume expect imagine dream find give let make understand realize "
    "realise notice seem"
    " look sound like love hate prefer enjoy wonder owe miss lose break crash fail apologize apologise thank appreciate"
    " wanna gotta had am was were is are do did can could will would should might must may recall "
    "recommend suggest object"
    " insist admit confess regret fear trust and or but said told went got did made took saw met found knew came heard"
    " felt gave left lost won ate drank tried meant kept began became ran wrote read's been gone done "
    "seen am not don't didn't can't won't never just cannot used always"
    ""
)


def read_rest(raw: str) -> str | None:
    """Read the rest of a statement in the present: no condition, nobody else, nothing outside the sentence."""
    return _rest(raw, _CUTS, _CONDITIONS | _OTHERS)


def read_past(raw: str) -> str | None:
    """Read the rest of a statement about the past; a clause that begins with "when" only says when."""
    return _rest(raw, _CUTS | _CUT_PAST, _CONDITIONS | _OTHERS)


def read_theirs(raw: str) -> str | None:
    """Read the rest of a statement about somebody else, to whom "his" and "her" refer."""
    return _rest(raw, _CUTS, _CONDITIONS)


def _rest(raw: str, cuts: frozenset[str], refused: frozenset[str]) -> str | None:
    tokens = _FOR_NOW.sub("", raw.replace('"', "")).split()
    for index, token in enumerate(tokens):
        folded = token.casefold()
        if folded in cuts and not (folded == "as" and _goes_on_as(tokens[index + 1 :])):
            tokens = tokens[:index]
            break
    while tokens and tokens[-1].casefold().strip(",.") in _TRAILING:
        tokens = tokens[:-1]
    # The month is capitalized, the verb is not.
    folded_tokens = [token.casefold().strip(",.") for token in tokens if not token.startswith("May")]
    if not 0 < len(tokens) <= MAX_WORDS or not refused.isdisjoint(folded_tokens):
        return None
    if _points_outside(folded_tokens):
        return None
    if folded_tokens[-1:] and folded_tokens[-1] in ("one", "ones", "thing"):
        return None
    joined = " ".join(_ABOUT_SPEAKER.get(token.casefold(), token) for token in tokens)
    return joined if is_plain(joined) and any(char.isalnum() for char in joined) else None


def _points_outside(tokens: Sequence[str]) -> bool:
    """True for "the file", which only the conversation makes clear."""
    return any(
        before == "the" and word in _POINTED_AT and following not in _COUNTED
        for before, word, following in zip(tokens, tokens[1:], [*tokens[2:], ""], strict=False)
    )


_FOR_NOW = re.compile(
    r"(?: (?:right now|at the moment|for now|these days|nowadays|at present|and i love it))+$", re.IGNORECASE
)


def _goes_on_as(following: list[str]) -> bool:
    return bool(following) and following[0].casefold() in ("a", "an", "the", "head", "part")


def read_what(raw: str) -> str | None:
    """Read a thing that somebody has, with its article: "an old Volvo", "two bikes"."""
    value = _rest(raw, _CUTS | {"that"}, _CONDITIONS | _OTHERS)
    return None if value is None or not _NOT_HELD.isdisjoint(value.casefold().split()[:3]) else value


def read_employer(raw: str) -> str | None:
    """Read an employer: "Siemens", "the city library", "a small law firm called Harlow & Pike"."""
    value = read_rest(raw)
    if value is None or len(value.split()) > 9:
        return None
    folded = value.casefold().split()
    first = folded[1] if folded[0] in ("a", "an", "the", "my", "their") and len(folded) > 1 else folded[0]
    if first in _NOT_EMPLOYERS or folded[0].isdigit() or folded[0] in ("it", "all", "of", "to", "so", "about", "for"):
        return None
    return value


_NOT_EMPLOYERS = words(
    "home night nights least times moment minute office point end beginning station front first living free money hours"
    " days weekends fun themselves heart desk computer time speed now once peace team group ease risk odds side"
) | words(" ".join((*WEEKDAYS, *MONTHS)))


def read_organization(raw: str) -> str | None:
    """Read an employer that has a name of its own, where other words could stand as well: "I joined ..."."""
    value = read_employer(raw)
    if value is None:
        return None
    tokens = value.split()
    own = tokens[1:] if tokens[0] in ("the", "The") else tokens
    return value if own and own[0][0].isupper() and own[0].casefold() not in (*WEEKDAYS, *MONTHS) else None


def read_names(raw: str) -> str | None:
    """Read a list of names: "Max and Ida", "Mia, Zoe and Tom"."""
    parts = re.split(r",? and |, | & ", raw.strip(" ,"))
    names = [values.read_someone(part) for part in parts if part]
    if not 0 < len(names) <= MAX_NAMES or any(
        name is None or name != part for name, part in zip(names, parts, strict=False)
    ):
        return None
    return raw.strip(" ,").replace(" & ", " and ")


def read_person(raw: str) -> str | None:
    """Read a relation from the pattern's closed list, perhaps with a name after it."""
    tokens = [SAME_RELATION.get(token.casefold(), token) for token in raw.split()]
    joined = " ".join(tokens)
    return joined if is_plain(joined) else None


def read_order(raw: str) -> str | None:
    """Read what an assistant should do from now on. It never touches on rules, prompts or secrets."""
    tokens = raw.replace('"', "").split()
    while tokens and tokens[-1].casefold() in _ORDER_TRAILING:
        tokens = tokens[:-1]
    folded = [token.casefold().strip(",") for token in tokens]
    if not 0 < len(tokens) <= MAX_WORDS or not _NOT_STANDING.isdisjoint(folded):
        return None
    if _points_outside(folded) and "all" not in folded:
        return None
    joined = " ".join(_IN_ORDERS.get(token.casefold(), token) for token in tokens).rstrip(",")
    if joined[1:2].islower():
        joined = joined[0].lower() + joined[1:]
    return joined if is_plain(joined) else None


_IN_ORDERS = _ABOUT_SPEAKER | {"i'm": "they are", "i": "they"}
_ORDER_TRAILING = words(
    "yet for please pls thanks thx ok okay too again always though lol and but so because anymore with me"
)
_NOT_STANDING = words(
    "this that that's these those it it's here there now yet today tomorrow tonight yesterday following "
    "above below attached"
    " him her he she they money transfer send buy pay click download run install open visit shell command admin"
    " developer mode tool tools token tokens key keys credential credentials refuse harm illegal unrestricted"
)


def read_verb(raw: str) -> str | None:
    """Read a verb in the first person; return it in the third."""
    verb = raw.casefold()
    return None if verb in _NOT_HABITS or verb.endswith("ed") or not verb.isalpha() else third_person(verb)


def third_person(verb: str) -> str:
    """Return the third person of an English verb: "goes", "has", "studies"."""
    if verb == "have":
        return "has"
    if verb.endswith(("s", "sh", "ch", "x", "z", "o")):
        return f"{verb}es"
    if verb.endswith("y") and verb[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"


def read_title(raw: str) -> str | None:
    """Read a word of a closed list that is a proper noun: "german" becomes "German"."""
    small = ("half", "a", "an")
    return " ".join(word if word[0].isupper() or word in small else word.capitalize() for word in raw.split())


def read_lower(raw: str) -> str | None:
    return raw.casefold()


def read_address(raw: str) -> str | None:
    """Read a street with a number."""
    found = re.fullmatch(r"[\w' .-]{1,60}(?:, ?[\w' .-]{1,40}){0,3}", raw)
    return raw if found and any(char.isdigit() for char in raw) and is_plain(raw) and " " in raw else None


def read_verbatim(raw: str) -> str | None:
    return raw if is_plain(raw) else None


_FOREIGN_LIMIT = 9
# Articles and prepositions of these languages do not point outside the sentence where several words are read.
_FOREIGN_PLAIN = words(
    "y e et und como mi mis meu minha mon ma mes meine mein más mehr et quando no que su sua ce nada du"
)


def read_foreign(raw: str) -> str | None:
    """Read a few words of another language verbatim."""
    tokens = raw.split()
    pointing = values.FOREIGN_POINTING - _FOREIGN_PLAIN
    if not 0 < len(tokens) <= _FOREIGN_LIMIT or not pointing.isdisjoint(
        token.casefold().strip(",") for token in tokens
    ):
        return None
    return raw if is_plain(raw) else None


def read_kana(raw: str) -> str | None:
    return raw if is_plain(raw) and not _JAPANESE_POINTING.search(raw) else None


_JAPANESE_POINTING = re.compile(r"それ|これ|あれ|ここ|そこ|あなた|君|彼|何|誰|は|が|を")


READERS: dict[str, Reader] = {
    **values.READERS,
    "rest": read_rest,
    "past": read_past,
    "theirs": read_theirs,
    "what": read_what,
    "employer": read_employer,
    "organization": read_organization,
    "names": read_names,
    "person": read_person,
    "order": read_order,
    "verb": read_verb,
    "title": read_title,
    "lower": read_lower,
    "address": read_address,
    "verbatim": read_verbatim,
    "dated": read_verbatim,
    "date": read_verbatim,
    "words": read_foreign,
    "ended": read_foreign,
    "kana": read_kana,
}


_BEFORE_HEAD = words(
    "a an the my our their his her its two three four five six seven eight nine ten some several another second new old"
    " to in on at for with away no any own"
)
_AFTER_HEAD = words(
    "in on at with from for of near called named to and or every each twice once daily again since until who that which"
    " most during after before by as left together over than"
)
_ASPECTS = tuple(
    (re.compile(pattern, re.IGNORECASE), aspect)
    for pattern, aspect in (
        (r"\bemoji", "emojis"),
        (rf"\b(?:in|speak|language) (?:{TONGUES})\b", "language"),
        (r"\b(?:bullets?|bullet points?|sentences|paragraphs?|markdown|tables?|lists?|plain text)\b", "format"),
        (r"\b(?:short|brief|briefly|concise|long|detailed|words or less|to the point)\b|\bunder \d+", "length"),
        (r"\b(?:metric|imperial|celsius|fahrenheit|kilomet\w+|miles|units)\b", "units"),
        (r"\b(?:euros?|dollars|pounds|currency|prices)\b", "currency"),
        (r"\bspelling|british english|american english\b", "spelling"),
        (r"\b(?:formal|informal|formally|informally|polite|casual)\b", "manner"),
        (r"\b(?:24|12)[- ]hour\b|\bdates?\b", "dates"),
    )
)


def head_of(value: str) -> str:
    """Return the word that a phrase is about, for a slot: "an old dog, Rex" is about a dog."""
    tokens = value.casefold().split(",")[0].split()
    while len(tokens) > 1 and tokens[0] in _BEFORE_HEAD:
        tokens = tokens[1:]
    for index, token in enumerate(tokens[1:], 1):
        if token in _AFTER_HEAD:
            tokens = tokens[:index]
            break
    return singular(tokens[-1]) if tokens else ""


def aspect_of(order: str) -> str:
    """Return what an instruction is about, for a slot: of two on the language, the later one holds."""
    return next((aspect for pattern, aspect in _ASPECTS if pattern.search(order)), order)


def slot_values(values_read: Mapping[str, str]) -> dict[str, str]:
    """Return the values by which a slot is named: singular; `_head` for what a phrase is about."""
    slots: dict[str, str] = {}
    for name, value in values_read.items():
        slots[name] = singular(value)
        slots[f"{name}_head"] = aspect_of(value) if name.startswith("order") else head_of(value)
    return slots


def singular(text: str) -> str:
    """Drop a plural "s" at the end, so that "peanuts" and "peanut" are one slot."""
    return text[:-1] if len(text) > 4 and text.endswith("s") and not text.endswith(("ss", "us", "is")) else text


def reader_of(group: str) -> Reader:
    """Return the reader of a pattern's group; digits at its end only tell it from another group."""
    return READERS[group.rstrip("0123456789")]
