"""Plans with dates, birthdays, and what happened on a day."""

from __future__ import annotations

from holdfast.extract.patterns.english.vocabulary import OCCASIONS
from holdfast.extract.patterns.rules import Needs, Since, rule

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
_MILESTONES = r"graduated|retired|got married|got engaged|got promoted|got divorced|quit|turned \d{1,2}"
_IS_ON = (
    r"( is|'s|'s booked| is booked| is scheduled| got moved| was moved| has been moved| moved| is now| "
    r"was postponed|'s set"
    r"| is set| is planned| has been postponed| was rescheduled| got postponed|'s due)"
    r"( for| to| on| at)?"
)
_GOING = (
    "flying|going|travelling|traveling|driving|heading|moving|relocating|sailing|cycling|hiking|walking|taking"
    "|running|starting|having|getting|attending|visiting|hosting|defending|graduating|marrying|leaving|returning"
    "|retiring|opening|launching|playing|performing|presenting|giving|speaking|competing|doing|joining|climbing|seeing"
    "|meeting|throwing|celebrating|adopting|buying|selling|finishing|undergoing|expecting|picking up|volunteering"
    "|turning|sitting|taking part|participating|camping|renovating|working|teaching|publishing|recording|signing"
    "|closing|coming|quitting|stopping|spending|staying|off|back|due"
)
_SETTLED = "signed up for|registered for|booked|enrolled in|bought tickets for|got tickets for|reserved|planned"

