"""Patterns of German."""

from __future__ import annotations

from holdfast.extract.patterns.rules import Language, compile_pattern, rules_of, words

_KIN = (
    "schwester|bruder|sohn|tochter|mutter|vater|mama|papa|oma|opa|großmutter|großvater|cousine?|tante"
    "|onkel|neffe|nichte"
    "|schwägerin|schwager|schwiegermutter|schwiegervater|chefin?|beste freundin|bester freund|nachbarin?"
    "|kollegin?|kollege|enkelin?"
)
_PARTNER = "frau|mann|freundin|freund|partnerin?|verlobter?"
_PETS = (
    "hund|hündin|welpe|katze|kater|kätzchen|kaninchen|papagei|pferd|hamster|schildkröte|fisch"
    "|wellensittich|meerschweinchen|huhn"
)
_MANY = (
    "kinder|söhne|töchter|schwestern|brüder|geschwister|hunde|katzen|hühner|kaninchen|fische|pferde"
    "|neffen|nichten|enkel|zwillinge"
)
_COUNT = "einen?|eine|ein|zwei|drei|vier|fünf|sechs|keine?"
_MY = "(mein|meine|unser|unsere)"
_JOBS = (
    r"(?-i:[A-ZÄÖÜ])\w+(lehrer|ärztin|arzt|pfleger|schwester|meister|ingenieur|techniker|entwickler"
    r"|verkäufer|berater|fahrer|bauer|zeichner|wärter)(in)?"
    r"|lehrer(in)?|arzt|ärztin|(kranken)?pfleger(in)?|krankenschwester|ingenieur(in)?|bäcker(in)?|koch"
    r"|köchin|anwalt|anwältin|architekt(in)?"
    r"|programmierer(in)?|informatiker(in)?|verkäufer(in)?|student(in)?|journalist(in)?|polizist(in)?"
    r"|erzieher(in)?|handwerker(in)?|tischler(in)?"
    r"|friseur(in)?|mechaniker(in)?|elektriker(in)?|übersetzer(in)?|buchhalter(in)?|designer(in)?"
    r"|musiker(in)?|hebamme|pilot(in)?|rentner(in)?"
    r"|tierarzt|tierärztin|psycholog(e|in)|biolog(e|in)|therapeut(in)?|schriftsteller(in)?|kellner(in)?"
    r"|gärtner(in)?|beamter|beamtin|maurer(in)?"
)
_THINGS = (
    r"auto|wagen|motorrad|fahrrad|rad|e-bike|klavier|gitarre|haus|wohnung|boot|garten|schrebergarten"
    r"|kamera|roller|geige|motorboot|wohnmobil|handy|laptop|fernseher|tesla|vespa"
)
_NOW = "(jetzt |zurzeit |gerade |inzwischen |seit \\w+ |seit \\w+ \\w+ )?"

