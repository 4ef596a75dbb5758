"""Standing instructions to an assistant: how to answer, in which language, how to call somebody.

A wish for this one answer is none: without "always", "never" or "from now on", only what can be meant for good is read.
"""

from __future__ import annotations

from holdfast.extract.patterns.english.vocabulary import FREQUENCY, TONGUES
from holdfast.extract.patterns.rules import Needs, Since, rule

_PLEASE = r"(please |pls |just |and |also |so |then |ok |okay )*"
_MANNER = (
    "answer|reply|respond|write|speak|talk|use|give|show|explain|keep|address|cite|include|add|mention|format|round"
    "|convert|spell|translate|start|end|begin|ask|check|double[- ]check|tell|suggest|recommend|list|quote|sign|put|make"
    "|be|provide|offer|call|refer|summari[sz]e|present|express|confirm|warn|remind|assume|avoid|stick|limit|name|state"
    "|calculate|number|structure|link|label|greet|wait|prefer|say|consider|describe|sort|wrap|number|highlight"
)
_LASTING_MANNER = (
    "answer|reply|respond|speak|talk|use|give|show|explain|keep|call|address|cite|include|mention|be|avoid|stop|start"
    "|end|remind|treat|double[- ]check|always|never|stick|limit|assume"
)
_FROM_NOW = (
    r"(from now on|from here on|in (the )?future|going forward|in general|as a rule|for future reference|generally)"
)
_STYLE = (
    r"(?:in (?:short )?)?(?:bullet points?|bullets|metric|metric units|imperial units|british|american"
    r"|british english|american english"
    r"|celsius|fahrenheit|kilometres|kilometers|miles|euros?|dollars|pounds|24[- ]hour|12[- ]hour|iso "
    r"dates?|plain english"
    r"|plain language|simple words|short sentences|full sentences|formal|informal|markdown|plain text"
    r"|emojis?|type hints"
    r"|code comments|tables|numbered lists|sources|units|spelling|spellings|english|german|french|spanish"
    r"|italian|portuguese|dutch"
    r"|swedish|polish|turkish|japanese|chinese|korean|russian|arabic|hindi|norwegian|danish|finnish|greek"
    r"|czech|hungarian"
    r"|concise|brief|direct|polite|patient|honest|blunt)"
)
_BANNED = (
    r"emojis?|emoticons?|small talk|exclamation marks?|bullet points?|bullets|jargon|markdown|tables"
    r"|headings|apologies|apologising"
    r"|apologizing|flattery|compliments|disclaimers|lectures|moralizing|moralising|sarcasm|jokes|puns"
    r"|slang|swearing|swear words|filler|fluff|spoilers"
    r"|abbreviations|acronyms|em dashes|long paragraphs|walls of text|nicknames|preamble|hashtags|horror "
    r"films|horror movies|meat dishes"
)
_LIMIT = (
    r"(short|brief|concise|simple|formal|informal|under \d+ \w+|below \d+ \w+|to the point|to \d+ \w+( or "
    r"less)?|polite|friendly|casual|light|crisp|factual)"
)

_LENGTHS = r"(one|two|three|\d+|short|full|simple|complete) (paragraphs?|sentences?|lines?)"
_POLITENESS = r"pleasantries|intros?|introductions?|formalities|greetings?|sign-offs?|explanations?|caveats"
_QUANTITIES = (
    "dates|times|temperatures|prices|distances|weights|measurements|units|amounts|recipes|currencies"
    "|numbers|answers|replies"
)

