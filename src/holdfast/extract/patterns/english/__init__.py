"""English statements about oneself, by topic."""

from __future__ import annotations

from holdfast.extract.patterns.english.about import (
    HABITS,
    HOBBIES,
    LANGUAGES_SPOKEN,
    NAMES,
    ROUTINES,
    STUDIES,
    TRAITS_SAID,
)
from holdfast.extract.patterns.english.health import HEALTH
from holdfast.extract.patterns.english.home import HOME
from holdfast.extract.patterns.english.people import PEOPLE
from holdfast.extract.patterns.english.plans import EVENTS, PLANS
from holdfast.extract.patterns.english.requests import REQUESTS
from holdfast.extract.patterns.english.tastes import TASTES
from holdfast.extract.patterns.english.things import THINGS_OWNED
from holdfast.extract.patterns.english.work import WORK
from holdfast.extract.patterns.rules import Language, compile_pattern, words

# The first rule that fits a clause is taken: those that say more stand before those that say less.
ENGLISH = Language(
    "The user",
    words(
        "i we my our me it you please always never no don stop use keep be answer reply write speak talk "
        "explain from call in home the dates temperatures prices times short only skip remind ask address is "
        "are hired makes make gives give"
    ),
    compile_pattern(
        r"\b(?:if|unless|wish|wishes|imagine|pretend|suppose|supposing|assume|assuming|would(?! like you)|could|might"
        r"|maybe|perhaps"
        r"|probably|possibly|almost|nearly|dream|dreams|dreamed|dreamt|fantasy world|once upon|said|says"
        r"|say|saying|told(?! me to avoid)"
        r"|tells|asked|asks|thinks?|thought|believes?|believed|claims?|claimed|heard|guess|swears?|reckons?|mentioned"
        r"|wrote|quote|quoted|joke|jokes|joking|character is|as though|were to|used to(?! be a)|supposed to"
        r"|pretty sure|not sure"
        r"|unsure|whether|let's say|apparently|allegedly|rumou?r|hopefully|temporarily|formerly|would've"
        r"|wouldn't|lie|lied"
        r"|lying|fake|my character|in the game|in the movie|in the book|in the story|in the play|novel is about"
        r"|yeah right|as if|role play)\b"
        r"|\bnot\W*$"
    ),
    (
        *REQUESTS,
        *NAMES,
        *PLANS,
        *WORK,
        *HOME,
        *PEOPLE,
        *HEALTH,
        *LANGUAGES_SPOKEN,
        *STUDIES,
        *THINGS_OWNED,
        *HOBBIES,
        *TASTES,
        *TRAITS_SAID,
        *ROUTINES,
        *HABITS,
        *EVENTS,
    ),
)
