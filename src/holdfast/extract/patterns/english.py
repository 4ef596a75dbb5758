"""English patterns."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.extract.patterns.rules import ExtractionRule, Language, Needs, Since, compile_pattern

# One person may have many of these, so the name is part of the slot.
_MANY = (
    "sister|brother|son|daughter|friend|best friend|cousin|aunt|uncle|niece|nephew|colleague"
    "|coworker|co-worker|neighbor"
    "|neighbour|roommate|flatmate|classmate|teammate|grandson|granddaughter|dog|puppy|cat|kitten"
    "|parrot|hamster|rabbit"
    "|horse|turtle|child|student|stepson|stepdaughter|sister-in-law|brother-in-law|godson|goddaughter"
)
_ONE = (
    "mother|mom|mum|father|dad|wife|husband|boss|manager|girlfriend|boyfriend|partner|fiancé|fiancée|fiance|fiancee"
    "|grandmother|grandma|grandfather|grandpa|therapist|dentist|mother-in-law|father-in-law|stepmother|stepfather"
    "|landlord|landlady|supervisor|coach"
)
SAME_RELATION = {
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "fiance": "fiancé",
    "fiancee": "fiancée",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "co-worker": "coworker",
    "neighbour": "neighbor",
}
_WHICH = "(?:older |younger |little |big |elder |twin |eldest |youngest |lovely |dear |dearest |new )?"
_PROFESSIONS = (
    "nurse|doctor|teacher|engineer|lawyer|programmer|developer|architect|designer|accountant|chef"
    "|cook|waiter|waitress"
    "|baker|barista|electrician|plumber|carpenter|mechanic|firefighter|pilot|journalist|writer|editor|translator"
    "|musician|actor|actress|photographer|scientist|researcher|biologist|chemist|physicist|dentist|pharmacist|surgeon"
    "|psychologist|therapist|paramedic|veterinarian|vet|librarian|professor|salesperson|cashier|manager|consultant"
    "|analyst|banker|realtor|farmer|gardener|driver|truck driver|hairdresser|tailor|soldier|student|assistant manager"
    "|social worker|data scientist|midwife|economist|statistician|recruiter|product manager|project manager"
    "|flight attendant|police officer|sysadmin|technician|welder|freelancer"
)
_PROFESSION_OF = (
    "(?:software|hardware|civil|mechanical|electrical|graphic|web|game|senior|junior|registered|high school"
    "|primary school|elementary school|medical|university|college|freelance|retired|paediatric|pediatric"
    "|marketing|financial|nursing|law|phd|math|maths|music|science|english|sales|bus|taxi|train|data)"
)

_LIKINGS = (  # first person, third person
    ("love|adore", "loves"),
    ("like", "likes"),
    ("enjoy", "enjoys"),
    ("hate|detest|despise|can't stand|loathe", "hates"),
    ("don't like|dislike|don't enjoy", "does not like"),
    ("prefer", "prefers"),
)

_EVENTS = (
    "adopted|attended|baked|bought|broke|built|celebrated|completed|cooked|created|dyed|enrolled in|explored|finished"
    "|founded|got|graduated from|graduated|hiked|hosted|invited|joined|launched|learned|left for|lost|made|met|moved"
    "|opened|organized|organised|painted|passed|performed|planted|played|published|quit|ran|read|received|recorded"
    "|returned from|sang|saw|signed up for|sold|started|submitted|sprained|took|taught|tried|turned"
    "|visited|volunteered"
    "|watched|went to|went on|went|won|wrote|got back from|came back from|applied to|applied for|flew to|drove to"
    "|participated in|helped organize|competed in|danced at|rescued|donated|traveled to"
    "|travelled to|checked out|set up"
    "|took part in|gave|had|led|reached|picked up|enjoyed|stayed in"
)
_MILESTONES = "graduated|retired|got married|got engaged|got promoted|got divorced|quit|turned \\d{1,2}"
_OCCASIONS = (
    "wedding|exam|interview|job interview|flight|appointment|dentist appointment|doctor's appointment|surgery|concert"
    "|graduation|driving test|anniversary|wedding anniversary|party|birthday party|last day"
    "|first day|due date|deadline"
    "|presentation|competition|tournament|game|race|marathon|recital|performance|vacation|trip|thesis defense"
)


_NAMES = (
    ExtractionRule(
        compile_pattern(r"my (?:first |full |real )?name(?: is|'s) (?P<name>.+)"), "{whose} name is {name}.", "name"
    ),
    ExtractionRule(
        compile_pattern(
            r"(?:please |just |you can |everyone |everybody |my friends |people )*"
            r"calls? me (?P<capital_name>.+)"
        ),
        "{who} is called {capital_name}.",
        "called",
    ),
    ExtractionRule(
        compile_pattern(r"i'm (?P<introduced>.+)"), "{whose} name is {introduced}.", "name", needs=Needs.GREETING
    ),
)


_PLACES = (
    ExtractionRule(
        compile_pattern(
            r"(?:(?:i|we)(?: live|'ve lived|'ve been living|'m living|'re living)|(?:i'm|we're) (?:based|living))"
            r" in (?P<place>.+)"
        ),
        "{who} lives in {place}.",
        "lives_in",
        Since.SAID,
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"(?:i|we)(?:'ve)? moved from (?P<former>.{1,60}?) to (?P<place>.+)"),
        "{who} moved from {former} to {place}{when}.",
        "lives_in",
        Since.SAID,
        replaces=True,
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"(?:i|we)(?:'ve)? moved (?:back )?to (?P<place>.+)"),
        "{who} moved to {place}{when}.",
        "lives_in",
        Since.SAID,
        replaces=True,
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"(?:(?:i|we) no longer live|(?:i'm|we're) no longer (?:living|based)) in (?P<former>.+)"),
        "{who} no longer lives in {former}.",
        "lives_in",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"(?:i|we) don't live in (?P<former>.+) any ?more"),
        "{who} no longer lives in {former}.",
        "lives_in",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"(?:i'm|i come) from (?P<place>.+)"),
        "{who} is from {place}.",
        "is_from",
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"i was born (?:and raised )?in (?P<place>.+)"),
        "{who} was born in {place}.",
        "born_in",
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"i grew up in (?P<place>.+)"),
        "{who} grew up in {place}.",
        "grew_up_in",
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"my (?:home ?town|home country)(?: is|'s) (?P<place>.+)"),
        "{who} is from {place}.",
        "is_from",
    ),
)


_WORK = (
    ExtractionRule(
        compile_pattern(r"(?:i work|i'm working|i'm employed) as (?P<work>an? .+)"),
        "{who} works as {work}.",
        "occupation",
        Since.SAID,
    ),
    ExtractionRule(
        compile_pattern(
            rf"i'm (?P<word>an? (?:{_PROFESSION_OF} )?(?:{_PROFESSIONS}))"
            r"(?:$| (?:at(?! heart)|for|in|and|from|by|who|with|now|working|based)\b.*)"
        ),
        "{who} is {word}.",
        "occupation",
        Since.SAID,
        Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"(?:i work|i'm working) (?:at|for) (?P<work>.+)"),
        "{who} works at {work}.",
        "works_at",
        Since.SAID,
    ),
    ExtractionRule(
        compile_pattern(r"(?:i work|i'm working) in (?P<place>.+)"),
        "{who} works in {place}.",
        "works_in",
        Since.SAID,
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"i no longer work (?:at|for) (?P<work>.+)"),
        "{who} no longer works at {work}.",
        "works_at",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"i don't work (?:at|for) (?P<work>.+) any ?more"),
        "{who} no longer works at {work}.",
        "works_at",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"i (?:got|landed|accepted|started) (?:a )?(?:new )?job (?:at|with) (?P<work>.+)"),
        "{who} got a job at {work}{when}.",
        "works_at",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"i(?: study|'m studying|'m majoring in|'m doing a degree in) (?P<work>.+)"),
        "{who} studies {work}.",
        "studies",
        Since.SAID,
    ),
)


def _relations() -> Iterator[ExtractionRule]:
    for kinds, key in ((_MANY, "{word}:{someone}"), (_ONE, "{word}")):
        named = f"(?:my|our) {_WHICH}(?P<word>{kinds})"
        text = "{whose} {word} is called {someone}."
        yield ExtractionRule(
            compile_pattern(rf"\b{named},? (?P<someone>[^\W\d_][^\s,]+(?: [^\W\d_][^\s,]+)?)"),
            text,
            key,
            anywhere=True,
        )
        yield ExtractionRule(
            compile_pattern(
                rf"{named}(?:'s name is| is called| is named|'s called|'s named) "
                r"(?P<someone>[^\s,]+(?: [^\s,]+)?)"
            ),
            text,
            key,
        )
        yield ExtractionRule(
            compile_pattern(rf"{named}(?: is|'s) (?P<introduced>.+)"),
            text.replace("someone", "introduced"),
            key.replace("someone", "introduced"),
            needs=Needs.WHOLE,
        )
        yield ExtractionRule(
            compile_pattern(
                rf"(?:i|we)(?:'ve| have|'ve got| have got| got| adopted) (?:a|an|another) {_WHICH}(?P<word>{kinds}) "
                r"(?:called|named|whose name is) (?P<someone>[^\s,]+(?: [^\s,]+)?)"
            ),
            text,
            key,
        )
    yield ExtractionRule(
        compile_pattern(r"i'm (?:happily )?married to (?P<capital_name>.+)"),
        "{who} is married to {capital_name}.",
        "married_to",
        Since.SAID,
    )


def _likings() -> Iterator[ExtractionRule]:
    for said, reads in (("love", "loves"), ("like", "likes"), ("enjoy", "enjoys")):
        yield ExtractionRule(
            compile_pattern(rf"i (?:no longer|don't) {said} (?P<thing>.+?) any ?more"),
            f"{{who}} no longer {reads} {{thing}}.",
            "likes:{thing}",
            Since.SAID,
            replaces=True,
        )
    for said, reads in _LIKINGS:
        yield ExtractionRule(
            compile_pattern(rf"i (?:{said}) (?P<thing>.+)"),
            f"{{who}} {reads} {{thing}}.",
            "likes:{thing}",
            needs=Needs.WHOLE,
        )
        yield ExtractionRule(
            compile_pattern(rf"i (?:{said}) to (?P<doing>.+)"),
            f"{{who}} {reads} to {{doing}}.",
            "likes:{doing}",
            needs=Needs.WHOLE,
        )


_FAVOURITE = r"(?:all[- ]time )?favou?rite"
_FAVOURITES = (
    ExtractionRule(
        compile_pattern(r"i'm (?:a (?:big |huge |massive |total |real )?fan of|into|fond of) (?P<thing>.+)"),
        "{who} likes {thing}.",
        "likes:{thing}",
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(r"i'm not (?:a (?:big |huge )?fan of|into|fond of|keen on) (?P<thing>.+)"),
        "{who} does not like {thing}.",
        "likes:{thing}",
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(rf"my {_FAVOURITE} (?P<kind>.{{1,40}}?) (?:is|are) (?P<item>.+)"),
        "{whose} favourite {kind} is {item}.",
        "favourite:{kind}",
        needs=Needs.WHOLE,
    ),
    ExtractionRule(
        compile_pattern(rf"(?P<item>.{{1,60}}?) (?:is|are) my {_FAVOURITE} (?P<kind>.{{1,40}})"),
        "{whose} favourite {kind} is {item}.",
        "favourite:{kind}",
        needs=Needs.WHOLE,
    ),
)
_HEALTH = (
    ExtractionRule(
        compile_pattern(r"i'm (?:severely |deathly |very )?allergic to (?P<thing>.+)"),
        "{who} is allergic to {thing}.",
        "allergic:{thing}",
    ),
    ExtractionRule(
        compile_pattern(r"i'm (?:not|no longer) allergic to (?P<thing>.+?)(?: any ?more)?"),
        "{who} is not allergic to {thing}.",
        "allergic:{thing}",
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"i(?:'ve| have)(?: got)? an? (?:severe |bad )?(?P<thing>[\w-]{3,20}) allergy"),
        "{who} is allergic to {thing}.",
        "allergic:{thing}",
    ),
    ExtractionRule(
        compile_pattern(r"i (?:don't|never|no longer) (?P<word>eat|drink) (?P<thing>.+?)(?: any ?more)?"),
        "{who} does not {word} {thing}.",
        "eats:{thing}",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"i(?:'ve)? (?:stopped|quit|gave up|given up) (?P<word>eating|drinking) (?P<thing>.+)"),
        "{who} stopped {word} {thing}{when}.",
        "eats:{thing}",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(r"i(?:'ve)? (?:stopped|quit|gave up|given up) (?P<word>smoking|drinking|gambling)"),
        "{who} stopped {word}{when}.",
        "habit:{word}",
        Since.SAID,
        replaces=True,
    ),
    ExtractionRule(
        compile_pattern(
            r"i'm (?:a )?(?P<word>vegetarian|vegan|pescatarian|lactose intolerant|gluten intolerant"
            r"|coeliac|celiac|diabetic|left-handed|colou?r-?blind)(?:$| (?:and|now|so|since|for|myself)\b.*)"
        ),
        "{who} is {word}.",
        "is:{word}",
        Since.SAID,
    ),
)


_DATES = (
    ExtractionRule(
        compile_pattern(r"my birthday(?: is|'s)(?: on)? (?P<day>.+)"), "{whose} birthday is {day}.", "birthday"
    ),
    ExtractionRule(compile_pattern(r"i was born (?P<day>on .+)"), "{who} was born {day}.", "born_on"),
    ExtractionRule(
        compile_pattern(r"i'm (?P<number>\d{1,3}) (?:years old|years of age|yo|y/o)\b.*"),
        "{who} was {number} years old on {said_on}.",
        "age",
        Since.SAID,
    ),
    ExtractionRule(
        compile_pattern(rf"(?:i|we|my \w{{3,12}} and i|i've) (?P<word>{_EVENTS}) (?P<event>.+)"),
        "{who} {word} {event}{when}.",
        "event:{word} {event}",
        Since.SAID,
        Needs.PAST_DATE,
    ),
    ExtractionRule(
        compile_pattern(rf"i(?:'ve)? (?P<word>{_MILESTONES})"),
        "{who} {word}{when}.",
        "event:{word}",
        Since.SAID,
        Needs.PAST_DATE,
    ),
    ExtractionRule(
        compile_pattern(rf"my (?P<word>{_OCCASIONS}) is"),
        "{whose} {word} is{when}.",
        "occasion:{word}",
        Since.ALWAYS,
        Needs.COMING_DATE,
    ),
    ExtractionRule(
        compile_pattern(r"(?:i'm|we're) moving to (?P<place>.+)"),
        "{who} is moving to {place}{when}.",
        "moving_to",
        Since.ALWAYS,
        Needs.COMING_DATE,
    ),
)


ENGLISH = Language(
    "The user",
    compile_pattern(r"\b(?:i|i'm|i've|we|we're|we've|my|our|me|it's)\b"),
    compile_pattern(
        r"\b(?:if|unless|wish|wishes|imagine|pretend|suppose|supposing|assume|assuming|would|could|might"
        r"|maybe|perhaps"
        r"|probably|possibly|almost|nearly|dream|dreams|dreamed|dreamt|fantasy world|once upon|said|says"
        r"|say|saying|told"
        r"|tells|asked|asks|thinks?|thought|believes?|believed|claims?|claimed|heard|guess|swears?|reckons?|mentioned"
        r"|wrote|quote|quoted|song|joke|jokes|joking|character is|as though|were to|used to|supposed to"
        r"|pretty sure|not sure"
        r"|unsure|whether|let's say|apparently|allegedly|rumou?r|hopefully|temporarily|formerly|would've"
        r"|wouldn't|lie|lied"
        r"|lying|fake|my character|in the game|in the movie|in the book|in the story|novel is about"
        r"|yeah right|as if)\b"
        r"|\bnot\W*$"
    ),
    (*_NAMES, *_PLACES, *_WORK, *_relations(), *_likings(), *_FAVOURITES, *_HEALTH, *_DATES),
)
