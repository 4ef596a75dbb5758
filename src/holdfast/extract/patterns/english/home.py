"""Home: the place, the dwelling, whom one lives with, and where one comes from."""

from __future__ import annotations

from holdfast.extract.patterns.english.vocabulary import NATIONALITIES
from holdfast.extract.patterns.rules import Needs, Since, rule

_LIVE = (
    "(i live|we live|i've lived|we've lived|i've been living|we've been living|i'm living|we're living"
    "|i'm based|we're based)"
)
_DWELLING = (
    "flat|apartment|house|studio|cottage|village|town|suburb|farm|farmhouse|condo|cabin|bungalow|townhouse|houseboat"
    "|caravan|dorm|student hall|commune|co-op|flatshare|shared flat|shared house|basement|loft|attic|tower block|estate"
    "|neighbourhood|neighborhood|building|terrace|city|island"
)

_ORIGINS = (
    "village|town|farm|city|countryside|suburbs?|island|orphanage|household|family|home|seaside|coast|region|country"
    "|mountains|north|south|east|west|bilingual|middle of nowhere|sea"
)

HOME = (
    rule(
        rf"{_LIVE} <rest=(alone|by myself|on my own|by ourselves)( (in|near) .+)?>",
        "{who} lives {rest}.",
        "lives_with",
    ),
    rule(rf"{_LIVE} with <rest>", "{who} lives with {rest}.", "lives_with", needs=Needs.WHOLE),
    rule(
        rf"{_LIVE} <rest=(in|on) (an?|the) ([\w'-]+ ){{0,3}}({_DWELLING}|\w+ floor|outskirts|coast|countryside|suburbs)"
        r"( (in|near|outside|by|next to|close to|on|of|with|at|above)\b.*)?>",
        "{who} lives {rest}.",
        "lives_in",
        needs=Needs.WHOLE,
    ),
    rule(
        rf"{_LIVE} <rest=(right |just )?(near|by|outside|close to|next to|not far from|across from|above|opposite) .+>",
        "{who} lives {rest}.",
        "lives_near",
    ),
    rule(rf"{_LIVE} in <place>", "{who} lives in {place}.", "lives_in", needs=Needs.WHOLE),
    rule(
        r"(i'm|we're) back (living )?in <place>",
        "{who} lives in {place}.",
        "lives_in",
        replaces=True,
        needs=Needs.WHOLE,
    ),
    rule(r"(?!.* right now)(i'm|we're) in <place> now", "{who} lives in {place}.", "lives_in", needs=Needs.WHOLE),
    rule(r"(i'm|we're) now in <place>", "{who} lives in {place}.", "lives_in", needs=Needs.WHOLE),
    rule(r"home is <place>", "{who} lives in {place}.", "lives_in", needs=Needs.WHOLE),
    rule(
        r"(i|we|i've|we've) moved (house )?from <place1> to <place2>",
        "{who} moved from {place1} to {place2}{when}.",
        "lives_in",
        replaces=True,
        needs=Needs.WHOLE,
    ),
    rule(
        r"(i|we|i've|we've) (moved back|moved|relocated|settled|settled down|emigrated|immigrated) (to|in) <place>",
        "{who} moved to {place}{when}.",
        "lives_in",
        replaces=True,
        needs=Needs.WHOLE,
    ),
    rule(
        r"(i|we) no longer live in <place1>",
        "{who} no longer lives in {place1}.",
        "lives_in",
        ends="{place1}",
    ),
    rule(
        r"(i'm|we're) no longer (living|based) in <place1>",
        "{who} no longer lives in {place1}.",
        "lives_in",
        ends="{place1}",
    ),
    rule(r"(i|we) don't live in <place1> any ?more", "{who} no longer lives in {place1}.", "lives_in", ends="{place1}"),
    rule(r"(i|we) no longer live with <rest>", "{who} no longer lives with {rest}.", "lives_with", ends="{rest}"),
    rule(r"(i|we) don't live with <rest> any ?more", "{who} no longer lives with {rest}.", "lives_with", ends="{rest}"),
    rule(r"(i|we) moved out of <rest>", "{who} moved out of {rest}{when}.", "moved_out"),
    rule(r"(i|we|i've|we've) moved in with <rest>", "{who} lives with {rest}.", "lives_with", replaces=True),
    rule(
        r"(i|we|i've|we've) <word=bought|rented|built|found|signed for> <rest=(an?|our|my) ([\w'-]+ "
        rf"){{0,3}}({_DWELLING}|place|home|plot)"
        r"( (in|near|outside|by|on|at)\b.*)?>",
        "{who} {word} {rest}{when}.",
        "dwelling",
    ),
    rule(
        r"(i|we|i've|we've) signed (the|a|our|my) (lease|rental contract|contract|mortgage) (for|on) <rest>",
        "{who} signed the lease for {rest}{when}.",
        "dwelling",
    ),
    rule(
        r"(i|we) <verb=rent|share|own> <rest=(an?|our|my) ([\w'-]+ ){0,3}(room|" + _DWELLING + r")\b.*>",
        "{who} {verb} {rest}.",
        "dwelling",
    ),
    rule(
        r"(please note )?my (new |home |postal |current )?address( is|'s|:) <address>",
        "{whose} address is {address}.",
        "address",
        across=True,
    ),
    rule(
        r"(i'm|i come|i'm originally|originally|i come originally) from <place>",
        "{who} is from {place}.",
        "is_from",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(r"i was born (and raised )?in <place>", "{who} was born in {place}.", "born_in", Since.ALWAYS, Needs.WHOLE),
    rule(r"i grew up in <place>", "{who} grew up in {place}.", "grew_up_in", Since.ALWAYS, Needs.WHOLE),
    rule(
        rf"i grew up <rest=(in|on|near|by) (an?|the) ([\w'-]+ ){{0,3}}({_ORIGINS})\b.*>",
        "{who} grew up {rest}.",
        "grew_up_in",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(r"my (home ?town|home country)( is|'s) <place>", "{who} is from {place}.", "is_from", Since.ALWAYS),
    rule(
        rf"i'm (originally )?<title=(half )?({NATIONALITIES})>( (and|but|by|so|born|from)\b.*)?",
        "{who} is {title}.",
        "nationality",
        Since.ALWAYS,
    ),
    rule(r"my (time ?zone)( is|'s) <verbatim=[\w+:/ -]{2,24}>", "{whose} time zone is {verbatim}.", "time_zone"),
    rule(r"i have <word=dual citizenship|dual nationality>", "{who} has {word}.", "citizenship", Since.ALWAYS),
    rule(
        rf"i have <word=(an?|the) ({NATIONALITIES}) (passport|citizenship|visa|nationality)>",
        "{who} has {word}.",
        "citizenship",
    ),
    rule(r"(i|we|i've|we've) moved into <rest=(an?|our|my) .+>", "{who} moved into {rest}{when}.", "dwelling"),
    rule(
        r"(my|our) (new )?<word=flat|house|apartment|place|room|studio|home|condo> "
        r"<rest=(is|has) (in|on|near|by|a|an|two|three|four|right|next|just|close|above) .+>",
        "{whose} {word} {rest}.",
        "dwelling:{word}",
    ),
    rule(
        r"(i've|we've) been in <place> for .*\b(years|months)( now)?",
        "{who} lives in {place}.",
        "lives_in",
        needs=Needs.WHOLE,
    ),
    rule(r"(i'm|we're) renting (an? \w+ )?in <place>( until .+| for .+)?", "{who} lives in {place}.", "lives_in"),
    rule(r"(home for me|my home) is <place>", "{who} lives in {place}.", "lives_in"),
    rule(
        rf"(i'm|i come|we come) from <rest=(an?|the) ([\w'-]+ ){{0,3}}({_ORIGINS})\b.*>",
        "{who} is from {rest}.",
        "is_from",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(
        r"(i|we) share <rest=(an?|our|the) (flat|place|house|room|apartment) with .+>",
        "{who} shares {rest}.",
        "lives_with",
    ),
    rule(r"i'm a <title=(?-i:[A-Z])[\w ]+(er|ian|ite)>", "{who} is a {title}.", "nationality", Since.ALWAYS),
    rule(
        r"(i|we) (don't live <rest=(in|on|near|at|by) .+> any ?more|no longer live <rest1=(in|on|near|at|by) .+>)",
        "{who} no longer lives {rest}{rest1}.",
        "lives_in",
        ends="{rest}{rest1}",
    ),
)
