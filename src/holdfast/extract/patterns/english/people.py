"""Relatives, partners, friends and animals: their names, and what they are and do."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.extract.patterns.english.vocabulary import (
    BELIEFS,
    BODY,
    COUNTS,
    DIETS,
    MANY_RELATIVES,
    NATIONALITIES,
    ONE_RELATIVE,
    PARTNERS,
    PETS,
    PETS_TOGETHER,
    RELATIVES_TOGETHER,
    STATES_OF_HEALTH,
    WHICH,
)
from holdfast.extract.patterns.rules import ExtractionRule, Needs, Since, rule

_NAME = r"(?-i:[A-Z\u00c0-\u00de])[\w'-]+( (?-i:[A-Z\u00c0-\u00de])[\w'-]+)?"
_BEINGS = f"{MANY_RELATIVES}|{ONE_RELATIVE}|{PARTNERS}|{PETS}"
_GROUPS = f"{RELATIVES_TOGETHER}|{PETS_TOGETHER}"
_PERSON = rf"(my|our) <person={WHICH}({_BEINGS}|{_GROUPS})(,? {_NAME}\b(?!'s),?)?>"
_KIN = "sister|brother|son|daughter|aunt|uncle|niece|nephew|cousin|child|kid|baby|grandchild|grandson|granddaughter"
_NOT_BEING = (
    "bit|pain|mess|nightmare|idiot|jerk|saint|angel|genius|liar|hero|joke|star|fool|little|lot|great|good|bad|terrible"
    "|nice|huge|big|total|real|very|really|such|wonderful|lovely|amazing|monster|legend|treasure|sweetheart|handful"
    "|mystery|problem|night|mile|while|different|true|fan|man|woman|person|guy"
)
_NUMBER = (
    r"\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:-\w+)?|a hundred"
)
_KIND = "{person}"


_CALLED = r"(?P<someone>[^\s,]+(?: [^\s,]+)?)"
_HAVE_ONE = r"(i|we) (have|got|just got|adopted|just adopted|bought) (a|an|another|a second) ([\w'-]+ )??"
# {named} is "my older sister", {one} "older sister"; the second member says if the sentence is read to its end.
_NAMINGS = (
    (rf"{{named}}('s name is| is called| is named|'s called|'s named| goes by) {_CALLED}", False),
    (
        rf"{_HAVE_ONE}{{one}},? ((who's |he's |she's |that's )?(called|named)|whose name is"
        rf"|(and )?(his|her|its|their) name( is|'s)|(he|she|it)('s| is) (called|named)) {_CALLED}(?:[ ,].*)?",
        True,
    ),
    (rf"(?P<someone>{_NAME}), my {{one}}, .+", True),
    (rf"(?P<someone>{_NAME}) is my {{one}}( .*)?", False),
)


def _names() -> Iterator[ExtractionRule]:
    text = "{whose} {word} is called {someone}."
    for kinds, key in (
        (f"{MANY_RELATIVES}|{PETS}", "{word}:{someone}"),
        (ONE_RELATIVE, "{word}"),
        (PARTNERS, "partner"),
    ):
        one = f"{WHICH}<word={kinds}>"
        named = f"(my|our) {one}"
        anywhere = rf"\b{named},? (?P<someone>[^\W\d_][^\s,]+(?: [^\W\d_][^\s,]+)?)"
        yield rule(anywhere, text, key, Since.ALWAYS, anywhere=True)
        yield rule(
            rf"{named}( is|'s) (?P<introduced>.+)",
            text.replace("someone", "introduced"),
            key.replace("someone", "introduced"),
            Since.ALWAYS,
            Needs.WHOLE,
        )
        for naming, across in _NAMINGS:
            said = naming.replace("{named}", named).replace("{one}", one)
            yield rule(said, text, key, Since.ALWAYS, across=across)


_FACTS = (
    # predicate, its reading, the end of the key
    (
        "<word2=live|lives|is living|are living|has lived|have lived> <theirs=(in|with|near|at|on|abroad|alone|next"
        "|outside|upstairs"
        "|by|far|around|here) ?.*>",
        "{word2} {theirs}",
        "lives_in",
    ),
    ("<word2=has|have> <what>", "{word2} {what}", "has:{what_head}"),
    (
        "<word2=is|are> <theirs=in the (army|navy|air force|police|marines|military|civil service|reserves)( .+)?>",
        "{word2} {theirs}",
        "work",
    ),
    ("(has |have |just )?moved in( with me| with us)?", "moved in{when}", "lives_in"),
    ("'s birthday( is|'s)( on)? <day>", "birthday is {day}", "birthday"),
    ("(has |have |just )?moved to <theirs>", "moved to {theirs}{when}", "lives_in"),
    ("<word2=works|work|is working|are working> <theirs>", "{word2} {theirs}", "work"),
    ("<word2=studies|study|teaches|teach> <theirs>", "{word2} {theirs}", "work"),
    ("(is|are) studying <theirs>", "studies {theirs}", "work"),
    ("(is|'s) <theirs=(allergic|intolerant) to .+>", "is {theirs}", "is_allergic"),
    (
        f"<word2=is|are|'s> <verbatim=(a |an )?(now )?({STATES_OF_HEALTH}|{DIETS}|{NATIONALITIES}|{BELIEFS}"
        "|retired|divorced|separated|married|single|engaged|widowed|unemployed|expecting( a baby)?|in hospital|in care"
        "|adopted|twins|identical twins)>( (and|so|now|but|since)\\b.*)?",
        "{word2} {verbatim}",
        "is:{verbatim}",
    ),
    (
        rf"<word2=is|are|'s> <lower=(also )?({_NUMBER})( and ({_NUMBER}))?>( (years|months|weeks) old| now| already)?",
        "{word2} {lower} years old",
        "age",
    ),
    (
        rf"<word2=is|'s> <theirs=(also )?(an?|the) (?!({_NOT_BEING})\b)[\w'-]+( .+)?>",
        "{word2} {theirs}",
        "is_a",
    ),
    (
        "(is|are) <theirs=on (an? .*(diet|leave|medication|dialysis)|parental leave|maternity leave|insulin"
        "|medication)\\b.*>",
        "is {theirs}",
        "on",
    ),
    (rf"<word2=turned> <theirs=({_NUMBER})\b.*>", "{word2} {theirs}{when}", "age"),
    (rf"<word2=turns|is turning> <theirs=({_NUMBER})\b.*>", "{word2} {theirs}{when}", "plan:age"),
    ("(was|were|is|'s) <theirs=born .+>", "was {theirs}{when}", "born"),
    ("(was|were) born", "was born{when}", "born"),
    (
        "(has )?<word2=died|passed away|passed|was put down|is dead|ran away|has died|was stolen>( of .+| from .+)?",
        "{word2}{when}",
        "died",
    ),
    (
        "<word2=plays|play|speaks|speak|runs|owns|drives|collects|sings|paints|coaches|trains for|goes to|go "
        "to|attends|attend|"
        "loves|love|likes|like|hates|hate|prefers|wears|eats|eat|drinks|smokes|takes|suffers from|used to work"
        "|grew up in|comes from|come from|doesn't eat|don't eat|doesn't like|don't like|can't eat|doesn't drink"
        "|doesn't speak|is learning|are learning|is into|are into|is afraid of|are afraid of|is scared of|is "
        "from|are from|sleeps|moved in with|moves in with|is good at|is married to|is engaged to"
        "|is dating"
        "|is training for|is called|are called> <theirs>",
        "{word2} {theirs}",
        "{word2}:{theirs}",
    ),
    (
        "<word2=starts|graduates|finishes|is starting|starts at|leaves|retires|turns>( <theirs>)?",
        "{word2} {theirs}{when}",
        "plan:{theirs}",
    ),
    (
        "<word2=started|graduated|finished|retired|got married|got engaged|got divorced|had a baby"
        "|gave birth|broke|joined|opened|founded|dropped out|won|lost|just started|just graduated"
        "|had puppies|had kittens|had surgery|has just started|goes to school>( <theirs>)?",
        "{word2} {theirs}{when}",
        "{word2}:{theirs}",
    ),
    (
        "<word2=is|are> <theirs=(getting married|moving|visiting|coming|staying|arriving|flying|graduating|starting|"
        "turning|having|expecting|due|undergoing|retiring)\\b.*>",
        "{word2} {theirs}{when}",
        "plan:{theirs}",
    ),
    (
        rf"<word2=broke|sprained|hurt|tore|injured> (his|her|their) <theirs=(\w+ )?({BODY})\b.*>",
        "{word2} their {theirs}{when}",
        "injury:{theirs}",
    ),
)


def _facts() -> Iterator[ExtractionRule]:
    for said, reading, key in _FACTS:
        yield rule(
            _PERSON.replace("(?!'s)", "") + said if said.startswith("'s") else f"{_PERSON} {said}",
            "{whose} {person}" + ("'s " if said.startswith("'s") else " ") + reading + ".",
            "{person}/" + key,
            needs=Needs.WHOLE if "is_a" in key else Needs.NOTHING,
            ahead="plan" in key,
        )


_OWN_BEINGS = f"{_KIN}|twin|{PETS}|{_GROUPS}"
_HERD = rf"(?P<what>({COUNTS}|another|no|triplets|twin) ([\w'-]+ ){{0,3}}({_OWN_BEINGS})"
_OURS = (
    rule(
        rf"(i|we)( have|'ve got| own| keep| got| just got| adopted| just adopted| foster|'ve adopted) {_HERD})"
        r"(?:,| called| named|:| -) <names>(,(?! and).*|;.*| who .*)?",
        "{who} has {what}, {names}.",
        "has:{what_head}",
        Since.SAID,
        across=True,
    ),
    rule(
        rf"(i|we) (have|own|keep|foster) {_HERD}\b(?! (who|that)\b).*)",
        "{who} has {what}.",
        "has:{what_head}",
        Since.SAID,
    ),
    rule(
        r"(i|we) <word=got|just got|adopted|just adopted|rescued|have adopted|'ve adopted|bought> "
        rf"{_HERD}\b(?! (who|that|to)\b).*)",
        "{who} {word} {what}{when}.",
        "has:{what_head}",
        Since.SAID,
    ),
    rule(
        rf"(i|we) (keep|have|breed|raise|own) <rest=({PETS_TOGETHER}|kids|children)\b(?! who)( (and|in|on|at"
        r"|with) .+)?>",
        "{who} has {rest}.",
        "has:{rest_head}",
        Since.SAID,
    ),
    rule(
        rf"(i|we) (don't|do not) have <rest=(any|a|an) ({_BEINGS}|{_GROUPS})( or .+)?>",
        "{who} does not have {rest}.",
        "has:{rest_head}",
        Since.SAID,
        replaces=True,
    ),
    rule(
        rf"(i|we) (don't have|no longer have) (any |a |an |the )?<lower={_BEINGS}|{_GROUPS}>( any ?more)?",
        "{who} no longer has a {lower}.",
        "has:{lower_head}",
        ends="{lower}",
    ),
    rule(
        r"(i|we|i've|we've) (gave|had to give|given|have to give|rehomed|sold|had to rehome) (away |up )?(my"
        rf"|our|the) <person={WHICH}({PETS}|{PETS_TOGETHER})( {_NAME})?>( away| up)?( .*)?",
        "{who} gave away their {person}{when}.",
        "has:{person_head}",
        ends="{person}",
    ),
    rule(
        rf"(i|we) (lost|had to put down|put down) (my|our) <person={WHICH}({_BEINGS})( {_NAME})?>( .*)?",
        "{who} lost their {person}{when}.",
        "has:{person_head}",
        ends="{person}",
    ),
    # children and ancestors
    rule(
        r"i'm <rest=(an?|the) (proud |single |new )?(mother|father|mom|mum|dad|parent|grandmother|grandfather"
        r"|grandma|grandpa"
        r"|grandparent|aunt|uncle|godmother|godfather|twin|only child|widow|widower|triplet|middle child"
        r"|stepmom|stepdad)\b( (of|to|with) .+)?>( (now|and|so|but)\b.*)?",
        "{who} is {rest}.",
        "is:{rest}",
    ),
    rule(
        r"(i|we|i've|i'm) (just )?(became|become|becoming|going to be|going to become) <rest=(an?|the) (proud "
        r")?(mother|father|mom|mum|dad|parent"
        r"|grandmother|grandfather|grandma|grandpa|grandparents|aunt|uncle|godmother|godfather|parents)\b.*>",
        "{who} became {rest}{when}.",
        "is:{rest}",
    ),
    rule(
        r"(i|we) (just )?<word=had|welcomed|adopted> <past=(a|our|twin|my) (first |second |third |little "
        r"|healthy )?(baby(?! shower)|son|daughter|child|girl|boy|boys|girls)\b.*>",
        "{who} {word} {past}{when}.",
        "birth:{past}",
    ),
    rule(
        r"(i'm|we're) <rest=(expecting|having) (a baby|twins|our|my|a (boy|girl|child|son|daughter)|triplets)\b.*>",
        "{who} is {rest}{when}.",
        "expecting",
        ahead=True,
    ),
    rule(r"(i'm|we're) pregnant( with <rest>)?", "{who} is pregnant.", "expecting"),
    rule(
        r"(i|we) have <rest=no (siblings|children|kids|pets|brothers or sisters|family)>",
        "{who} has {rest}.",
        "has:{rest_head}",
    ),
    rule(
        rf"(i've|we've) had (our|a|my|the|this) <person={WHICH}({PETS})( {_NAME})?>( (for|since) .+)?",
        "{who} has a {person}.",
        "has:{person_head}",
    ),
    rule(rf"(i|we) foster <rest=({PETS_TOGETHER}|children|kids)\b.*>", "{who} fosters {rest}.", "has:{rest_head}"),
    rule(
        r"i'm the <rest=(oldest|youngest|eldest|middle|second|only) (child |girl |boy |daughter |son |one "
        r")?(of .+|in .+)>",
        "{who} is the {rest}.",
        "siblings",
    ),
)
_STATUS = (
    rule(
        r"(i|we|i've|we've) (just )?<word=got divorced|separated|split up|broke up>( (and|but|so|in|at|again)\b.*)?",
        "{who} {word}{when}.",
        "partner",
        replaces=True,
    ),
    rule(
        r"(i'm|i've been|we're|we've been) (now |recently |newly )?<word=divorced|separated|widowed|single|a "
        r"widow|a widower>"
        r"( (now|again|since|for|and|so|with|but)\b.*)?",
        "{who} is {word}{when}.",
        "partner",
        needs=Needs.WHOLE,
        replaces=True,
    ),
    rule(
        r"(i'm|we're|i've been) (happily )?married to <introduced>( for .+| since .+)?",
        "{who} is married to {introduced}.",
        "partner",
    ),
    rule(r"(i'm|we're) engaged to <introduced>", "{who} is engaged to {introduced}.", "partner"),
    rule(
        rf"(i'm|we're) (dating|seeing|going out with|together with|in a relationship with) (?P<someone>{_NAME})( .*)?",
        "{who} is dating {someone}.",
        "partner",
    ),
    rule(
        r"i('m dating|'m seeing|'m going out with|'ve met|'m with| met| started dating| started seeing|'ve "
        r"started dating|'ve started seeing)"
        r" (someone|somebody|a \w+)( new)?,? ((his|her|their) name is|(called|named)|(he's|she's) called) "
        rf"(?P<someone>{_NAME})( .*)?",
        "{who} is dating {someone}.",
        "partner",
        across=True,
    ),
    rule(
        rf"(?P<someone>{_NAME}) and i <rest=(are getting married|got married|are married|are engaged|got "
        r"engaged|are expecting|"
        r"broke up|split up|have split up|have broken up|separated|are divorced|got divorced|are together|are "
        r"dating|moved in together"
        r"|have separated|are moving in together|have been (together|married|dating)|live together|live apart)\b.*>",
        "{who} and {someone} {rest}{when}.",
        "partner",
        across=True,
        replaces=True,
        ahead=True,
    ),
    rule(
        rf"(i|we|i've) <rest=(broke up|split up|separated|broken up) with> (my (ex-?)?\w+ )?(?P<someone>{_NAME})( .*)?",
        "{who} {rest} with {someone}{when}.",
        "partner",
        ends="{someone}",
    ),
    rule(
        rf"(i|we|i've|we've) (just )?<word=got married to|married|got engaged to> (?P<someone>{_NAME})( (and"
        r"|but|so|in|at)\b.*)?",
        "{who} {word} {someone}{when}.",
        "partner",
        replaces=True,
    ),
    rule(
        r"(i|we|i've|we've) (just )?<word=got married|got engaged>( (and|but|so|in|at|again)\b.*)?",
        "{who} {word}{when}.",
        "marital",
        replaces=True,
    ),
    rule(
        r"(i'm|i've been|we're|we've been) (now |happily |recently |newly )?<word=married|engaged|divorced"
        r"|separated|widowed|single|in an? ([\w-]+ )?relationship|a widow|a widower>"
        r"( (now|again|since|for|and|so|with|but)\b.*)?",
        "{who} is {word}{when}.",
        "marital",
        needs=Needs.WHOLE,
    ),
    rule(
        rf"my {WHICH}({PARTNERS}) and i <rest=(are getting married|got married|are married|are engaged|got "
        r"engaged|are expecting|broke up|split up|"
        r"have split up|separated|are divorced|got divorced|moved in together|are moving in together|live "
        r"together|live apart|have been (together|married|engaged|dating))\b.*>",
        "{who} and their partner {rest}{when}.",
        "marital",
        across=True,
        replaces=True,
        ahead=True,
    ),
    rule(
        r"i have (a |an )(new )?<rest=boyfriend|girlfriend|partner|fiancé|fiancée|husband|wife>",
        "{who} has a {rest}.",
        "marital",
    ),
    rule(
        rf"(i've been|we've been) (together )?with (?P<someone>{_NAME})( (for|since) .+)?",
        "{who} is with {someone}.",
        "partner",
    ),
    rule(
        r"(i've|we've) been <rest=(together|married|engaged|dating|a couple) (for|since) .+>",
        "{who} has been {rest}.",
        "marital",
    ),
    rule(r"(i'm|we're) getting <word=married|divorced>", "{who} is getting {word}.", "marital", replaces=True),
    rule(
        rf"(my|the) {WHICH}({PARTNERS}) and i've been <rest=(together|married|engaged|dating)\b.*>",
        "{who} and their partner have been {rest}.",
        "marital",
    ),
    rule(
        rf"(?P<someone>{_NAME}) and i've <rest=(been (together|married|engaged|dating)|split up|broken up"
        r"|separated)\b.*>",
        "{who} and {someone} have {rest}{when}.",
        "partner",
        across=True,
        replaces=True,
    ),
)
PEOPLE = (*_names(), *_OURS[:1], *_STATUS, *_facts(), *_OURS[1:])
