"""Patterns of Italian."""

from __future__ import annotations

from holdfast.extract.patterns.rules import Language, compile_pattern, rules_of, words

_KIN = (
    "sorella|fratello|figli[oa]|madre|padre|mamma|papà|cugin[oa]|zi[oa]|nonn[oa]|nipote|cognat[oa]"
    "|suocer[oa]|capo|amic[oa]|vicin[oa]"
)
_PARTNER = "moglie|marito|ragazz[oa]|fidanzat[oa]|compagn[oa]"
_PETS = (
    "cane|cagn[oa]|cagnolin[oa]|gatt[oa]|gattin[oa]|coniglio|pappagallo|cavallo|criceto|tartaruga|pesce"
    "|uccellino|canarino"
)
_MANY = "figli[e]?|sorelle|fratelli|cani|gatti|galline|conigli|pesci|nipoti|gemelli|cugini"
_COUNT = "uno?|una|un'|due|tre|quattro|cinque|sei"
_JOBS = (
    r"\w+(ista|ologo|ologa|ografo|ografa|aio|aia|iere|iera|trice)|medico|insegnante|professore|professoressa|maestr[oa]"
    r"|avvocat[oa]|ingegnere|cuoc[oa]|programmatore|designer|architett[oa]|student[ie]?(essa)?|studente|attore"
    r"|scrittore|veterinari[oa]|poliziott[oa]|pompiere|traduttore|meccanico|pilota|segretari[oa]|commess[oa]"
    r"|operai[oa]|idraulico|impiegat[oa]|pensionat[oa]|ostetrica"
)
_THINGS = (
    "macchina|auto|moto|bici|bicicletta|pianoforte|chitarra|casa|appartamento|barca|orto|giardino|vespa"
    "|violino|(?-i:[A-Z])\\w+"
)

