"""Patterns of French."""

from __future__ import annotations

from holdfast.extract.patterns.rules import Language, compile_pattern, rules_of, words

_KIN = (
    "sœur|soeur|frère|fils|fille|mère|père|maman|papa|cousine?|tante|oncle|grand-mère|grand-père|neveu|nièce"
    "|belle-sœur|beau-frère|belle-mère|beau-père|chef|patronn?e?|meilleure? amie?|amie?|voisine?"
)
_PARTNER = "femme|mari|compagn(e|on)|copine?|petite? amie?|fiancée?|conjointe?"
_PETS = "chienn?e?|chiot|chat|chatte|chaton|lapine?|perroquet|cheval|jument|hamster|tortue|poisson|oiseau|canari|poney"
_MANY = (
    "enfants|fils|filles|sœurs|soeurs|frères|chiens|chats|poules|lapins|poissons|neveux|nièces"
    "|petits-enfants|jumeaux|jumelles"
)
_COUNT = "une?|deux|trois|quatre|cinq|six"
_JOBS = (
    r"\w+(iste|ologue|graphe|ienn?e?|trice|ier|ière|euse|eur)|médecin|professeure?|prof|avocate?"
    r"|architecte|enseignante?|étudiante?|écrivaine?"
    r"|vétérinaire|comptable|pompier|journaliste|boulanger|boulangère|cadre|policier|notaire|sage-femme"
    r"|pilote|secrétaire|retraitée?"
)
_THINGS = "voiture|moto|vélo|piano|guitare|maison|appartement|bateau|potager|jardin|scooter|violon|(?-i:[A-Z])\\w+"
_NO = "(je n'|je ne |j'n'|je )"