PLANS = (
    rule(
        r"(i|we|i've|we've|they|they've) (postponed|moved|rescheduled|pushed back|brought forward|changed) (my"
        r"|our|the) "
        rf"<lower={OCCASIONS}>(,| to| and)? (it's |it is |now |on |to |is )*(on )?<dated=.*\d.*>",
        "{whose} {lower} is on {dated}.",
        "occasion:{lower}",
        across=True,
        replaces=True,
    ),
    rule(
        r"my birthday( is|'s) <dated=(in|around|at the \w+ of) .+>",
        "{whose} birthday is {dated}.",
        "birthday",
        Since.ALWAYS,
    ),
    rule(
        r"(i celebrate my birthday|my birthday falls|i share my birthday with .+,)( on)? <day>",
        "{whose} birthday is {day}.",
        "birthday",
        Since.ALWAYS,
        across=True,
    ),
    rule(
        r"i'm in my <verbatim=((early|mid|late)[- ])?(twenties|thirties|forties|fifties|sixties|seventies|eighties)>",
        "{who} is in their {verbatim}.",
        "age",
    ),
    rule(
        r"(i have|we have|i booked|i got) <rest=tickets (for|to) .+>",
        "{who} has {rest}{when}.",
        "plan:{rest}",
        Since.ALWAYS,
        ahead=True,
    ),
    rule(
        r"(i'll|we'll) <rest=(start|move|visit|fly|travel|graduate|retire|go|leave|finish|begin)\b.*>",
        "{who} will {rest}{when}.",
        "plan:{rest}",
        Since.ALWAYS,
        Needs.COMING_DATE,
        ahead=True,
    ),
    # birthdays and age
    rule(r"my birthday( is|'s)( on)? <day>", "{whose} birthday is {day}.", "birthday", Since.ALWAYS),
    rule(r"<day> is my birthday", "{whose} birthday is {day}.", "birthday", Since.ALWAYS),
    rule(
        r"i was born (?P<day>(on )?(the )?\d.+|on .+|\w+ \d{1,2}.+)", "{who} was born {day}.", "born_on", Since.ALWAYS
    ),
    rule(
        r"i was born <dated=in (the )?(\w+ )?(of )?((19|20)\d\d|'?\d\d|'?\d0s)>( (and|in|so|but)\b.*)?",
        "{who} was born {dated}.",
        "born_on",
        Since.ALWAYS,
    ),
    rule(
        r"i'm <number=\d{1,3}>( (years old|years of age|yo|y/o|years young))( .*)?",
        "{who} was {number} years old on {said_on}.",
        "age",
    ),
    rule(r"i'm <number=\d{2}>", "{who} was {number} years old on {said_on}.", "age"),
    rule(r"i (just )?turned <number=\d{1,2}>", "{who} turned {number}{when}.", "age"),
    rule(
        r"(i turn|i'm turning|i'll be|i'll turn) <number=\d{1,2}>",
        "{who} turns {number}{when}.",
        "turns",
        ahead=True,
        needs=Needs.COMING_DATE,
    ),
    # plans
    rule(
        rf"my <word={OCCASIONS}>{_IS_ON}",
        "{whose} {word} is{when}.",
        "occasion:{word}",
        Since.ALWAYS,
        Needs.COMING_DATE,
    ),
    rule(
        rf"(our|the|my) <rest=([\w'-]+ ){{0,3}}({OCCASIONS}|lease|visa|contract|passport|course|semester|term"
        r"|holidays|chemo|treatment|baby|surgery|operation|school|job|rent|trial|release|premiere|opening"
        rf"|licence|license)>{_IS_ON}",
        "{whose} {rest} is{when}.",
        "occasion:{rest}",
        Since.ALWAYS,
        Needs.COMING_DATE,
    ),
    rule(
        r"(our|the|my) <rest=[\w'-]+( [\w'-]+){0,3}> <word=starts|begins|ends|expires|is due|are due|closes"
        r"|opens|finishes|runs out>( on| in| at)?",
        "{whose} {rest} {word}{when}.",
        "occasion:{rest}",
        Since.ALWAYS,
        Needs.COMING_DATE,
    ),
    rule(
        rf"<lower={OCCASIONS}>('s| is) (booked|scheduled|set|planned|confirmed|on)( for| on)?",
        "{whose} {lower} is{when}.",
        "occasion:{lower}",
        Since.ALWAYS,
        Needs.COMING_DATE,
    ),
    rule(
        r"(i'm|we're) moving to <place>",
        "{who} is moving to {place}{when}.",
        "moving_to",
        Since.ALWAYS,
        Needs.COMING_DATE,
    ),
    rule(
        r"(i'm|we're) (moving|relocating) to <place>",
        "{who} is moving to {place}{when}.",
        "moving_to",
        Since.ALWAYS,
        ahead=True,
    ),
    rule(
        r"(i have|we have|i've booked|i booked|we've booked|i also have) <rest=(an?|my|our|another|the) "
        rf"([\w'-]+ ){{0,3}}({OCCASIONS})( (with|at|in|for|to) .+)?( on| in| at| for)?>",
        "{who} has {rest}{when}.",
        "occasion:{rest_head}{when}",
        Since.ALWAYS,
        Needs.COMING_DATE,
        ahead=True,
    ),
    rule(
        rf"(i'm|we're) <rest=(also )?({_GOING})( .+)?>",
        "{who} is {rest}{when}.",
        "plan:{rest}",
        Since.ALWAYS,
        Needs.COMING_DATE,
        ahead=True,
    ),
    rule(
        r"(i'll be|we'll be) <rest=(on|in|at|back|away|off|out|visiting|travelling|traveling|abroad|attending"
        r"|working|start|move|visit|fly|travel|graduate|retire|go|leave)\b.*>",
        "{who} will be {rest}{when}.",
        "plan:{rest}",
        Since.ALWAYS,
        Needs.COMING_DATE,
        ahead=True,
    ),
    rule(
        r"(i|we) (also )?<verb=fly|leave|travel|go|move|head|start|graduate|retire|return|finish|hand in"
        r"|submit|defend|sit|see|meet> <rest=(to|for|from|at|my|our|as|back|home|a|an|the) .+>",
        "{who} {verb} {rest}{when}.",
        "plan:{verb} {rest}",
        Since.ALWAYS,
        Needs.COMING_DATE,
        ahead=True,
    ),
    rule(
        r"(i|we) <verb=graduate|retire|move|leave|marry|start>",
        "{who} {verb}{when}.",
        "plan:{verb}",
        Since.ALWAYS,
        Needs.COMING_DATE,
        ahead=True,
    ),
    rule(
        r"(i plan|i'm planning|we're planning|we plan|i intend|i'm hoping|i've decided|we've decided|i'm "
        r"going) (on |to )<rest=(retire|learn|learning|retiring|moving|move|buy|buying|run|running|study"
        r"|studying|visit|visiting|start|starting"
        r"|write|writing|travel|travelling|traveling|build|building|apply|get|sell|go|open|take|spend|marry"
        r"|adopt|walk|climb|hike|cycle)\b.*>",
        "{who} plans to {rest}{when}.",
        "plan:{rest}",
        Since.SAID,
        ahead=True,
    ),
    rule(
        r"my (main |big |biggest |new )?(goal|dream|resolution|ambition|aim|target)( (for|in|this) [\w "
        r"]{1,20})? is to <rest>",
        "{whose} goal is to {rest}{when}.",
        "goal:{rest}",
        Since.SAID,
        ahead=True,
    ),
    rule(r"(i'm|we're|i've been) saving (up )?(for|to) <rest>", "{who} is saving for {rest}.", "saving:{rest}"),
    rule(
        r"(i'm|i've started|i've been) (training|rehearsing|preparing) for <rest=(a|an|the|my|our) .+>",
        "{who} is preparing for {rest}{when}.",
        "preparing:{rest}",
        Since.SAID,
        ahead=True,
    ),
    rule(
        rf"(i|we|i've|we've) <word={_SETTLED}> <rest=(an?|the|my|our|tickets|flights) .+>",
        "{who} {word} {rest}{when}.",
        "plan:{rest}",
        Since.SAID,
        ahead=True,
    ),
    rule(
        r"(i|we|i've|we've) (cancelled|canceled|called off) (my|our|the) <rest=(trip|flight|holiday|vacation"
        r"|wedding|appointment|party|move|surgery|subscription|membership|course|order|reservation|booking"
        r"|tour|visit)\b.*>",
        "{who} cancelled the {rest}.",
        "plan:{rest}",
        replaces=True,
    ),
    rule(
        r"(my|our) <rest=(trip|flight|holiday|vacation|wedding|party|move|surgery|concert|course|tour|visit"
        r"|marathon|race)( (to|in|with|for) .+)?> (is|was|got|has been) (cancelled|canceled|called off|off)( "
        r".*)?",
        "{whose} {rest} is cancelled.",
        "plan:{rest}",
        replaces=True,
    ),
)
EVENTS = (
    # what happened on a day
    rule(
        rf"(i|we|my \w{{3,12}} and i|i've) <word={_EVENTS}> <event>",
        "{who} {word} {event}{when}.",
        "event:{word} {event}",
        needs=Needs.PAST_DATE,
    ),
    rule(rf"(i|i've) <word={_MILESTONES}>", "{who} {word}{when}.", "event:{word}", needs=Needs.PAST_DATE),
)