REQUESTS = (
    # names
    rule(
        r"(please |just |you can |you may |everyone |everybody |my friends |people |most people |friends |the "
        r"kids |colleagues )*"
        r"(calls?|address) me (?P<capital_name>.+)",
        "{who} is called {capital_name}.",
        "called",
        Since.ALWAYS,
    ),
    rule(r"i (usually |mostly )?go by (?P<capital_name>.+)", "{who} is called {capital_name}.", "called", Since.ALWAYS),
    rule(r"my nickname( is|'s) (?P<capital_name>.+)", "{who} is called {capital_name}.", "called", Since.ALWAYS),
    rule(
        rf"{_PLEASE}(address|refer to) me as <verbatim=[\w. '-]{{2,40}}>",
        "{who} wants to be addressed as {verbatim}.",
        "called",
        Since.ALWAYS,
    ),
    rule(
        rf"{_PLEASE}(don't|never|stop) (ever )?(call|calling) me <rest=[\w.'-]+( [\w.'-]+)?>( any ?more)?",
        "{who} does not want to be called {rest}.",
        "called",
        ends="{rest}",
    ),
    # always, never, from now on
    rule(
        rf"{_PLEASE}{_FROM_NOW},? (please |always )*<order=({_MANNER})\b.*>",
        "{who} wants the assistant to {order} from now on.",
        "wants:{order_head}",
        across=True,
    ),
    rule(
        rf"{_PLEASE}(from now on )?always <order=({_MANNER})\b.*>",
        "{who} wants the assistant to always {order}.",
        "wants:{order_head}",
        across=True,
    ),
    rule(
        rf"{_PLEASE}(from now on )?never <order=({_MANNER}|assume|forget to|skip|send|wake|message|text|share"
        r"|apologi[sz]e)\b.*>",
        "{who} wants the assistant to never {order}.",
        "wants:{order_head}",
        across=True,
    ),
    rule(
        rf"{_PLEASE}remember to (always )?<order=({_MANNER})\b.*>",
        "{who} wants the assistant to always {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}<order=({_MANNER}) .+>,? (from now on|in future|in the future|going forward|at all times"
        r"|by default|always)( please)?",
        "{who} wants the assistant to always {order}.",
        "wants:{order_head}",
        across=True,
    ),
    rule(
        r"(i want|i'd like|i need|i would like|i expect|i'd prefer|i'd love) you to (always |please |only "
        rf")*<order=({_LASTING_MANNER})\b.*>",
        "{who} wants the assistant to {order}.",
        "wants:{order_head}",
        across=True,
    ),
    rule(
        r"when(ever)? you <order1=(write|answer|reply|give|show|explain|suggest|recommend|send|make|list"
        rf"|mention|talk) [\w ]{{1,40}}>, (please |always )*<order2=({_MANNER})\b.*>",
        "{who} wants the assistant to {order2} whenever it has to {order1}.",
        "wants:{order2_head}",
        across=True,
    ),
    # a manner that can only be meant for good
    rule(
        rf"{_PLEASE}<order=(use|write in|write|answer in|reply in|respond in|speak|speak in|answer with|talk in"
        rf"|stick to) (only )?{_STYLE}( \w+)?( (units?|spelling|english|time|format|please|sentences|points"
        r"|notation|style|to me|with me))*>",
        "{who} wants the assistant to {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}(answer|write|speak|talk|reply|respond) (to me )(only )?<order=in .+>",
        "{who} wants answers {order}.",
        "wants:language",
    ),
    rule(
        rf"{_PLEASE}keep (all )?(your |the )?(answers?|replies|responses|messages|explanations|tone|it|things"
        rf"|language) <order={_LIMIT}>( and {_LIMIT})?",
        "{who} wants answers that are {order}.",
        "wants:length",
    ),
    rule(
        rf"{_PLEASE}be (more |very |as )?<order={_LIMIT}|direct|honest|blunt|patient|critical|thorough"
        r"|precise>( with me| as possible)?( .*)?",
        "{who} wants the assistant to be {order}.",
        "wants:be {order}",
    ),
    rule(
        rf"{_PLEASE}(explain|talk|speak|write)( things| to me)? <order=simply|slowly|formally|informally"
        r"|like i'm .+>",
        "{who} wants the assistant to explain things {order}.",
        "wants:manner",
    ),
    rule(
        rf"{_PLEASE}(don't|do not|never|stop|quit|avoid) (ever )?(use|using|add|adding|include|including|write"
        r"|writing|give|giving|put|putting|send|sending|make|making|suggest|suggesting|recommend|recommending"
        r"|show|showing|reply with|answer with|answer in|reply in) (me |any |so many )?<order=[\w' "
        rf"-]*\b({_BANNED})\b.*>",
        "{who} wants the assistant not to use {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}(stop|quit) <order=(apologi[sz]ing|using|repeating|asking|suggesting|recommending|lecturing"
        r"|complimenting|flattering|adding|ending|starting|sending|calling|saying|explaining|telling|switching"
        r"|translating|assuming|interrupting|reminding)\b.*>",
        "{who} wants the assistant to stop {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}(don't|do not) (ever )?<order=(suggest|recommend|wake|message|text|call|remind|contact"
        r"|disturb|email|ask|explain|translate|apologi[sz]e|lecture|summari[sz]e|repeat|assume|use"
        r"|switch|correct|swear|spoil|interrupt|start|end|mention|sugarcoat|bring up|compliment"
        r"|patroni[sz]e|flatter|judge|nag|push|praise)\b.*>",
        "{who} does not want the assistant to {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}no( more)? <order=([\w-]+ ){{0,2}}({_BANNED})>( (for me|please|pls|ever|thanks|in your "
        r"answers|any ?more|at all))*",
        "{who} wants no {order}.",
        "wants:{order_head}",
    ),
    rule(
        r"i (only )?prefer <rest=(answers|replies|responses|explanations|messages|summaries|(short|long|brief"
        r"|detailed|concise|direct|formal|informal) (answers|replies|responses|explanations)|bullet "
        r"points)\b.*>",
        "{who} prefers {rest}.",
        "wants:length",
    ),
    rule(
        r"i (like|want) <rest=(my )?(answers|replies|responses|explanations)\b.*>",
        "{who} wants {rest}.",
        "wants:length",
        needs=Needs.WHOLE,
    ),
    rule(
        rf"{_PLEASE}(answer|reply|respond|speak|talk|write)( to me| everything)?( only)? "
        rf"<order=in ({TONGUES}|{_LENGTHS}( at most| max| or less)?)>( please| always| from now on| only)*",
        "{who} wants answers {order}.",
        "wants:language",
    ),
    rule(
        r"(you can |please |just |feel free to )*(skip|drop|leave out|spare me|cut|cut out) (all )?(the |your |any )?"
        rf"<order=([\w-]+ ){{0,2}}({_BANNED}|{_POLITENESS})\b.*>",
        "{who} wants the assistant to skip {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"i (don't want|don't need) (any |the )?<order=([\w-]+ ){{0,2}}({_BANNED})( in .+)?>",
        "{who} does not want {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"i (hate|don't like|can't stand|dislike) (it when you (use|add|write|make) )?"
        rf"<order=([\w-]+ ){{0,2}}({_BANNED})"
        r"( in (your |the )?(answers|replies|messages|texts|writing))?>(?<!films)(?<!movies)(?<!small talk)(?<!jokes)",
        "{who} does not want {order}.",
        "wants:{order_head}",
    ),
    rule(
        r"(i'd rather|i'd prefer|i'd like it|i prefer it) (if |when )?you"
        r" (answered|spoke|wrote|replied|used|answer|speak|write|reply|use) <order>",
        "{who} wants the assistant to answer {order}.",
        "wants:{order_head}",
    ),
    rule(
        r"i (need|want|like|prefer) (my |your |the )?(answers|replies|explanations|responses|messages) (to be )?"
        r"<order=short|brief|concise|simple|detailed|long|formal|informal|direct|in .+>( .*)?",
        "{who} wants answers that are {order}.",
        "wants:length",
    ),
    rule(
        r"<order=(only )?(short|brief|concise|detailed|direct|honest|simple|one-line|long)"
        r" (answers|replies|responses|explanations|sentences)( only)?>,?( please)?( always| from now on)?",
        "{who} wants {order}.",
        "wants:length",
        across=True,
    ),
    rule(
        rf"<order=(all )?({_QUANTITIES})( always| only)? in .+>,?( please| always)*",
        "{who} wants {order}.",
        "wants:{order_head}",
        across=True,
    ),
    rule(
        rf"{_PLEASE}(write|give|show|list|quote|put|state|use|format|display)( me)? <order=(all "
        rf")?({_QUANTITIES}) (as|in) .+>",
        "{who} wants {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}<order=(remind|ask|tell|send|message) me .*({FREQUENCY})>",
        "{who} wants the assistant to {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}(always )?<order=(ask|check with|consult|warn|tell) me (first )?before .+>",
        "{who} wants the assistant to {order}.",
        "wants:{order_head}",
    ),
    rule(
        rf"{_PLEASE}address me <order=by .+|with .+|formally|informally>",
        "{who} wants to be addressed {order}.",
        "called",
    ),
)
