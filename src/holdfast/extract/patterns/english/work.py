"""Work: employer, profession, hours, and what ended."""

from __future__ import annotations

from holdfast.extract.patterns.english.vocabulary import BUSINESSES, NOT_PROFESSIONAL, PROFESSIONS
from holdfast.extract.patterns.rules import Needs, rule

_A_PROFESSION = rf"<verbatim=an? ((?!(?:{NOT_PROFESSIONAL})\b)[\w'-]+ ){{0,3}}({PROFESSIONS})>"
_AFTER = (
    r"( (at(?! heart)|of|in|and|from|by|who|with|now|working|based|there|here|since|for|but|so|because"
    r"|myself|again)\b.*)?"
)
_ROLES = (
    "head|director|ceo|cto|cfo|coo|vp|vice president|chief|manager|founder|co-founder|president|chair|coordinator"
    "|partner|owner|team lead|lead|principal|captain|secretary|treasurer|dean|editor|leader"
)
_LET_GO = (
    "resigned from|got fired from|was fired from|got laid off from|was laid off from|got laid off by|was laid off by"
    "|was let go from|was let go by|got let go from|was made redundant at|was made redundant by"
    "|got made redundant at|got sacked from|was sacked from|retired from|stopped working at|stopped working for"
)
_POST = "job|position|role|gig|post|contract|internship|apprenticeship|offer"
_START = "started|began|start|'ve started|joined|'ve joined|'m joining|'m starting"
_BUSINESS = rf"<rest=(an?|the|our own|my own|our|my) ([\w'-]+ ){{0,3}}({BUSINESSES})\b.*>"
_STATUS = (
    "self[- ]employed|unemployed|out of work|between jobs|freelancing|semi-retired|retired|on parental leave"
    "|on maternity leave|on paternity leave|on sick leave|on (a )?sabbatical|a stay-at-home (mom|mum|dad|parent)"
    "|in the (navy|army|air force|marines|military|police|coast guard)"
)
_HOURS = (
    r"part[- ]time|full[- ]time|nights|night shifts?|shifts|weekends|early shifts|late shifts|remotely|freelance"
    r"|from home|\w+ (days|hours) (a|per) week|on weekends|at weekends"
)

