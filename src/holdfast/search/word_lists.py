"""Word lists of several languages for text analysis and query parsing.

Data only. A language that is not listed loses a nuance of ranking, never a match.
"""

from __future__ import annotations

CLITICS_AFTER = frozenset({"s", "t", "re", "ve", "ll", "d", "m"})
CLITICS_BEFORE = frozenset({"l", "d", "j", "c", "qu", "n", "m", "t", "un", "dell", "nell", "all", "sull"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _with_capitalized(words: frozenset[str]) -> frozenset[str]:
    return words | {word.capitalize() for word in words}


# Without "may", "march", "sun" and the like, which are usually other words.
TIME_WORDS = _with_capitalized(
    _words(
        """
        yesterday today tonight tomorrow ago week weeks weekend month months year years day days hour hours
        monday tuesday wednesday thursday friday saturday sunday morning afternoon evening night
        january february april june july august september october november december
        jan feb apr jun jul aug sept oct nov dec recently lately since
        ayer hoy mañana semana semanas mes meses año años lunes martes miércoles jueves viernes sábado domingo
        enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
        hier aujourd'hui demain semaine semaines mois années lundi mardi mercredi jeudi vendredi samedi dimanche
        janvier février avril juin juillet août septembre octobre novembre décembre
        gestern heute morgen woche wochen monat monate jahr jahre jahren tag tage montag dienstag mittwoch donnerstag
        freitag samstag sonntag januar februar märz mai juni juli oktober dezember
        ieri oggi domani settimana settimane mese mesi anno anni lunedì martedì mercoledì giovedì venerdì sabato
        domenica gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre
        ontem hoje amanhã semanas mês ano anos segunda terça quarta quinta sexta janeiro fevereiro março maio junho
        julho setembro outubro novembro dezembro
        gisteren vandaag week weken maand maanden jaar jaren maandag dinsdag woensdag donderdag vrijdag zaterdag zondag
        вчера сегодня завтра неделя неделю недели назад месяц месяца год года лет понедельник вторник среда четверг
        пятница суббота воскресенье января февраля марта апреля мая июня июля августа сентября октября ноября декабря
        """
    )
)

STOP_WORDS = {
    "en": _words(
        """
        a about after again all also am an and any are as at be because been before being between both but by can could
        did do does doing during each for from further had has have having he her here hers herself him himself his how
        i if in into is it its itself just like me might more most must my myself no nor not now of off on once only or
        other our ours ourselves out over own same shall she should so some such than that the their theirs them
        themselves then there these they this those through to too under until up us very was we were what when where
        which while who whom whose why will with would you your yours yourself
        """
    ),
    "de": _words(
        """
        aber als am an auch auf aus bei bin bis bist da das dass dein dem den der des die dir doch du durch ein eine
        einem einen einer eines er es für hat habe haben ich ihm ihn ihr im in ist ja kann mein meine mich mir mit nach
        nicht noch nur oder sein seine sich sie sind so um und uns von vor war waren was wann wer wie wir wird wo wurde
        zu zum zur über welche welcher welches
        """
    ),
    "fr": _words(
        """
        à au aux avec ce ces cette dans de des du elle en est et eu il ils je la le les leur lui ma mais me mes moi mon
        ne nos notre nous on ont ou où par pas pour qu que quel quelle quels quelles qui quand quoi sa se ses son sont
        sur ta te tes toi ton tu un une vos votre vous a été était
        """
    ),
    "es": _words(
        """
        a al como con cual cuál cuándo cuando cómo de del desde dónde donde el ella en era es esta está este fue ha han
        la las le lo los me mi mis no o para pero por porque qué que quién se sin sobre son su sus también te tu un una
        uno y ya yo
        """
    ),
    "it": _words(
        """
        a ai al alla anche che chi ci come con cosa cui da dal dalla dei del della di dove e è era gli ha hanno ho i il
        in io la le lo ma mi mia mio nel nella non o per perché più quale quali quando questo se si sono su sua sul
        suo tu un una uno
        """
    ),
    "pt": _words(
        """
        a ao aos as com como da das de do dos e ela ele em era essa está eu foi há isso já mais mas me meu minha na não
        nas no nos o onde os ou para pela pelo por qual quando que quem se sem seu sua são também te tem um uma
        """
    ),
    "nl": _words(
        """
        aan al als bij dan dat de der deze die dit door een en er had heb heeft het hij hoe ik in is je kan maar me
        met mijn naar niet nog of om ook op over te toen tot uit van veel voor waar wanneer was wat we welke werd wie
        wij zijn zich zij zo
        """
    ),
    "ru": _words(
        """
        а бы был была были было быть в вам вас во все вы где да для до его ее её если есть же за и из или им их к как
        какая какие какой ко когда кто ли меня мне мой моя мы на над не него нет но ну о об он она они от по при с
        со та так такой там то того только ты у уже что чтобы эта эти это этот я
        """
    ),
}

# By month: the forms used in running text.
MONTHS: dict[str, int] = {
    name: number
    for number, names in enumerate(
        (
            "january jan enero janvier januar gennaio janeiro januari января январь январе",
            "february feb febrero février februar febbraio fevereiro februari февраля февраль феврале",
            "march mar marzo mars märz março maart марта март марте",
            "april apr abril avril aprile апреля апрель апреле",
            "may mayo mai maggio maio mei мая май мае",
            "june jun junio juin juni giugno junho июня июнь июне",
            "july jul julio juillet juli luglio julho июля июль июле",
            "august aug agosto août augustus августа август августе",
            "september sept sep septiembre septembre settembre setembro сентября сентябрь сентябре",
            "october oct octubre octobre oktober ottobre outubro октября октябрь октябре",
            "november nov noviembre novembre novembro ноября ноябрь ноябре",
            "december dec diciembre décembre dezember dicembre dezembro декабря декабрь декабре",
        ),
        start=1,
    )
    for name in names.split()
}
# Months that are also other words: they count only next to a number, or capitalized within a sentence.
DOUBTFUL_MONTHS = frozenset(
    {"may", "march", "mar", "mars", "mai", "mayo", "mei", "april", "june", "august", "jan", "sep", "мае"}
)

FIRST_PERSON = _words(
    """
    i me my mine myself ich mich mir mein meine meinem meinen meiner je moi mon mes yo mi mis mío mía io mio mia miei
    eu meu minha meus minhas ik mij mijn я меня мне мой моя мои моё мою моего моей
    """
)

# Senders with these names are roles, not people that a query could name.
ROLE_NAMES = _words("user assistant system tool bot ai human agent model customer client me you function unknown")
