"""Diet, allergies, illness and the body."""

from __future__ import annotations

from holdfast.extract.patterns.english.vocabulary import BODY, DIETS, ILLNESSES, STATES_OF_HEALTH
from holdfast.extract.patterns.rules import Needs, Since, rule

_SEVERELY = "(severely |deathly |very |highly |mildly |slightly |also )?"
_AFTER = r"( (and|now|so|since|for|myself|but|because|again|these|too|at)\b.*)?"
_STOPPED = "stopped|quit|gave up|given up|cut out|stopped"
_FOODS = "eat|drink|have|touch|tolerate|do|digest|handle"

_DIET = (
    rule(
        r"(i'm|i've been|i became|i went|i turned|i've gone|i've become|i'm on|i'm doing|i follow) (strictly "
        rf"|mostly |fully |a |an |the |now |almost |eating )*<lower={DIETS}>( diet)?{_AFTER}",
        "{who} is {lower}.",
        "diet",
    ),
    rule(
        r"(i'm|we're|i follow|i'm eating|i eat|i've been on|i'm following) (on |doing )?<rest=(an?|the|mostly"
        r"|strictly) ([\w-]+ ){1,3}diet\b.*>",
        "{who} is on {rest}.",
        "diet",
    ),
    rule(
        rf"(i'm not|i'm no longer) (a )?<lower={DIETS}>( any ?more)?",
        "{who} is no longer {lower}.",
        "diet",
        ends="{lower}",
    ),
    rule(
        rf"(i|i've) ({_STOPPED}) being <lower={DIETS}>( .*)?",
        "{who} is no longer {lower}.",
        "diet",
        ends="{lower}",
    ),
    rule(
        r"i (only )?eat <rest=(everything|anything|mostly|only|strictly|plant-based|halal|kosher|vegetarian"
        r"|vegan|organic|gluten-free)\b.*>",
        "{who} eats {rest}.",
        "diet",
    ),
    rule(r"i only <word=eat|drink> <thing>", "{who} only {word}s {thing}.", "diet:{thing}"),
    rule(r"i keep <word=kosher|halal>", "{who} keeps {word}.", "diet"),
    rule(r"i <verb=eat|drink> <thing> again", "{who} {verb} {thing}.", "eats:{thing_head}", replaces=True),
    rule(
        r"i (don't|never|no longer) <word=eat|drink|touch|do|digest|tolerate|consume> (?!(before|after|at|in"
        r"|out|until|much|enough|well|like|right|yet|today|on|that|with|for)\b)<thing>( any ?more)?",
        "{who} does not {word} {thing}.",
        "eats:{thing_head}",
        replaces=True,
    ),
    rule(
        rf"(i can't|i can no longer|i'm not allowed to|i must not|i shouldn't) <word={_FOODS}> (?!(right|yet"
        r"|now|today|until|before|after|anything|with|without)\b)<thing>( any ?more)?",
        "{who} cannot {word} {thing}.",
        "eats:{thing_head}",
    ),
    rule(
        r"(i avoid|i have to avoid|i need to avoid|i've cut out|i stay away from) (eating |drinking )?<thing>",
        "{who} avoids {thing}.",
        "eats:{thing_head}",
    ),
    rule(
        rf"(i|i've) ({_STOPPED}) <word=eating|drinking> <thing>",
        "{who} stopped {word} {thing}{when}.",
        "eats:{thing_head}",
        replaces=True,
    ),
    rule(
        rf"(i|i've) ({_STOPPED}) <word=smoking|drinking|gambling|vaping|biting my nails>{_AFTER}",
        "{who} stopped {word}{when}.",
        "habit:{word}",
        replaces=True,
    ),
    rule(
        rf"(i|i've) ({_STOPPED}) <thing=(sugar|alcohol|coffee|caffeine|meat|dairy|gluten|bread|carbs|sweets"
        r"|chocolate|soda|cigarettes|wine|beer"
        r"|cheese|fish|salt|milk|eggs|fast food|junk food|red meat|energy drinks)>( for .+| as .+| cold turkey"
        r"| completely| and .+)?",
        "{who} gave up {thing}{when}.",
        "eats:{thing_head}",
        replaces=True,
    ),
    rule(
        r"i (take|drink|like|have|prefer) my <rest=(coffee|tea|espresso|latte|steak|whisky|eggs) .+>",
        "{who} takes their {rest}.",
        "takes",
    ),
    rule(
        r"(i|we) haven't (eaten|drunk|touched|smoked|had) <thing>( (in|for) (.+ )?(years|months|ages|weeks))",
        "{who} has not had {thing} for a long time.",
        "eats:{thing_head}",
    ),
    rule(
        r"(i|we) haven't (eaten|drunk|touched|smoked) <thing>",
        "{who} has had no {thing}{when}.",
        "eats:{thing_head}",
        needs=Needs.PAST_DATE,
    ),
    rule(
        r"(i'm|we're) (eating|drinking) <rest=(less|more|no|only|mostly) .+>",
        "{who} eats or drinks {rest}.",
        "eats:{rest_head}",
    ),
    rule(
        r"i (went back to|started|am back to|'ve started) (eating|drinking) <thing>( again)?",
        "{who} eats or drinks {thing}.",
        "eats:{thing_head}",
        replaces=True,
    ),
    rule(
        r"i'm doing <rest=intermittent fasting|dry january|veganuary|sober october|whole ?30>",
        "{who} is doing {rest}.",
        "diet",
    ),
    rule(
        r"<thing> (makes|make) me <word=ill|sick|sneeze|itch|bloated|nauseous|anxious|sleepy>",
        "{thing} makes {who} {word}.",
        "health:{thing}",
    ),
    rule(
        r"<thing> (gives|give) me <rest=(a |an )?(hives|migraines?|rash|heartburn|headaches?|stomach ?ache"
        r"|cramps|nightmares)>",
        "{thing} gives {who} {rest}.",
        "health:{thing}",
    ),
    rule(
        r"i (get|break out in|have) <rest=(hives|migraines|a rash|heartburn|headaches|cramps|nightmares|eczema"
        r"|panic attacks) (from|after|when eating|if i eat) .+>",
        "{who} gets {rest}.",
        "health:{rest}",
    ),
    rule(r"i <verb=eat|drink> <thing>", "{who} {verb} {thing}.", "eats:{thing_head}", needs=Needs.WHOLE),
    rule(
        r"i <verb=eat|drink> <rest=(?!(to|it|my|up|out|in)\b).+>",
        "{who} {verb} {rest}.",
        "eats:{rest_head}",
        needs=Needs.WHOLE,
    ),
    rule(r"i fast <rest>", "{who} fasts {rest}.", "fasts"),
)
_ALLERGY = (
    rule(rf"i'm {_SEVERELY}allergic to <thing>", "{who} is allergic to {thing}.", "allergic:{thing}", Since.ALWAYS),
    rule(
        r"i'm (not|no longer) allergic to <thing>( any ?more)?",
        "{who} is not allergic to {thing}.",
        "allergic:{thing}",
        Since.ALWAYS,
        replaces=True,
    ),
    rule(
        r"i have an? (severe |bad |mild |serious )?allergy to <thing>",
        "{who} is allergic to {thing}.",
        "allergic:{thing}",
        Since.ALWAYS,
    ),
    rule(
        r"i have an? (severe |bad |mild |serious )?<thing=[\w-]{3,20}( [\w-]{3,20})?> allergy( .*)?",
        "{who} is allergic to {thing}.",
        "allergic:{thing}",
        Since.ALWAYS,
    ),
    rule(
        rf"i'm {_SEVERELY}(intolerant to|sensitive to) <thing>",
        "{who} is intolerant to {thing}.",
        "allergic:{thing}",
        Since.ALWAYS,
    ),
)
_BODY = (
    rule(r"i've been sober <rest=(for|since) .+>|i've been sober", "{who} is sober.", "habit:drinking"),
    rule(
        r"(i have|i've had|i suffer from|i live with|i struggle with|i've got|i've struggled with) (bad |mild "
        r"|severe |chronic |terrible |frequent |seasonal |really bad )?"
        rf"<lower={ILLNESSES}>( (and|so|since|for|in|from|that|which|but|as|ever|most|all|on|because|too)\b.*)?",
        "{who} has {lower}.",
        "health:{lower}",
    ),
    rule(
        r"(i was|i've been|i got|i've just been) (just )?(recently )?diagnosed with <rest>",
        "{who} was diagnosed with {rest}{when}.",
        "health:{rest}",
    ),
    rule(
        rf"(i'm|i've been) (now )?<rest=({STATES_OF_HEALTH})( in (my|one|both) [\w ]+?)?>{_AFTER}",
        "{who} is {rest}.",
        "is:{rest}",
    ),
    rule(
        r"(i|i've) <word=broke|broken|sprained|fractured|tore|torn|dislocated|injured|hurt|twisted> my "
        rf"<past=(\w+ )?({BODY})\b.*>",
        "{who} {word} their {past}{when}.",
        "injury:{past}",
    ),
    rule(
        rf"my <rest=((left|right|lower|upper) )?({BODY})> (is|are|has been|have been|'s) <word=bad|weak|dodgy"
        r"|broken|sensitive|damaged|not great|shot|ruined>( .*)?",
        "{whose} {rest} is {word}.",
        "health:{rest}",
        Since.SAID,
    ),
    rule(
        r"(i|i've) had <past=(a |an |my )?([\w-]+ ){0,2}(surgery|operation|transplant|bypass|stroke|heart "
        r"attack|miscarriage|concussion|replacement)\b.*>",
        "{who} had {past}{when}.",
        "health:{past}",
    ),
    rule(
        r"i('m| take|'m taking|'ve been on|'m on) (on )?<rest=((\d+|a|an|my|some|daily|low-dose) ?(mg|mcg|ml"
        r"|g)? ?(of )?)?([\w-]+ ){0,3}(pills?|tablets?|medication|meds|insulin|statins?"
        r"|antidepressants|beta blockers|blood thinners|antihistamines|injections|ibuprofen|paracetamol"
        r"|aspirin|metformin|levothyroxine|supplements|vitamins?|iron|antibiotics|inhaler|painkillers"
        r"|drops)\b.*>",
        "{who} takes {rest}.",
        "takes:{rest}",
    ),
    rule(r"i (also )?take <rest=\d+ ?(mg|mcg|ml|g|units) of .+>", "{who} takes {rest}.", "takes:{rest}"),
    rule(
        r"i (wear|use|need) <rest=(a |an |my )?([\w-]+ )?(glasses|contacts|contact lenses|hearing aids?"
        r"|wheelchair|crutches|braces|insoles|walker|walking stick|inhaler|cpap)>( .*)?",
        "{who} uses {rest}.",
        "uses:{rest}",
    ),
    rule(
        r"my blood type( is|'s) <verbatim=(a|b|ab|o|0)( ?(positive|negative|[+-]|pos|neg))?>",
        "{whose} blood type is {verbatim}.",
        "blood_type",
        Since.ALWAYS,
    ),
    rule(
        r"i'm <verbatim=\d[\d.,]* ?(m|cm|metres|meters|feet|foot|ft)( \d+)?> tall",
        "{who} is {verbatim} tall.",
        "height",
        Since.ALWAYS,
    ),
    rule(
        r"i (don't|never|no longer) <word=drink>( any ?more)?",
        "{who} does not {word}.",
        "habit:{word}",
        replaces=True,
    ),
    rule(r"i smoke( (a lot|too much|again|occasionally|at parties|\d+ .+))?", "{who} smokes.", "habit:smoking"),
    rule(r"i <verb=vape|snore|sleepwalk|stutter>( .*)?", "{who} {verb}.", "habit:{verb}"),
    rule(r"i (don't|never|no longer) smoke( any ?more)?", "{who} does not smoke.", "habit:smoking", replaces=True),
    rule(r"i'm recovering from <rest>", "{who} is recovering from {rest}.", "health:{rest}"),
    rule(r"i have (only )?<rest=one (kidney|lung|eye|leg|arm|ear)>", "{who} has {rest}.", "health:{rest}"),
)
HEALTH = (*_ALLERGY, *_DIET, *_BODY)
