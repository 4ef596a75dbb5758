"""Possessions: what somebody has, uses and drives, and what became of it."""

from __future__ import annotations

from holdfast.extract.patterns.english.vocabulary import COUNTS, ONE_THING, THINGS
from holdfast.extract.patterns.rules import Needs, rule

_A_THING = rf"<what=({COUNTS}|another|my) ([\w'.-]+ ){{0,3}}({THINGS})s?\b.*>"
_GONE = (
    "was stolen|got stolen|was sold|broke|broke down|died|got totalled|was totalled|got towed|is broken "
    "beyond repair|is gone|drowned|was scrapped"
)

THINGS_OWNED = (
    rule(
        r"(i|we|i've|we've) <word=gave|donated|lent|passed on> (?P<what>((my|our|the) )?<what1=[\w'-]+( [\w'-]+)?>) to "
        r"<rest=(my|a|an|the|our) .+>",
        "{who} {word} {what} to {rest}{when}.",
        "has:{what_head}",
        ends="{what1}",
    ),
    rule(
        r"(i|we|i've|we've) (bought|got|just got|just bought|have|ordered)( myself| ourselves)? <what1=(an?"
        rf"|another) ([\w'-]+ ){{0,2}}({THINGS})>, <what2=an? .+>",
        "{who} has {what1}, {what2}.",
        "has:{what1_head}",
        across=True,
    ),
    rule(
        r"(i|we) (mostly |usually |still )?drive <what=(an?|my) .+>",
        "{who} drives {what}.",
        "drives",
        needs=Needs.WHOLE,
    ),
    rule(r"(i|we) (mostly |usually |still )?ride <what=an? .+>", "{who} rides {what}.", "rides"),
    rule(
        rf"my (new |old |first |current |own )?<word={ONE_THING}>( is|'s) <what=(now )?((an?|the) .+"
        r"|(?-i:[A-Z])[\w-]+( .+)?)>",
        "{whose} {word} is {what}.",
        "has:{word_head}",
        needs=Needs.WHOLE,
    ),
    rule(
        rf"(i|we|i've) (replaced|upgraded|changed|swapped) my <word={ONE_THING}>,? (it's|it is|for|with|to|by"
        r"|and it's|now it's|i have) (now )?<what>( now)?(,.*)?",
        "{whose} {word} is {what}.",
        "has:{word_head}",
        across=True,
        replaces=True,
    ),
    rule(
        r"(i|we|i've) (replaced|swapped|traded|exchanged) (my|the|our) <what1> (with|for|by) <what2=an? .+>",
        "{who} replaced the {what1} with {what2}{when}.",
        "replaced:{what1}",
    ),
    rule(rf"(i|we|i've) (own|have|still have|also have) {_A_THING}", "{who} has {what}.", "has:{what_head}"),
    rule(
        r"(i|we|i've|we've) <word=bought|got|just bought|just got|inherited|built|ordered|also bought|leased> "
        rf"(myself |ourselves )?{_A_THING}",
        "{who} {word} {what}{when}.",
        "has:{what_head}",
    ),
    rule(r"(i|we) own <what=(an?|two|three|my own) .+>", "{who} owns {what}.", "has:{what_head}"),
    rule(
        r"(i|we|i've) (have|bought|got|drive|own) <what=(an?|my|two) ([\w'-]+ ){0,2}(?-i:[A-Z])[\w-]+( .+)?>",
        "{who} has {what}.",
        "has:{what_head}",
    ),
    rule(
        rf"(i|we) (don't have|don't own|have no) (an? |any )?<verbatim={THINGS}|driving licence|driver's "
        r"licen[sc]e>( .*)?",
        "{who} has no {verbatim}.",
        "has:{verbatim_head}",
        ends="{verbatim}",
    ),
    rule(
        rf"(i|we) (no longer have|no longer own) (an? |the |my )?<verbatim={THINGS}>( .*)?",
        "{who} no longer has a {verbatim}.",
        "has:{verbatim_head}",
        ends="{verbatim}",
    ),
    rule(
        r"(i|we|i've|we've) <word=sold|gave away|got rid of|crashed|totalled|scrapped|returned|donated> "
        rf"(my|our|the) (old )?<what=([\w'-]+ )?({THINGS}|(?-i:[A-Z])[\w-]+( \d+)?)\b.*>",
        "{who} {word} the {what}{when}.",
        "has:{what_head}",
        ends="{what}",
    ),
    rule(
        rf"(my|our) <what=([\w'-]+ )?({THINGS})> <word={_GONE}>( .*)?",
        "{whose} {what} {word}{when}.",
        "has:{what_head}",
        ends="{what}",
    ),
    rule(
        r"(i|we|i've|we've) (switched|changed|moved|migrated) (from <what1> )?to <what2=(an? )?(mac|macos"
        r"|linux|windows|android|iphone|ios|ubuntu|firefox|chrome|signal|whatsapp|vim|emacs|kindle|pixel"
        r"|samsung|desktop|macbook|chromebook|playstation|electric car|e-bike)\b.*>",
        "{who} switched to {what2}{when}.",
        "switched:{what2}",
    ),
    rule(
        r"i (use|mostly use|mainly use|prefer using|work on|play on) <what=((an?|my) )?((?-i:[A-Z])[\w-]+"
        r"|[\w-]+ (laptop|phone|computer|mac|pc|keyboard|tablet|bike|wheelchair)|android|linux|windows|macos"
        r"|vim|emacs|arch|ubuntu)\b.*>",
        "{who} uses {what}.",
        "uses:{what}",
        needs=Needs.WHOLE,
    ),
    rule(
        r"(i|we) have <what=(over |about |more than |almost )?\d+ ([\w-]+ )?(records|books|stamps|plants|tattoos"
        r"|piercings|nephews"
        r"|nieces|cousins|grandchildren|followers|subscribers|employees|cars|bikes|guitars|games|comics|coins|cds|dvds"
        r"|houseplants|acres|cards|figurines|watches|cameras)\b.*>",
        "{who} has {what}.",
        "has:{what_head}",
    ),
)
