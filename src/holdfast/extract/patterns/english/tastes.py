"""Tastes: likes, dislikes, preferences and favourites."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.extract.patterns.rules import ExtractionRule, Needs, Since, rule

_LIKINGS = (  # first person, third person
    ("love|adore", "loves"),
    ("like", "likes"),
    ("enjoy", "enjoys"),
    ("hate|detest|despise|can't stand|loathe|can't bear", "hates"),
    ("don't like|dislike|don't enjoy|don't care for|don't really like|never liked", "does not like"),
    ("prefer", "prefers"),
)
_FAVOURITE = r"(all[- ]time )?favou?rite"
_NOT_FAVOURED = r"(?!(part|thing|one|bit|moment|time|line|answer|version|option)\b)"


def _likings() -> Iterator[ExtractionRule]:
    for said, reads in (("love", "loves"), ("like", "likes"), ("enjoy", "enjoys")):
        yield rule(
            rf"i (no longer|don't) {said} <thing> any ?more",
            f"{{who}} no longer {reads} {{thing}}.",
            "likes:{thing}",
            replaces=True,
        )
        yield rule(
            rf"i no longer {said} <thing>", f"{{who}} no longer {reads} {{thing}}.", "likes:{thing}", replaces=True
        )
    for said, reads in _LIKINGS:
        yield rule(
            rf"i ({said}) my <rest=(coffee|tea|steak|eggs|food|toast|pizza|meat|curry|whisky|beer|wine|bread) .+>",
            f"{{who}} {reads} their {{rest}}.",
            "takes:{rest}",
        )
        if said == "prefer":
            yield rule(r"i prefer <rest=the \w+ (over|to) .+>", "{who} prefers {rest}.", "likes:{rest}", Since.ALWAYS)
        yield rule(
            rf"i ({said}) (?!(up|out|down|by|in|on)\b)<thing>",
            f"{{who}} {reads} {{thing}}.",
            "likes:{thing}",
            Since.ALWAYS,
            Needs.WHOLE,
        )
        yield rule(
            rf"i ({said}) to <doing>", f"{{who}} {reads} to {{doing}}.", "likes:{doing}", Since.ALWAYS, Needs.WHOLE
        )


_SETTLED = (
    rule(
        r"i've (always hated|never liked|never been a fan of|never been into) <thing>",
        "{who} does not like {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(
        r"i've always (loved|liked|enjoyed) <thing>", "{who} likes {thing}.", "likes:{thing}", Since.ALWAYS, Needs.WHOLE
    ),
    rule(
        r"i'm (a (big |huge |massive |total |real |lifelong )?fan of|into|fond of|crazy about|obsessed with"
        r"|passionate about"
        r"|mad about|big on) <thing>",
        "{who} likes {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(
        r"(i'm not|not) (a (big |huge )?fan of|into|fond of|keen on|crazy about) <thing>",
        "{who} does not like {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(
        rf"my {_FAVOURITE} {_NOT_FAVOURED}<kind> (is|are|has always been) <item>",
        "{whose} favourite {kind} is {item}.",
        "favourite:{kind}",
        Since.ALWAYS,
    ),
    rule(
        rf"<item> (is|are) my {_FAVOURITE} {_NOT_FAVOURED}<kind>",
        "{whose} favourite {kind} is {item}.",
        "favourite:{kind}",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(
        r"i'd rather <rest=(?!not\b)\w+ .+ than .+>",
        "{who} would rather {rest}.",
        "likes:{rest}",
        Since.ALWAYS,
    ),
    rule(
        r"i'm (more of )?<word=an? (big |huge |avid |keen )?[\w-]+ (person|lover|drinker|eater|enthusiast"
        r"|fanatic|nerd|geek|addict|buff|hater)>( .*)?",
        "{who} is {word}.",
        "is:{word}",
        Since.ALWAYS,
    ),
    rule(
        r"i'm (really |very |terribly )?<word=afraid|scared|terrified> of <thing>",
        "{who} is {word} of {thing}.",
        "fears:{thing}",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(r"i support <organization>", "{who} supports {organization}.", "supports:{organization}", Since.ALWAYS),
    rule(
        r"i don't mind <thing>",
        "{who} does not mind {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(
        r"i (can't get enough of|have a soft spot for|have a thing for|can't live without|can't resist|live "
        r"for|swear by)"
        r" <thing>",
        "{who} likes {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
        Needs.WHOLE,
    ),
    rule(
        r"i'm (a |an )?(total |absolute |big )?(sucker for|nut about|nuts about|partial to|addicted to|mad "
        r"about) <thing>",
        "{who} likes {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
    ),
    rule(
        r"<thing> (is|are) (really |just |definitely )?(not for me|not my thing|not my cup of tea)",
        "{who} does not like {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
    ),
    rule(
        r"<thing> (is|are) (really |totally |so )?(my thing|my guilty pleasure|my passion)",
        "{who} likes {thing}.",
        "likes:{thing}",
        Since.ALWAYS,
    ),
    rule(
        r"my (go-to|usual|preferred) <kind> (is|are) <item>",
        "{whose} usual {kind} is {item}.",
        "favourite:{kind}",
        Since.ALWAYS,
    ),
    rule(
        r"i find <thing> <word=boring|relaxing|stressful|exhausting|fascinating|annoying|disgusting|delicious|calming>",
        "{who} finds {thing} {word}.",
        "likes:{thing}",
        Since.ALWAYS,
    ),
)
TASTES = (*_likings(), *_SETTLED)