GERMAN = Language(
    "Der Nutzer",
    words(
        "ich mein meine wir unser unsere mir mich nenn nenne bitte antworte antworten keine duze duz schreib schreibe"
    ),
    compile_pattern(
        r"\b(?:wenn|falls|würde|hätte|wäre|vielleicht|sagt|sagte|meint|glaubt|denkt|ob|früher|angenommen)\b"
    ),
    rules_of(
        (r"(ich hei(ß|ss)e|mein name ist) <capital_name>", "{who} heißt {capital_name}.", "name"),
        (rf"(ich|wir) (wohnen?|lebe|leben) {_NOW}in <home>", "{who} wohnt in {home}.", "lives_in"),
        (r"ich (mag|liebe)( sehr| gerne?)? <taste>", "{who} mag {taste}.", "likes:{taste}"),
        (r"ich (hasse|mag kein(e|en)?) <taste>", "{who} mag kein {taste}.", "likes:{taste}"),
        (rf"ich arbeite {_NOW}<words=(bei|für|in der|im|an der|beim) .+>", "{who} arbeitet {words}.", "works_at"),
        (
            r"(seit .+|jetzt|nun|inzwischen) arbeite ich <words=(bei|für|in|im|an|beim|als) .+>",
            "{who} arbeitet {words}.",
            "works_at",
        ),
        (rf"ich arbeite {_NOW}als <words>", "{who} arbeitet als {words}.", "occupation"),
        (
            rf"ich bin {_NOW}<words=({_JOBS})( (in|bei|an|von beruf|im) .+| von beruf)?>",
            "{who} ist {words}.",
            "occupation",
        ),
        (r"ich arbeite nicht mehr (bei|für|beim|in der) <ended>", "{who} arbeitet nicht mehr bei {ended}.", "works_at"),
        (r"ich habe (bei|beim) <ended> gekündigt", "{who} arbeitet nicht mehr bei {ended}.", "works_at"),
        (
            r"ich habe (meinen job|meine stelle|meine arbeit) (bei|beim) <ended> (gekündigt|verloren|aufgegeben)",
            "{who} arbeitet nicht mehr bei {ended}.",
            "works_at",
        ),
        (r"ich habe (bei|beim) <words> angefangen", "{who} arbeitet bei {words}.", "works_at"),
        (
            rf"ich bin {_NOW}<verbatim=in rente|arbeitslos|selbstständig|selbständig|in elternzeit|pensioniert"
            r"|freiberuflich|schwanger>",
            "{who} ist {verbatim}.",
            "occupation",
        ),
        (r"(ich|wir) (wohnen?|lebe|leben) nicht mehr in <ended>", "{who} wohnt nicht mehr in {ended}.", "lives_in"),
        (
            r"(ich bin|wir sind) (letzt\w+ \w+ |im \w+ |gerade |jetzt )?nach <home> (um)?gezogen",
            "{who} wohnt in {home}.",
            "lives_in",
        ),
        (
            r"(ich|wir) (wohnen?|lebe|leben) <words=(mit|allein|alleine|bei meinen|in einer?|auf dem|am)\b.*>",
            "{who} wohnt {words}.",
            "lives_with",
        ),
        (r"ich (komme|stamme) aus <home>", "{who} kommt aus {home}.", "is_from"),
        (r"ich bin in <home> (geboren|aufgewachsen)", "{who} kommt aus {home}.", "is_from"),
        (
            r"ich bin <words=(am )?.*\d.*> geboren|ich wurde <words1=.*\d.*> geboren",
            "{who} wurde {words}{words1} geboren.",
            "born_on",
        ),
        (
            r"mein geburtstag ist (am )?<words=\d.*>|ich habe am <words1=\d.*> geburtstag",
            "{who} hat am {words}{words1} Geburtstag.",
            "birthday",
        ),
        (r"ich bin <number=\d{1,3}>( jahre alt)?", "{who} ist {number} Jahre alt.", "age"),
        (rf"{_MY} <verbatim={_PARTNER}> heißt <capital_name>", "{capital_name} ist {verbatim} von {who}.", "partner"),
        (
            rf"{_MY} <verbatim=((kleine|große|ältere|jüngere|kleiner|großer|älterer|jüngerer) )?({_KIN}|{_PETS})> "
            r"heißt <capital_name>",
            "{capital_name} ist {verbatim} von {who}.",
            "{verbatim}:{capital_name}",
        ),
        (
            rf"{_MY} <verbatim={_KIN}|{_PARTNER}|eltern|kinder> <words=(ist|wohnt|lebt|arbeitet|studiert|spielt|spricht"
            r"|wohnen|leben|arbeiten|sind) .+>",
            "{verbatim} von {who} {words}.",
            "{verbatim}/{words}",
        ),
        (
            rf"(ich habe|wir haben) <words=({_COUNT}) ((kleine|große|ältere|jüngere|alte)[nrs]? )?({_KIN}|{_PETS}"
            rf"|{_MANY}|haustiere)\b.*>",
            "{who} hat {words}.",
            "has:{words}",
        ),
        (
            r"ich bin <verbatim=verheiratet|geschieden|ledig|single|verwitwet|verlobt|getrennt>( mit <words>)?",
            "{who} ist {verbatim} {words}.",
            "marital",
        ),
        (
            rf"(ich habe|wir haben|ich besitze) <words=({_COUNT}) ((neue|alte|rote|blaue|kleine)[nrs]? "
            rf")?({_THINGS})\b.*>",
            "{who} hat {words}.",
            "has:{words}",
        ),
        (r"(ich fahre|ich besitze) <words=(einen?|eine|ein) .+>", "{who} fährt {words}.", "drives"),
        (r"ich habe (mein|meine|meinen|das|den|die) <ended> verkauft", "{who} hat {ended} verkauft.", "has:{ended}"),
        (
            r"ich bin (jetzt |seit .+ )?<verbatim=vegetarier(in)?|veganer(in)?|vegan|vegetarisch|diabetiker(in)?"
            r"|linkshänder(in)?|laktoseintolerant>( (seit|und|aber|weil) .+)?",
            "{who} ist {verbatim}.",
            "diet",
        ),
        (r"ich bin allergisch <words=(gegen|auf) .+>", "{who} ist allergisch {words}.", "allergic:{words}"),
        (
            r"ich habe eine <words=\w+-?allergie|\w+intoleranz|allergie gegen .+>",
            "{who} hat eine {words}.",
            "allergic:{words}",
        ),
        (r"ich (esse|trinke) (kein|keine|keinen) <words>( mehr)?", "{who} nimmt kein {words} zu sich.", "eats:{words}"),
        (r"ich rauche nicht( mehr)?|ich habe mit dem rauchen aufgehört", "{who} raucht nicht.", "habit:smoking"),
        (
            r"ich habe <words=asthma|diabetes|migräne|rheuma|bluthochdruck|heuschnupfen|arthrose|adhs|zöliakie"
            r"|epilepsie>",
            "{who} hat {words}.",
            "health:{words}",
        ),
        (r"ich spreche (?!mit|von|über|für)<words>", "{who} spricht {words}.", "speaks:{words}"),
        (r"ich lerne (gerade |jetzt )?<words>", "{who} lernt {words}.", "learns:{words}"),
        (r"meine muttersprache ist <words>", "Die Muttersprache von {who} ist {words}.", "language:native"),
        (r"ich studiere <words>", "{who} studiert {words}.", "studies"),
        (r"ich spiele <words>", "{who} spielt {words}.", "plays:{words}"),
        (r"ich sammle <words>", "{who} sammelt {words}.", "collects:{words}"),
        (
            r"ich (gehe|jogge|schwimme|laufe|mache|turne) <words=(jeden|jede|montags|dienstags|mittwochs"
            r"|donnerstags|freitags|samstags|sonntags|täglich|einmal|zweimal)\b.*>",
            "{who} hat die Gewohnheit: {words}.",
            "routine:{words}",
        ),
        (r"ich (singe|tanze) <words=(in|im) .+>", "{who} ist dabei {words}.", "hobby:{words}"),
        (r"ich bevorzuge <words>", "{who} bevorzugt {words}.", "prefers:{words}"),
        (
            r"(mein|meine) lieblings<kind1=\w+> (ist|sind) <words>",
            "Lieblings{kind1} von {who}: {words}.",
            "favourite:{kind1}",
        ),
        (
            r"(bitte )?(antworte|antworten sie|schreib|schreibe|sprich) (mir |mit mir )?(bitte )?<words=(bitte "
            r"|immer |nur )*(auf|in) .+>( bitte)?",
            "{who} möchte Antworten {words}.",
            "wants:language",
        ),
        (
            r"(bitte )?(antworte|schreib|fass dich|halte dich) (mir )?(bitte )?(immer )?<words=kurz|knapp"
            r"|ausführlich|in stichpunkten>",
            "{who} möchte Antworten {words}.",
            "wants:length",
        ),
        (
            r"(bitte )?(nenn|nenne) mich (bitte )?<capital_name>|du kannst mich <capital_name1> nennen",
            "{who} möchte {capital_name}{capital_name1} genannt werden.",
            "called",
        ),
        (r"(bitte )?<verbatim=duze|sieze|duz|siez> mich( bitte)?", "{who}: Anrede, {verbatim}.", "wants:address"),
        (
            r"(bitte )?(verwende |benutze |nutze )?(keine|nie) <words=emojis|smileys|fachwörter|aufzählungen>( "
            r"bitte| mehr)?",
            "{who} möchte keine {words}.",
            "wants:{words}",
        ),
    ),
)
