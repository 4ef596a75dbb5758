"""Name, languages, studies, hobbies, routines and other things that people say about themselves."""

from __future__ import annotations

from holdfast.extract.patterns.english.vocabulary import BELIEFS, FREQUENCY, TONGUES, TRAITS
from holdfast.extract.patterns.rules import Needs, Since, rule

_TONGUE = rf"(?P<title>{TONGUES})"
_SOME = "(a little|a bit of|some|fluent|basic|decent|native|only|good|conversational|broken|rusty|passable)"
_COURSES = (
    r"class(es)?|course|courses|lessons|workshop|degree|phd|master's|masters|bachelor's|mba|diploma"
    r"|certificate|apprenticeship|internship|traineeship|residency|placement|thesis"
    r"|dissertation|bootcamp|evening classes|night school"
)
_INSTRUMENTS_NOT = (
    "video|videos|song|role|file|audio|clip|game|recording|track|part|dead|along|safe|nice|fair|hard to "
    "get|fool|dumb|with|it"
    "|around|by|down|up|second"
)

NAMES = (
    rule(
        r"my (first |full |real |legal |given |christian )?name( is|'s) <name>",
        "{whose} name is {name}.",
        "name",
        Since.ALWAYS,
    ),
    rule(
        r"my (last name|surname|family name|maiden name|middle name)( is|'s) (?P<capital_name>.+)",
        "{whose} surname is {capital_name}.",
        "surname",
        Since.ALWAYS,
    ),
    rule(
        r"(i|i've) (changed|legally changed) my (first |last |legal )?name to (?P<capital_name>.+)",
        "{whose} name is {capital_name}.",
        "name",
        replaces=True,
    ),
    rule(r"i'm (?P<introduced>.+)", "{whose} name is {introduced}.", "name", Since.ALWAYS, Needs.GREETING),
    rule(
        r"(my pronouns are|i use|i go by) <word=(she|he|they|ze|xe|it)/(her|him|them|zir|xem|they|she|he"
        r"|its)(/\w+)?>( pronouns)?",
        "{whose} pronouns are {word}.",
        "pronouns",
    ),
)
LANGUAGES_SPOKEN = (
    rule(
        r"(i|we) (don't speak|can't speak|don't know|speak no|no longer speak) (any |much |a word of "
        rf")?{_TONGUE}( .*)?",
        "{who} does not speak {title}.",
        "language:{title}",
        replaces=True,
    ),
    rule(
        r"(i'm learning|i've started learning|i started learning|i'm studying|i've been learning|i'm trying "
        rf"to learn|i'm teaching myself|we're learning|i want to learn|i learn) {_TONGUE}( .*)?",
        "{who} is learning {title}.",
        "language:{title}",
    ),
    rule(
        rf"(i stopped learning|i gave up|i gave up learning|i've stopped learning|i quit learning) {_TONGUE}( .*)?",
        "{who} stopped learning {title}.",
        "language:{title}",
        replaces=True,
    ),
    rule(
        rf"(i'm|i'm also) (almost |nearly |fully )?fluent in <rest={_TONGUE}\b.*>",
        "{who} is fluent in {rest}.",
        "language:{title}",
    ),
    rule(
        rf"(i'm a |i'm )(native|fluent) <rest=({_TONGUE} speaker|speaker of (?P<title1>{TONGUES}))( .*)?>",
        "{who} is a native {rest}.",
        "language:native",
    ),
    rule(
        r"my (native language|mother tongue|first language|native tongue|second language)( is|'s) "
        rf"<rest={_TONGUE}\b.*>",
        "{whose} native language is {rest}.",
        "language:native",
        Since.ALWAYS,
    ),
    rule(
        rf"(i grew up|i was raised) (speaking |with |bilingual,? ?(in |with )?)*<rest={_TONGUE}\b.*>",
        "{who} grew up speaking {rest}.",
        "language:{title}",
        Since.ALWAYS,
        across=True,
    ),
    rule(
        rf"(i|we) (can |also |can also |mostly |only )?speak <rest=({_SOME} )*{_TONGUE}\b.*>",
        "{who} speaks {rest}.",
        "language:{title}",
    ),
    rule(rf"(i know|we know) <rest=({_SOME} )?{_TONGUE}( and .+)?>", "{who} knows {rest}.", "language:{title}"),
    rule(rf"my {_TONGUE} is <rest>", "{whose} {title} is {rest}.", "language:{title}"),
    rule(r"i (can )?speak <rest=\w+ languages>", "{who} speaks {rest}.", "languages"),
    rule(rf"i understand {_TONGUE}( .*)?", "{who} understands {title}.", "language:{title}"),
)
STUDIES = (
    rule(r"(i|we) study <rest=(?!(the|for|all|hard|at|late|now)\b).+>", "{who} studies {rest}.", "studies"),
    rule(
        r"i'm (studying|majoring in|doing a degree in|minoring in) <rest=(?!(for|hard|to|late|now|all|with|on)\b).+>",
        "{who} studies {rest}.",
        "studies",
    ),
    rule(
        rf"i'm (doing|taking|finishing|writing|working on) <rest=(an?|my|the) ([\w'-]+ ){{0,3}}({_COURSES})\b.*>",
        "{who} is doing {rest}.",
        "studies:{rest}",
    ),
    rule(
        r"i('m taking|'ve started| take| have|'ve signed up for) <rest=([\w'-]+ ){1,3}(classes|lessons)\b.*>",
        "{who} takes {rest}.",
        "classes:{rest}",
    ),
    rule(
        r"i'm in <rest=(my|the) (first|second|third|fourth|fifth|final|last|penultimate|sophomore|junior"
        r"|senior) (year|semester|term)( of .+| at .+| in .+)?>",
        "{who} is in {rest}.",
        "study_year",
    ),
    rule(
        r"i'm (a )?<lower=freshman|sophomore|junior|senior|fresher>( at .+| in .+)?",
        "{who} is a {lower}.",
        "study_year",
    ),
    rule(
        r"my (major|minor|degree|field|subject|specialty|speciality)( is|'s)( in)? <rest>",
        "{who} studies {rest}.",
        "studies",
        needs=Needs.WHOLE,
    ),
    rule(r"i major(ed)? in <rest>", "{who} studies {rest}.", "studies"),
    rule(
        r"(i|i've) studied <past=(?!(the|for|all|hard|at|late|until|a lot)\b).+>",
        "{who} studied {past}{when}.",
        "studied:{past}",
    ),
    rule(
        r"(i|i've) (just |recently )?graduated (from |in |with )?<past>",
        "{who} graduated from {past}{when}.",
        "graduated:{past}",
    ),
    rule(
        r"i have <rest=(an?|my) (\w+ )?(degree|master's|masters|bachelor's|bachelor|phd|doctorate|diploma|mba"
        r"|ba|bsc|msc|ma|law degree|teaching degree)\b.*>",
        "{who} has {rest}.",
        "degree:{rest}",
    ),
    rule(
        r"(i|i've) (did|got|earned|finished|completed|defended|done) my <past=(degree|master's|masters"
        r"|bachelor's|phd|doctorate|diploma|mba|ba|bsc|msc|thesis|studies|apprenticeship|a-levels|school"
        r"|training|driving licence|driver's license|driving license|licence)\b.*>",
        "{who} got their {past}{when}.",
        "degree:{past}",
    ),
    rule(
        r"i (went to|attended) <past=(school|university|college|uni|high school|art school|law school|medical "
        r"school|boarding school|the university)\b.*>",
        "{who} went to {past}{when}.",
        "school:{past}",
    ),
    rule(r"(i|i've) dropped out of <past>", "{who} dropped out of {past}{when}.", "dropped_out:{past}"),
    rule(
        r"(i|i've|i was) (just )?(got accepted|accepted|got in|been accepted|got into|admitted|been admitted"
        r"|got a place) (to|into|at|by)? ?<past>",
        "{who} was accepted at {past}{when}.",
        "accepted:{past}",
    ),
    rule(
        r"i'm writing <rest=(my|a|the) (bachelor's |master's |phd |doctoral )?(thesis|dissertation|book|novel"
        r"|memoir|paper)\b.*>",
        "{who} is writing {rest}.",
        "writing",
    ),
)
HOBBIES = (
    rule(
        rf"(i|we) (also |still )?play (the )?<what=(?!({_INSTRUMENTS_NOT})\b).+>", "{who} plays {what}.", "plays:{what}"
    ),
    rule(
        r"i (also )?<verb=sing|dance|act|row|volunteer|compete|perform|coach|train> <rest=(in|at|for|with) .+>",
        "{who} {verb} {rest}.",
        "hobby:{rest}",
    ),
    rule(
        r"my (main |favou?rite |biggest |only |new )?(hobby|hobbies|pastime|passion)( is| are|'s) "
        r"<rest=(?!annoying|to annoy).+>",
        "{whose} hobby is {rest}.",
        "hobby:{rest}",
    ),
    rule(
        r"(i|we) (also )?<verb=collect|restore|breed|brew|grow|knit|sew|crochet|paint|draw|write|bake"
        r"|photograph|carve|refurbish|repair> <rest>",
        "{who} {verb} {rest}.",
        "hobby:{rest}",
        needs=Needs.WHOLE,
    ),
    rule(
        r"i <verb=knit|sew|crochet|paint|draw|garden|surf|ski|snowboard|climb|swim|cycle|jog|fence|box|sail"
        r"|dive|meditate|juggle|skateboard|kayak|fish|hunt|bake|sing|dance|embroider|whittle|geocache|blog"
        r"|hike>( (and|in|as|a lot|regularly|with|for|myself|competitively)\b.*)?",
        "{who} {verb}.",
        "hobby:{verb}",
    ),
    rule(
        r"i do <rest=(karate|judo|yoga|pilates|ballet|crossfit|taekwondo|aikido|boxing|parkour|pottery"
        r"|calligraphy|gymnastics|kung fu|jiu[- ]jitsu|improv|triathlons|archery|zumba|tai chi|ceramics"
        r"|woodworking|weightlifting|athletics|stand-up|photography|martial arts)\b.*>",
        "{who} does {rest}.",
        "hobby:{rest}",
    ),
    rule(
        r"(i|i've|i'm|we) (just )?(recently )?(started|took up|taken up|got into|gotten into|taking up|picked "
        r"up) (doing |playing |learning |going )?<rest=((to play |to learn )?(the )?[\w-]+ing\b.*|yoga|pottery"
        r"|chess|padel|tennis|karate|judo|guitar|piano|the (guitar|piano|violin|cello|drums)|golf|ballet"
        r"|crochet|pilates|football|squash|badminton|bridge|salsa|photography|boxing)>",
        "{who} took up {rest}{when}.",
        "hobby:{rest}",
    ),
    rule(
        r"(i|i've) (stopped|quit|gave up|given up|no longer) (playing |doing |play |do |practise |practice "
        r")(the )?<thing>",
        "{who} no longer plays {thing}.",
        "plays:{thing}",
        ends="{thing}",
    ),
    rule(r"i'm learning (how )?to <rest>", "{who} is learning to {rest}.", "learning:{rest}", needs=Needs.WHOLE),
    rule(
        r"i'm (an? )<rest=(keen|avid|passionate|amateur|hobby|serious|competitive) .+>",
        "{who} is a {rest}.",
        "is:{rest}",
    ),
    rule(
        r"i'm <rest=(a |an active |an )?(member of|part of|in) (an?|the local|our|my) ([\w'-]+ ){0,2}(club"
        r"|team|choir|band|orchestra|union|church|group|party|gym|society|league|book club|committee"
        r"|association|co-op)\b.*>",
        "{who} is {rest}.",
        "member:{rest}",
    ),
)
ROUTINES = (
    rule(
        r"(i|we) (usually |always |normally |often |mostly |only |typically |generally |also "
        rf")*<verb=[a-z]{{2,12}}> <rest=(.+ )?({FREQUENCY})( .*)?>",
        "{who} {verb} {rest}.",
        "routine:{rest_head}",
        needs=Needs.WHOLE,
    ),
    rule(
        r"(i|we) (usually |always |normally |typically |generally )+<verb=get|wake|go|eat|have|start|work|take"
        r"|walk|cycle|drive|run|sleep|cook|shop|train|read|travel|fly|order|sit|skip> <rest>",
        "{who} usually {verb} {rest}.",
        "routine:{rest_head}",
    ),
    rule(
        r"(i|we) <verb=get|wake> up <rest=((at|around|before|after|by) .+|early|late)>",
        "{who} {verb} up {rest}.",
        "routine:{verb} up",
    ),
    rule(
        r"i go to <rest=(bed|sleep) (at|around|before|after|by|early|late)\b.*>", "{who} goes to {rest}.", "routine:bed"
    ),
    rule(
        r"(i|we) <verb=walk|cycle|bike|drive|commute|run> <rest=(to|by) (work|school|university|the office"
        r"|train|bus|car|bike)\b.*>",
        "{who} {verb} {rest}.",
        "commute",
    ),
    rule(
        r"(i|we) take <rest=the (bus|train|tram|metro|subway|ferry|tube) to (work|school|university|the office)\b.*>",
        "{who} takes {rest}.",
        "commute",
    ),
    rule(
        r"i never <verb=[a-z]{2,12}> <rest=(.+ )?(on|at|before|after|in) .+>",
        "{who} never {verb} {rest}.",
        "routine:{rest_head}",
    ),
    rule(
        r"i don't <word=[a-z]{2,12}> <rest=.*\b(on (mon|tues|wednes|thurs|fri|satur|sun)days|at night|on "
        r"weekends|at weekends|in the mornings?)>",
        "{who} does not {word} {rest}.",
        "routine:{rest_head}",
    ),
    rule(
        r"(i|we) (don't|no longer) <word=go|play|run|swim|train|drive|read|watch|cook|ride|dance|sing|travel"
        r"|fly|bake|teach|speak>( <rest>)?( any ?more)",
        "{who} does not {word} {rest} any more.",
        "routine:{rest_head}",
        replaces=True,
    ),
    rule(
        r"(i|we) can't <word=swim|drive|whistle|cook|ride a bike|dance|sing|smell|taste|read music|touch-type"
        r"|run|walk far>"
        r"( any ?more| at all)?",
        "{who} cannot {word}.",
        "cannot:{word}",
    ),
    rule(r"(i|we) can't <rest> any ?more", "{who} can no longer {rest}.", "cannot:{rest}"),
)
_HABITS = (
    "read|watch|listen|sleep|spend|commute|coach|foster|shop|vote|tutor|mentor|host|cook|garden|support|wear|breed"
    "|travel|attend|follow|grow|brew|babysit|practise|practice|train"
)
HABITS = (
    rule(
        r"i run <rest=(half |ultra ?)?(marathons|races|5ks|10ks|triathlons|ultras|cross-country|long distances)( .*)?>",
        "{who} runs {rest}.",
        "hobby:{rest}",
    ),
    rule(
        r"(i|we) never <verb=[a-z]{2,12}> <rest>",
        "{who} never {verb} {rest}.",
        "routine:{rest_head}",
        needs=Needs.WHOLE,
    ),
    rule(
        r"(i|we) (always|usually|normally|typically|generally) <verb=[a-z]{2,12}> <rest>",
        "{who} usually {verb} {rest}.",
        "routine:{rest_head}",
        needs=Needs.WHOLE,
    ),
    rule(
        rf"(i|we) (mostly |only |mainly |often )*<verb={_HABITS}> <rest=(?!(the|home|over|out|it|into|up|around"
        r"|down|away|a lot|a bit|well|more|less)\b).+>",
        "{who} {verb} {rest}.",
        "routine:{rest_head}",
        needs=Needs.WHOLE,
    ),
    rule(
        r"i've <word=played|studied|practised|practiced|collected|taught|painted|danced> (the )?<what> (since|for) .+",
        "{who} has {word} {what} for a long time.",
        "plays:{what}",
    ),
    rule(
        r"i'm learning <rest=(the (?!hard|way|same)|how to ).+>",
        "{who} is learning {rest}.",
        "learning:{rest}",
        needs=Needs.WHOLE,
    ),
)
TRAITS_SAID = (
    rule(
        rf"i'm (actually |really |still |very )?<verbatim={BELIEFS}|{TRAITS}>( (and|but|so|by|since|at|who|with)\b.*)?",
        "{who} is {verbatim}.",
        "is:{verbatim}",
        Since.SAID,
    ),
    rule(
        r"i'm a(n)? <title=aries|taurus|gemini|cancer|leo|virgo|libra|scorpio|sagittarius|capricorn|aquarius|pisces>",
        "{who} is a {title}.",
        "star_sign",
        Since.ALWAYS,
    ),
    rule(
        r"my (star sign|zodiac sign|sign)( is|'s) <title=aries|taurus|gemini|cancer|leo|virgo|libra|scorpio"
        r"|sagittarius|capricorn|aquarius|pisces>",
        "{whose} star sign is {title}.",
        "star_sign",
        Since.ALWAYS,
    ),
    rule(r"i wear <rest=(a )?size .+>", "{who} wears {rest}.", "size:{rest}"),
    rule(
        r"my <lower=(shoe|ring|dress|shirt|trouser|jeans|hat) size>( is|'s) <verbatim=[\w. /-]{1,12}>",
        "{whose} {lower} is {verbatim}.",
        "size:{lower}",
    ),
    rule(
        r"my (lucky number)( is|'s) <verbatim=\d{1,6}>",
        "{whose} lucky number is {verbatim}.",
        "lucky_number",
        Since.ALWAYS,
    ),
    rule(
        r"my <lower=((work|private|mobile|home|cell|new) )?(phone )?number>( is|'s) <verbatim=[+\d][\d ()/-]{4,20}>",
        "{whose} {lower} is {verbatim}.",
        "{lower}",
    ),
)
