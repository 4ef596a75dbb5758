"""Words that carry no content, or that change how two statements compare, in the languages that rules know."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Function words, pronouns and fillers: texts that differ in these alone say the same.
EMPTY = _words(
    """
    a about actually again all also am an and any are as at be been being btw but by confirmed did do does for from
    fyi get got had has have he her hers him his i i'd i'll i'm i've in is it it's its just me mine my no note of oh ok
    okay on or our ours please reminder she so still than that that's the their theirs them then there they this those
    to too update us was we we're we've were will with would yes yeah yep you you're you've your yours
    hi hello hey thanks thank
    aber als am auch auf das dem den der des die dir du ein eine einen einer es für habe hast hat ich ihr im in ist ja
    mein meine mir mit sich sie sind so und von war wir zu zum zur dein deine
    al con de del el ella en es está ha hay he la las le lo los me mi mis para por que se su sus te tu tus un una ya yo
    au aux avec ce ces c'est de des du elle en est et il j'ai je la le les ma mes mon nous on sa se ses son sur ta
    te tes tu un une vous y
    o os as um uma é estou sou tem tenho do da em com meu minha seu sua eu
    il gli i uno è sono ho hai di della che mio mia suo sua io
    hallo ja danke hola sí gracias oui merci bonjour olá sim obrigado obrigada ciao sì grazie
    """
)
NEGATIONS = _words(
    """
    no not never neither nor none nothing nobody without cannot can't don't doesn't didn't won't isn't aren't wasn't
    weren't haven't hasn't hadn't wouldn't shouldn't couldn't dont doesnt didnt cant wont isnt arent longer stopped quit
    nicht nie kein keine keinen keiner nichts ohne nunca jamás sin ningún ninguna nada ne pas jamais sans aucun aucune
    não sem nenhum non mai senza
    """
)
FIRST_PERSON = _words(
    "i i'd i'll i'm i've me my mine ich mir mich mein meine meinen meiner yo me mi mis je j'ai me mon ma mes eu meu"
    " minha io mio mia mi"
)
# They may be empty, and their order matters: "from Rome to Porto" is another flight, "his" another dentist than "her".
MARKERS = {
    **{word: word for word in ("from", "to", "von", "nach", "zu", "di", "da")},
    **dict.fromkeys(("he", "him", "his"), "he"),
    **dict.fromkeys(("she", "her", "hers"), "she"),
}
PAST = _words(
    "was were had used war waren hatte hatten era eran estaba tenía fue était étais avait avais foi tinha estava ero"
    " avevo aveva"
)
NEGATING_CHARACTERS = re.compile("[不没沒非无無未別别]|ない|ません|않|안 ")
# A message of these words alone is small talk. A capitalized name may stand beside them: "Thanks, Ben!".
COURTESIES = _words(
    """
    ok okay k kk sure yes yep yeah yup no nope nah thanks thank thx ty cheers welcome got it noted understood copy
    right alright fine good great cool nice awesome amazing perfect lovely wow haha hahaha hehe lol lmao hi hello hey
    hiya bye goodbye goodnight morning afternoon evening night later soon see talk you ya u to that that's thats is it's
    its sounds will do very much so a lot well done please sorry no worries problem np anytime will of course absolutely
    exactly indeed agreed true same here me too i i'll i'm know let if there anything else can help happy glad oh ah hm
    hmm um and the all for my pleasure don't mention be how are doing what's up congrats congratulations enjoy have day
    weekend one take care makes sense never mind nevermind everyone everybody folks guys
    danke bitte gern gerne ja nein gut super alles klar hallo tschüss morgen guten abend tag bis später vielen dank
    gracias de nada vale sí si bueno hola adiós hasta luego buenos días buenas noches claro perfecto genial muchas
    merci beaucoup oui non d'accord bonjour salut au revoir bien sûr très de rien ça va
    obrigado obrigada por nada sim não tudo bem olá tchau bom dia boa noite claro ótimo
    grazie mille prego sì va bene ciao buongiorno buonasera certo perfetto
    """
)
SPACELESS_COURTESIES = re.compile(
    r"[\s\W]*(?:(?:好的?|谢谢你?|不客气|嗯+|哈+|是的?|没问题|知道了|收到|明白了?|你好|再见|早上好|晚安|ありがとう(?:ございます)?|"
    r"はい|いいえ|了解(?:です)?|おはよう(?:ございます)?|こんにちは|おやすみ|감사합니다|고마워|네|안녕(?:하세요)?)[\s\W]*)+"
)
QUESTION_WORDS = _words(
    """
    what where when who whom whose which why how was wo wann wer wie welche welcher welches warum wohin woher qué dónde
    cuándo quién cómo cuál cuánto que quoi où quand qui comment quel quelle pourquoi combien onde quando quem como qual
    quanto che cosa dove chi come quale perché
    """
)
# A greeting or thanks may name a person: "Thanks, Ben!".
GREETINGS = _words(
    """
    thanks thank thx ty cheers hi hello hey hiya bye goodbye goodnight welcome congrats congratulations sorry
    morning night
    danke hallo tschüss gracias hola merci bonjour salut obrigado obrigada olá grazie ciao
    """
)
# "Hi, I'm Ana" and "It's Momo" are news.
COPULAS = _words("i i'm i'll it it's its is that's thats my are be same the a")
# Months and days of the week, without endings. They are no names, and what a change of plan changes.
TIMES = _words(
    """
    january february march april may june july august september october november december jan feb mar apr jun jul aug
    sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun today
    tomorrow tonight morning afternoon evening noon
    januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag
    heute morgen abend
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles
    jueves viernes sábado domingo hoy mañana
    janvier février mars avril juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi
    vendredi samedi dimanche demain matin soir
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro segunda terça quarta quinta sexta
    amanhã gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre lunedì martedì mercoledì giovedì
    venerdì sabato domenica oggi domani
    """
)
# Words that announce a change of what was said, and those that stand beside them.
CHANGE_WORDS = _words(
    """
    now actually instead change changed correction corrected update updated moved postponed rescheduled shifted delayed
    jetzt doch stattdessen statt geändert änderung verschoben verlegt
    ahora cambio cambió cambiado aplazado maintenant changement finalement reporté plutôt
    agora mudança mudou adiado adesso ora cambiamento cambiato invece spostato spostata rinviato
    """
)
BESIDE_CHANGES = _words(
    "small slight quick little big plan plans date day time sorry until kleine pequeño petit piccolo"
)
CHANGING_CHARACTERS = re.compile("改|変更|变更|변경|바뀌")
# "Don't forget" is no negation. The pattern is slow, so texts without these letters are not searched for it.
REMINDING = ("orget", "ergessen", "lvid", "ubli", "squeça", "imentic")
REMINDERS = re.compile(
    r"\b(?:please |bitte )?(?:do not|don['’]?t|please|nicht|no|ne|n['’]|não|non) ?"
    r"(?:forget|vergessen|olvides|oublie[sz]? pas|esqueças?|dimenticare)\b",
    re.IGNORECASE,
)