ITALIAN = Language(
    "L'utente",
    words(
        "mi mia mio miei mie io ho abbiamo sono siamo vivo viviamo abito abitiamo lavoro parlo studio suono "
        "gioco mangio bevo fumo amo odio adoro preferisco vengo guido chiamami rispondi rispondimi parlami "
        "imparo scrivimi faccio colleziono niente compio"
    ),
    compile_pattern(
        r"\b(?:se|magari|forse|ha detto|dice|dicono|disse|crede|pensa|immagina|come se|vorrei|piacerebbe|prima"
        r"|nemmeno)\b"
    ),
    rules_of(
        (r"(mi chiamo|il mio nome è) <capital_name>", "{who} si chiama {capital_name}.", "name"),
        (r"(io )?(vivo|abito|viviamo|abitiamo) (ora )?(a|in|nel|nella) <home>", "{who} vive a {home}.", "lives_in"),
        (r"(amo|adoro|mi (piace|piacciono)( molto| tanto)?) <taste>", "A {who} piace {taste}.", "likes:{taste}"),
        (r"(odio|detesto|non mi (piace|piacciono)) <taste>", "A {who} non piace {taste}.", "likes:{taste}"),
        (
            r"(ora |adesso |io )?lavoro <words=(in|alla?|al|all'|per|presso|da|nel|nella|con)\b ?.+>",
            "{who} lavora {words}.",
            "works_at",
        ),
        (r"(ora |io )?(lavoro come|faccio (il|la|l')) ?<words>", "{who} lavora come {words}.", "occupation"),
        (rf"(ora |io )?sono <words=(un |una |un')?({_JOBS})( .+)?>", "{who} è {words}.", "occupation"),
        (
            r"non lavoro più (in|alla?|al|all'|per|presso|da|nel|nella) ?<ended>",
            "{who} non lavora più a {ended}.",
            "works_at",
        ),
        (
            r"(ho lasciato|ho perso) il (mio )?lavoro (in|alla?|al|all'|da|presso) ?<ended>",
            "{who} non lavora più a {ended}.",
            "works_at",
        ),
        (
            r"ho (appena )?(iniziato|cominciato) a lavorare (in|alla?|al|per|da) <words>",
            "{who} lavora a {words}.",
            "works_at",
        ),
        (r"sono <word=in pensione|disoccupat[oa]>", "{who} è {word}.", "occupation"),
        (r"non (vivo|abito) più (a|in) <ended>", "{who} non vive più a {ended}.", "lives_in"),
        (r"(mi sono trasferit[oa]|ci siamo trasferiti) (a|in) <home>", "{who} si è trasferito a {home}.", "lives_in"),
        (
            r"(vivo|abito|viviamo|abitiamo) <words=con .+|da sol[oa]|in (un|una) .+>",
            "{who} vive {words}.",
            "lives_with",
        ),
        (r"(sono|vengo) (di|da|dal|dalla) <home>", "{who} viene da {home}.", "is_from"),
        (r"sono (nat[oa]|cresciut[oa]) (a|in) <home>", "{who} viene da {home}.", "is_from"),
        (r"sono nat[oa] <words=(nel|il|l') ?.*\d.*>", "{who} è di nascita {words}.", "born_on"),
        (
            r"(il mio compleanno è|compio gli anni) (il |l')?<words=.*\d.*>",
            "Il compleanno di {who} è {words}.",
            "birthday",
        ),
        (r"ho <words=\d{1,3} anni>", "{who} ha {words}.", "age"),
        (
            rf"(mia|mio|la mia|il mio) <word={_PARTNER}> si chiama <capital_name>",
            "{capital_name} è {word} di {who}.",
            "partner",
        ),
        (
            rf"(mia|mio|la mia|il mio|la nostra|il nostro) <word={_KIN}|{_PETS}>( maggiore| minore)? si chiama "
            r"<capital_name>",
            "{capital_name} è {word} di {who}.",
            "{word}:{capital_name}",
        ),
        (
            rf"(mia|mio|la mia|il mio) <word={_KIN}|{_PARTNER}> <words=(è|vive|abita|lavora|studia|gioca|parla|ha) .+>",
            "{word} di {who} {words}.",
            "{word}/{words}",
        ),
        (rf"(ho|abbiamo) <words=({_COUNT}) ?({_KIN}|{_PETS}|{_MANY})\b.*>", "{who} ha {words}.", "has:{words}"),
        (
            r"non (ho|abbiamo) <words=figli|fratelli|animali|la macchina|la patente>",
            "{who} non ha {words}.",
            "has:{words}",
        ),
        (
            r"sono <word=sposat[oa]|divorziat[oa]|single|vedov[oa]|incinta|fidanzat[oa]|separat[oa]>( con <words>)?",
            "{who} è {word} {words}.",
            "marital",
        ),
        (
            rf"(ho|guido|ho comprato|mi sono comprat[oa]) <words=(un |una |un')({_THINGS})\b.*>",
            "{who} ha {words}.",
            "has:{words}",
        ),
        (r"ho venduto (la mia|il mio|la|il|l') ?<ended>", "{who} ha venduto {ended}.", "has:{ended}"),
        (
            r"sono <word=vegetarian[oa]|vegan[oa]|celiac[oa]|diabetic[oa]|mancin[oa]"
            r"|intollerante al lattosio>( (da|dal|dalla|e|ma|perché) .+)?",
            "{who} è {word}.",
            "diet",
        ),
        (
            r"(sono allergic[oa]|ho un'allergia) <words=(a|al|alla|alle|ai|agli|all').+>",
            "{who} ha un'allergia {words}.",
            "allergic:{words}",
        ),
        (r"non mangio (più )?<words>", "{who} non mangia {words}.", "eats:{words}"),
        (r"non bevo (più )?<words>", "{who} non beve {words}.", "eats:{words}"),
        (r"non fumo( più)?|ho smesso di fumare", "{who} non fuma.", "habit:smoking"),
        (
            r"(ho l'asma|soffro di <words>|ho <words1=il diabete|l'emicrania|la celiachia|l'artrite>)",
            "{who} soffre di {words}{words1}.",
            "health:{words}{words1}",
        ),
        (r"(io )?parlo (?!(con|di|in)\b)<words>", "{who} parla {words}.", "speaks:{words}"),
        (r"(sto imparando|imparo) <words>", "{who} impara {words}.", "learns:{words}"),
        (
            r"la mia lingua madre è <words>|la mia madrelingua è <words1>",
            "La lingua madre di {who} è {words}{words1}.",
            "language:native",
        ),
        (r"(studio|sto studiando) <words>", "{who} studia {words}.", "studies"),
        (r"suono <words=(il|la|l'|lo) ?.+>", "{who} suona {words}.", "plays:{words}"),
        (
            r"(gioco|faccio) <words=(a )?(calcio|tennis|scacchi|basket|pallavolo|padel|yoga|nuoto|golf)\b.*>",
            "{who} pratica {words}.",
            "plays:{words}",
        ),
        (r"colleziono <words>", "{who} colleziona {words}.", "collects:{words}"),
        (r"preferisco (?!che|non)<words>", "{who} preferisce {words}.", "prefers:{words}"),
        (
            r"(il mio|la mia) <kind1=\w+( \w+)?> preferit[oa] è <words>",
            "{kind1} che {who} preferisce: {words}.",
            "favourite:{kind1}",
        ),
        (
            r"(per favore,? )?(rispondi|rispondimi|parlami|scrivimi) <words=(sempre )?in .+>",
            "{who} vuole risposte {words}.",
            "wants:language",
        ),
        (
            r"(per favore,? )?(chiamami|puoi chiamarmi) <capital_name>",
            "{who} vuole essere chiamato {capital_name}.",
            "called",
        ),
        (
            r"(per favore,? )?(non usare|niente|senza) <words=emoji|faccine|gergo>",
            "{who} non vuole {words}.",
            "wants:{words}",
        ),
    ),
)