FRENCH = Language(
    "L'utilisateur",
    words("je j mon ma mes nous notre moi appelle appelez réponds répondez tutoie parle écris pas on"),
    compile_pattern(r"\b(?:si|peut-être|dit|disait|pense|croit|imagine|aimerais|comme si|avant|jamais de la vie)\b"),
    rules_of(
        (r"(je m'appelle|mon nom est|mon prénom est) <capital_name>", "{who} s'appelle {capital_name}.", "name"),
        (
            r"(je vis|j'habite|nous habitons|nous vivons|on habite) (maintenant )?(à|en|au|aux) <home>",
            "{who} habite à {home}.",
            "lives_in",
        ),
        (r"j'(aime|adore)( beaucoup| bien)? <taste>", "{who} aime {taste}.", "likes:{taste}"),
        (r"(je n'aime pas|j'aime pas|je déteste) <taste>", "{who} n'aime pas {taste}.", "likes:{taste}"),
        (
            r"je (travaille|bosse) (maintenant )?<words=(chez|à|au|pour|dans|en) .+>",
            "{who} travaille {words}.",
            "works_at",
        ),
        (r"je (travaille|bosse) comme <words>", "{who} travaille comme {words}.", "occupation"),
        (
            rf"je suis <words=(une? )?(?!végétari|végane?|vegan)({_JOBS})( (chez|à|au|dans|en|de|depuis) .+)?>",
            "{who} est {words}.",
            "occupation",
        ),
        (rf"{_NO}travaille plus (chez|à|au|pour|dans) <ended>", "{who} ne travaille plus chez {ended}.", "works_at"),
        (
            r"j'ai (quitté|perdu) mon (travail|emploi|poste|boulot) (chez|à|au) <ended>",
            "{who} ne travaille plus chez {ended}.",
            "works_at",
        ),
        (
            r"(j'ai commencé|je viens de commencer) (à travailler )?<words=(chez|à) .+>",
            "{who} travaille {words}.",
            "works_at",
        ),
        (r"je suis <word=à la retraite|au chômage|sans emploi|en congé parental>", "{who} est {word}.", "occupation"),
        (rf"{_NO}(habite|vis) plus (à|en|au) <ended>", "{who} n'habite plus à {ended}.", "lives_in"),
        (
            r"(j'ai déménagé|nous avons déménagé|on a déménagé|j'ai emménagé) (à|en|au) <home>",
            "{who} a déménagé à {home}.",
            "lives_in",
        ),
        (
            r"(je vis|j'habite|nous habitons|nous vivons) <words=avec .+|seule?|dans une? .+>",
            "{who} habite {words}.",
            "lives_with",
        ),
        (r"je (viens|suis originaire) (de|du|d') ?<home>", "{who} vient de {home}.", "is_from"),
        (r"(je suis née?|j'ai grandi) (à|en|au) <home>", "{who} vient de {home}.", "is_from"),
        (r"je suis née? <words=(en|le) .*\d.*>", "{who} est de naissance {words}.", "born_on"),
        (
            r"mon anniversaire( est|, c'est|, est|) (le )?<words=.*\d.*>",
            "L'anniversaire de {who} est le {words}.",
            "birthday",
        ),
        (r"j'ai <words=\d{1,3} ans>", "{who} a {words}.", "age"),
        (
            rf"(mon|ma|notre) <word={_PARTNER}> s'appelle <capital_name>",
            "{capital_name} est {word} de {who}.",
            "partner",
        ),
        (
            rf"(mon|ma|notre) <word=((petite?|grande?) )?({_KIN}|{_PETS})> s'appelle <capital_name>",
            "{capital_name} est {word} de {who}.",
            "{word}:{capital_name}",
        ),
        (
            rf"(mon|ma|mes) <word={_KIN}|{_PARTNER}|parents> <words=(est|vit|habite|travaille|étudie|joue|parle"
            r"|vivent|habitent|travaillent) .+>",
            "{word} de {who} {words}.",
            "{word}/{words}",
        ),
        (
            rf"(j'ai|nous avons|on a) <words=({_COUNT}) ((petite?|grande?|vieux|vieille) )?({_KIN}|{_PETS}"
            rf"|{_MANY})\b.*>",
            "{who} a {words}.",
            "has:{words}",
        ),
        (
            r"(je n'ai|nous n'avons|j'ai) pas <words=(d'|de )(enfants?|frères?.*|animaux|voiture|permis|chien|chat)>",
            "{who} n'a pas {words}.",
            "has:{words}",
        ),
        (
            r"je suis <word=mariée?|divorcée?|célibataire|veuve|veuf|enceinte|fiancée?|pacsée?|séparée?>( (avec"
            r"|à) <words>)?",
            "{who} est {word} {words}.",
            "marital",
        ),
        (
            r"(j'ai|je conduis|j'ai acheté|je viens d'acheter|on a) <words=une? ((nouvelle|nouveau|vieille|vieux"
            rf"|petite?) )?({_THINGS})\b.*>",
            "{who} a {words}.",
            "has:{words}",
        ),
        (r"j'ai vendu (mon|ma|le|la) <ended>", "{who} a vendu {ended}.", "has:{ended}"),
        (
            r"je suis (devenue? )?<word=végétarienn?e?|végane?|vegan|vegane|diabétique|gauch[eè]re?|gaucher"
            r"|intolérante? au (lactose|gluten)|cœliaque>( (depuis|et|mais|car|parce) .+)?",
            "{who} est {word}.",
            "diet",
        ),
        (r"je suis allergique <words=(à|au|aux) .+>", "{who} est allergique {words}.", "allergic:{words}"),
        (rf"{_NO}(mange|bois) (pas|plus|jamais) <words>", "{who} ne consomme pas {words}.", "eats:{words}"),
        (rf"{_NO}fume (pas|plus)|j'ai arrêté de fumer", "{who} ne fume pas.", "habit:smoking"),
        (
            r"j'ai <words=de l'asthme|du diabète|des migraines|de l'arthrose|une hernie.*>|je souffre (de|d') "
            r"?<words1>",
            "{who} souffre {words}{words1}.",
            "health:{words}{words1}",
        ),
        (r"je parle (?!à|de|en|avec)(couramment )?<words>", "{who} parle {words}.", "speaks:{words}"),
        (r"j'apprends <words=(le|la|l'|à) ?.+>", "{who} apprend {words}.", "learns:{words}"),
        (r"ma langue maternelle est <words>", "La langue maternelle de {who} est {words}.", "language:native"),
        (
            r"(j'étudie|je fais des études de|je fais un master en|je fais une licence de) <words>",
            "{who} étudie {words}.",
            "studies",
        ),
        (r"je (joue|fais) <words=(du|de la|de l'|au|aux|à la) ?.+>", "{who} pratique {words}.", "plays:{words}"),
        (r"je collectionne <words>", "{who} collectionne {words}.", "collects:{words}"),
        (r"je préfère (?!que|ne)<words>", "{who} préfère {words}.", "prefers:{words}"),
        (r"(mon|ma) <kind1=\w+> préférée? est <words>", "{kind1} que préfère {who}: {words}.", "favourite:{kind1}"),
        (
            r"(s'il te plaît,? )?(réponds|répondez|réponds-moi|parle-moi|écris-moi) <words=(toujours )?en .+>( "
            r"s'il te plaît)?",
            "{who} veut des réponses {words}.",
            "wants:language",
        ),
        (
            r"(s'il te plaît,? )?(appelle-moi|appelez-moi|tu peux m'appeler) <capital_name>",
            "{who} veut être appelé {capital_name}.",
            "called",
        ),
        (
            r"(s'il te plaît,? )?<word=tutoie|vouvoie|tutoyez|vouvoyez>-moi",
            "{who} préfère la forme {word}.",
            "wants:address",
        ),
        (
            r"(s'il te plaît,? )?(n'utilise pas|pas|sans) <words=(d'|de )?(emojis?|jargon)>( s'il te plaît)?",
            "{who} ne veut pas {words}.",
            "wants:{words}",
        ),
    ),
)