_EMPLOYER = (
    rule(
        r"i (left|quit|resigned from) <organization1>,? (and |and i |to |and i've |so i |i've |i )?"
        r"((just )?joined|join|(have )?started at|start at|(now )?work at|(now )?work for|am now at|now at|went to)"
        r" <organization2>(,.*)?",
        "{who} left {organization1} and works at {organization2}.",
        "works_at",
        across=True,
        replaces=True,
    ),
    rule(
        r"i (switched|changed|'ve switched|'ve changed) (jobs )?from <organization1> to <organization2>",
        "{who} switched from {organization1} to {organization2}{when}.",
        "switched:{organization1}",
    ),
    rule(
        rf"i (got|landed|accepted|started|found|took|have|'ve got|'ve accepted|'ve found|was offered)"
        rf"( an?| my| the)?( new)?( [\w-]+)? ({_POST})( offer)? (at|with|from) <employer>",
        "{who} got a job at {employer}{when}.",
        "works_at",
        replaces=True,
    ),
    rule(
        rf"my (new |current |next )?({_POST}|workplace)( is|'s) (at|with) <employer>",
        "{who} works at {employer}.",
        "works_at",
    ),
    rule(
        r"my (new |current |next )?(employer|company|workplace)( is|'s) <employer>",
        "{whose} employer is {employer}.",
        "works_at",
        needs=Needs.WHOLE,
    ),
    rule(
        r"(i work|i'm working|i've worked|i've been working|i'm employed) (at|for|by) <employer> as <work>",
        "{who} works at {employer} as {work}.",
        "works_at",
    ),
    rule(r"i'm employed (at|by|with) <employer>", "{who} works at {employer}.", "works_at"),
    rule(r"i'm now (working )?(at|with|for) <organization>", "{who} works at {organization}.", "works_at"),
    rule(r"i'm (working )?(at|with|for) <organization> now", "{who} works at {organization}.", "works_at"),
    rule(
        r"(i've been at|i've worked at|i've worked for|i've been working at|i've been working for|i've been "
        r"with) <employer>(?= for |$)( for .+)?",
        "{who} works at {employer}{when}.",
        "works_at",
    ),
    rule(r"(i work|i'm working) (at|for) <employer>", "{who} works at {employer}.", "works_at"),
    rule(r"(i work|i'm working) in <place>", "{who} works in {place}.", "works_in", needs=Needs.WHOLE),
    rule(r"(i work|i'm working) in <work>", "{who} works in {work}.", "occupation", needs=Needs.WHOLE),
    rule(
        rf"i ({_START}) (working |work |a job |a new job |my new job |a new position )?(at|with|for) "
        r"<employer>( as <work>)?",
        "{who} started at {employer}{when}.",
        "works_at",
        replaces=True,
    ),
    rule(
        r"(i joined|i've joined|i'm joining) <organization>( as <work>)?",
        "{who} joined {organization}{when}.",
        "works_at",
        replaces=True,
    ),
)
_ENDED = (
    rule(
        rf"(i|i've) (quit|left|lost|resigned from|was fired from|got fired from|was laid off from|got laid off from"
        rf"|was let go from) my ({_POST}) (at|with|in) <employer>",
        "{who} no longer works at {employer}{when}.",
        "works_at",
        ends="{employer}",
    ),
    rule(
        rf"(i|i've) <word={_LET_GO}> <employer>",
        "{who} {word} {employer}{when}.",
        "works_at",
        ends="{employer}",
    ),
    rule(
        r"(i|i've) quit <organization>",
        "{who} quit {organization}{when}.",
        "works_at",
        ends="{organization}",
    ),
    rule(
        r"(i|i've) (handed in my notice|gave notice|gave my notice|put in my notice|resigned) (at|with) <employer>",
        "{who} resigned from {employer}{when}.",
        "works_at",
        ends="{employer}",
    ),
    rule(
        r"(i|i've) <rest=quit my job|left my job|lost my job|got fired|was fired|got laid off|was laid off"
        r"|was made redundant|handed in my notice>",
        "{who} {rest}{when}.",
        "works_at",
        replaces=True,
    ),
    rule(r"i no longer work (at|for) <work>", "{who} no longer works at {work}.", "works_at", ends="{work}"),
    rule(r"i don't work (at|for) <work> any ?more", "{who} no longer works at {work}.", "works_at", ends="{work}"),
    rule(
        r"i'm no longer (working )?(at|with|for) <employer>",
        "{who} no longer works at {employer}.",
        "works_at",
        ends="{employer}",
    ),
)
_PROFESSION = (
    rule(r"(i work|i'm working|i'm employed|i freelance) as <work>", "{who} works as {work}.", "occupation"),
    rule(
        rf"(i'm|i've been|i became|i've become|by profession i'm|by trade i'm) {_A_PROFESSION} (at(?! heart)|for)"
        r" (?!\w+ (years|months|weeks)\b)<employer>( (for|since) .+)?",
        "{who} is {verbatim} at {employer}.",
        "occupation",
    ),
    rule(
        rf"(i'm|i've been|i became|i've become|by profession i'm|by trade i'm) {_A_PROFESSION}{_AFTER}",
        "{who} is {verbatim}.",
        "occupation",
    ),
    rule(
        rf"i'm (training|studying|learning|retraining) to (be|become) {_A_PROFESSION}{_AFTER}",
        "{who} is training to be {verbatim}.",
        "training_as",
    ),
    rule(
        rf"i'm (now )?<rest=(the )?(new )?([\w-]+ ){{0,2}}({_ROLES}) (of|at|for|in) .+>",
        "{who} is {rest}.",
        "occupation",
        needs=Needs.WHOLE,
    ),
    rule(
        r"(i've been|i was|i got|they) promoted (me )?to <rest>",
        "{who} was promoted to {rest}{when}.",
        "occupation",
        replaces=True,
    ),
    rule(r"i've retired|i retired", "{who} retired{when}.", "occupation", replaces=True),
    rule(
        rf"(i'm|i've been) (now )?<word={_STATUS}>"
        r"( (now|right now|at the moment|since|for|so|and|but)\b.*)?",
        "{who} is {word}{when}.",
        "occupation",
    ),
    rule(r"i <verb=[a-z]{2,12}> <rest> for a living", "{who} {verb} {rest} for a living.", "occupation"),
    rule(r"i teach <rest>", "{who} teaches {rest}.", "occupation", needs=Needs.WHOLE),
    rule(
        r"my (job|profession|occupation|day job)( is|'s) (?!\w+ing (me|my|us|out)\b)<rest>",
        "{whose} job is {rest}.",
        "occupation",
        needs=Needs.WHOLE,
    ),
    rule(rf"(i|we) (run|own|manage|have) {_BUSINESS}", "{who} runs {rest}.", "runs"),
    rule(
        rf"(i|we|i've|we've) <word=founded|started|set up|opened|launched|co-founded> {_BUSINESS}",
        "{who} {word} {rest}{when}.",
        "runs",
    ),
    rule(rf"(i|we) (only |mostly |mainly )?work <rest=({_HOURS})\b.*>", "{who} works {rest}.", "working_hours"),
)
_MORE = (
    rule(r"i'm now working (at|with|for) <employer>", "{who} works at {employer}.", "works_at"),
    rule(
        r"(i got|i was|i've been|i just got|i've just been) hired (by|at) <employer>( as <work>)?",
        "{who} works at {employer}.",
        "works_at",
        replaces=True,
    ),
    rule(
        r"<organization> (hired|has hired|just hired) me( as <work>)?",
        "{who} works at {organization}.",
        "works_at",
        replaces=True,
    ),
    rule(
        rf"i'm the <verbatim=((head|lead|main|only|chief) )?({PROFESSIONS})> (at|for|in) <employer>",
        "{who} is the {verbatim} at {employer}.",
        "occupation",
    ),
    rule(r"(i work|i'm) in <verbatim=(?-i:IT|HR|PR|R&D|QA|UX|AI)>", "{who} works in {verbatim}.", "occupation"),
    rule(r"i manage <rest=(a|an|the|two|three) .+>", "{who} manages {rest}.", "manages"),
    rule(
        r"(i've left|i've quit|i've just left) <organization>",
        "{who} left {organization}{when}.",
        "works_at",
        ends="{organization}",
    ),
    rule(r"(i'm leaving|i'm quitting) <organization>", "{who} is leaving {organization}.", "leaving:{organization}"),
    rule(
        r"i (do|work|have) <rest=(the )?((night|day|early|late|evening) shifts?|shift work)\b.*>",
        "{who} works {rest}.",
        "working_hours",
    ),
)
WORK = (*_MORE, *_PROFESSION[-1:], *_EMPLOYER, *_ENDED, *_PROFESSION[:-1])
