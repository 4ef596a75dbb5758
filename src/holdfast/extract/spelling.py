"""Write informal English out: missing apostrophes, short forms, and sentences without a subject.

"im vegan" becomes "I'm vegan", "Started at Bosch" becomes "I started at Bosch". Patterns then need one form only.
"""

from __future__ import annotations

import re

_SHORT_FORMS = {
    "im": "I'm",
    "ive": "I've",
    "dont": "don't",
    "cant": "can't",
    "doesnt": "doesn't",
    "didnt": "didn't",
    "isnt": "isn't",
    "arent": "aren't",
    "wasnt": "wasn't",
    "wont": "won't",
    "havent": "haven't",
    "hasnt": "hasn't",
    "couldnt": "couldn't",
    "wouldnt": "wouldn't",
    "shouldnt": "shouldn't",
    "thats": "that's",
    "hes": "he's",
    "shes": "she's",
    "theyre": "they're",
    "weve": "we've",
    "youre": "you're",
    "names": "name's",
    "u": "you",
    "ur": "your",
    "pls": "please",
    "plz": "please",
    "bday": "birthday",
    "b-day": "birthday",
    "fav": "favourite",
    "fave": "favourite",
    "gf": "girlfriend",
    "bf": "boyfriend",
    "hubby": "husband",
    "rn": "right now",
    "atm": "at the moment",
    "bc": "because",
    "cuz": "because",
    "gonna": "going to",
    "wanna": "want to",
    "yrs": "years",
    "tho": "though",
    "w/": "with",
    "&": "and",
    "uni": "university",
    "kinda": "kind of",
}
_SHORT = re.compile(
    r"(?<!\S)my names(?= is\b|\s)|(?<![\w'&])(?:"
    + "|".join(re.escape(short) for short in _SHORT_FORMS if short not in ("names", "&", "w/"))
    + r")(?![\w'-])|(?<=\s)w/(?=\s)",
    re.IGNORECASE,
)
# These words say that "im" and "u" are words of another language.
_NOT_ENGLISH = re.compile(
    r"\b(?:ich|und|der|die|das|ist|wir|bin|habe|mein|meine|arbeite|wohne|den|dem|seit|je|suis|sono|ho|yo|eu|het|een)\b",
    re.IGNORECASE,
)
_LONG_FORMS = tuple(
    (re.compile(pattern, re.IGNORECASE), plain)
    for pattern, plain in (
        (r"\bi am\b", "I'm"),
        (r"\bwe are\b", "we're"),
        (r"\bdo not\b", "don't"),
        (r"\bdoes not\b", "doesn't"),
        (r"\b(?:cannot|can not)\b", "can't"),
        (r"\bi will\b", "I'll"),
        (r"\bwe will\b", "we'll"),
        (r"\bi would\b", "I'd"),
        (
            r"\b(i|we)(?:'ve| have) (?:only )?got\b(?! (?:married|engaged|divorced|promoted|fired|laid|let|to)\b)",
            r"\1 have",
        ),
        (
            r"\b(i|we) have (?=(?:just |recently |already |now |also |never |always )?"
            r"(?:been|had|lived|worked|moved|quit|left|become|gone|taken|given|started|stopped|joined|bought|sold"
            r"|adopted"
            r"|booked|signed|finished|broken|broke|lost|split|separated|switched|retired|studied|dropped|met|cut"
            r"|decided)\b)",
            r"\1've ",
        ),
    )
)
_HAS_LONG_FORM = re.compile(r"\b(?:am|are|not|will|would|have|got|cannot)\b|'ve got", re.IGNORECASE)
_FILLERS = re.compile(
    r"(?P<who>i'm|i've|i|we|we're|we've) (?:(?:really|also|just|absolutely|totally|still|personally|actually|currently"
    r"|truly|definitely|simply|recently|genuinely|originally|finally|officially|mainly|so|very|do(?= "
    r"(?:love|like|enjoy|hate|prefer|live|work|have|eat|drink|play|speak|own|collect)\b)|kind of|secretly"
    r"|myself"
    r"|even|already|especially|particularly|honestly|basically|literally|happily|sadly|now(?! (?:at|with"
    r"|working|in)\b)|proudly|temporarily) )+",
    re.IGNORECASE,
)
_AFTERTHOUGHT = re.compile(
    r"(?: (?:btw|by the way|lol|haha+|lmao|tho|though|too|as well|just so you know|fyi|actually|honestly"
    r"|unfortunately|sadly"
    r"|yay|tbh|obviously|of course|by now|thank god|luckily|finally))+$",
    re.IGNORECASE,
)
_NO_SUBJECT = (
    (
        re.compile(
            r"(?:just |recently |finally |already |actually )*(?=(?:got|had|started|joined|moved|quit|left|bought|sold"
            r"|adopted|graduated|dropped out|finished|retired|turned|signed|booked|broke|became|switched|gave up|gave"
            r"|lost|stopped|grew up|studied|settled|took up|picked up|resigned|accepted|landed|went vegan"
            r"|went vegetarian|cancelled|canceled|enrolled|passed)\b)",
            re.IGNORECASE,
        ),
        "I ",
    ),
    (re.compile(r"(?:just )?(?=(?:been|worked|lived) )", re.IGNORECASE), "I've "),
    (
        re.compile(
            r"(?=(?:allergic to|vegan|vegetarian|pescatarian|originally from|from (?!now|here|time|what|there)"
            r"|based in|fluent in|married|single"
            r"|divorced|engaged to|pregnant|not a (?:big |huge )?fan|working (?:at|for|as|in)|living in|living with"
            r"|learning|studying|training (?:for|to)|moving to|flying to|starting (?:at|a|my|work|university|school)"
            r"|expecting|dating|saving|lactose|left-handed|right-handed|diabetic|afraid of|scared of|terrified of"
            r"|obsessed with|retired|self-employed|unemployed|getting married)\b)",
            re.IGNORECASE,
        ),
        "I'm ",
    ),
    (re.compile(r"(?=born (?:and raised |on |in )?)", re.IGNORECASE), "I was "),
    (
        re.compile(
            r"(?=(?:love|hate|like|prefer|live in|live with|work (?:at|for|as|in)|enjoy|adore|dislike|can't stand"
            r"|can't eat|can't do|can't have|don't eat|don't drink|don't like|no longer|never eat|never drink"
            r"|speak (?:fluent|some|a little)"
            r"|have (?:a|an|two|three) (?:dog|cat|son|daughter|kid|kids|sister|brother|dogs|cats|sons|daughters)"
            r"|drive an?|fly to|leave for)\b)",
            re.IGNORECASE,
        ),
        "I ",
    ),
)


def write_out(sentence: str) -> str:
    """Write out the short forms of a sentence."""
    if _NOT_ENGLISH.search(sentence):
        return sentence
    return _SHORT.sub(_long_form, sentence)


def _long_form(found: re.Match[str]) -> str:
    short = found.group().casefold()
    return "my name's" if short == "my names" else _SHORT_FORMS[short]


def plain_forms(text: str) -> str:
    """Write a text in the forms that patterns expect, without fillers ("really")."""
    if _HAS_LONG_FORM.search(text):
        for long_form, short_form in _LONG_FORMS:
            text = long_form.sub(short_form, text)
    return _FILLERS.sub(r"\g<who> ", text)


def drop_afterthought(clause: str) -> str:
    return _AFTERTHOUGHT.sub("", clause)


def add_subject(clause: str) -> str:
    """Put the speaker before a clause that begins with a verb: "Started at Bosch"."""
    for beginning, subject in _NO_SUBJECT:
        found = beginning.match(clause)
        if found:
            rest = clause[found.end() :]
            return subject + rest[:1].lower() + rest[1:]
    return clause
