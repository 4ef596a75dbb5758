"""Lists of words that reconciliation reads: negations, numbers, dates, people, and the sides of a life.

They need not be complete: an unknown word makes two texts differ, and texts that differ are not merged.
"""

from __future__ import annotations

from collections.abc import Mapping


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS = _words(
    """
    no not never neither nor none nothing nobody without cannot can't don't doesn't didn't won't isn't aren't wasn't
    weren't haven't hasn't hadn't wouldn't shouldn't couldn't dont doesnt didnt cant wont isnt arent stopped stop quit
    nicht nie kein keine keinen keiner nichts ohne nunca jamás sin ningún ninguna nada ne pas jamais sans aucun aucune
    não sem nenhum nenhuma non mai senza nessuno nessuna
    """
)
NEGATING_CHARACTERS = "不没沒非无無未別别"
# Dates without digits. In most languages they have no capital letter, so they are not read as names.
DATE_WORDS = _words(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays
    sundays today tomorrow yesterday tonight morning afternoon evening night weekend weekends spring summer autumn
    winter easter christmas
    januar februar märz mai juni juli oktober dezember montag dienstag mittwoch donnerstag freitag samstag sonntag heute
    morgen gestern abend
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre lunes martes miércoles
    jueves viernes sábado domingo hoy mañana ayer
    janvier février mars avril juin juillet août septembre octobre novembre décembre lundi mardi mercredi jeudi vendredi
    samedi dimanche aujourd'hui demain hier
    gennaio febbraio aprile maggio giugno luglio settembre ottobre novembre dicembre lunedì martedì mercoledì giovedì
    venerdì sabato domenica oggi domani ieri
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro segunda terça quarta quinta sexta hoje
    amanhã ontem
    """
)
_NUMBERS = (
    "one two three four five six seven eight nine ten eleven twelve",
    "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "uno dos tres cuatro cinco seis siete ocho nueve diez once doce",
    "un deux trois quatre cinq six sept huit neuf dix onze douze",
    "uno due tre quattro cinque sei sette otto nove dieci undici dodici",
    "um dois três quatro cinco seis sete oito nove dez onze doze",
)
_MORE_NUMBERS = (
    "first second third fourth fifth last half both twice once thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million"
    " zwanzig hundert tausend veinte cien mil vingt cent mille venti cento vinte"
)
# Articles of other languages ("un", "um") stand for themselves.
NUMBER_WORDS: Mapping[str, str] = {
    **{word: word for word in _MORE_NUMBERS.split()},
    **{word: str(value) for line in _NUMBERS for value, word in enumerate(line.split(), 1) if word not in ("un", "um")},
}
# Words for people: a fact about one of them is not about another.
PEOPLE = _words(
    """
    mother father mum mom dad parents brother sister siblings son daughter child children kids wife husband partner
    girlfriend boyfriend fiancé fiancée ex aunt uncle cousin nephew niece grandmother grandfather grandma grandpa
    grandparents friend neighbour neighbor boss manager colleague flatmate roommate teacher doctor dentist
    mother-in-law father-in-law brother-in-law sister-in-law law
    mutter vater eltern bruder schwester sohn tochter kind kinder frau mann freund freundin tante onkel nachbar chef
    madre padre padres hermano hermana hijo hija hijos esposa marido novia novio tía tío vecino jefe amigo amiga
    mère père parents frère sœur soeur fils fille enfants femme mari ami amie voisin
    fratello sorella figlio figlia figli moglie marito fidanzata fidanzato amico amica vicino capo
    mãe pai pais irmão irmã filho filha filhos esposo namorada namorado vizinho chefe
    """
)
# Words of one attitude say the same; those of the other do not.
_LIKING = "like likes love loves enjoy enjoys adore adores fond liked loved"
_AVERSION = "dislike dislikes hate hates detest detests loathe loathes despise despises disliked hated stand"
ATTITUDES: Mapping[str, str] = {
    **dict.fromkeys(_LIKING.split(), "liking"),
    **dict.fromkeys(_AVERSION.split(), "aversion"),
}
# Words that say hardly more than "is" or "has".
GENERIC = _words(
    """
    called named call calls name works work working job has have having want wants like keep keeps own owns get gets
    go goes going use uses take takes make makes live lives anymore more longer really very currently now just new old
    heißt heisst llama appelle chiama chama
    """
)
# One more of something does not end the first.
ADDING = _words(
    """
    another also too additional additionally besides second
    auch weiterer weitere weiteres zweite zweiter zweites außerdem zusätzlich
    también otro otra segundo segunda además
    aussi autre deuxième également
    anche altro altra secondo seconda inoltre
    também outro outra além
    """
)
# Words that end something.
ENDING = _words(
    """
    cancelled canceled sold died dead stolen lost broke broken gave left quit stopped ended over finished retired
    postponed moved changed replaced divorced separated split
    abgesagt verkauft gestorben gestohlen verloren beendet verschoben gekündigt
    canceló cancelé vendió murió robaron perdió terminó dejó
    annulé vendu mort volé perdu fini quitté annullato venduto morto rubato perso finito lasciato
    cancelou vendeu morreu roubado perdeu terminou deixou
    """
)
# The words around which the order decides: "tea over coffee", "from Rome to Paris".
COMPARING = _words(
    "over than rather instead before after from versus vs als statt vor nach von que antes después avant après prima"
)
# Sides of a life of which a person has one at a time: words of the same side speak of the same thing.
_SIDES = (
    """
    single married marry engaged divorced divorce widowed girlfriend boyfriend partner husband wife fiancé fiancée
    relationship dating separated broke split ledig verheiratet geschieden verlobt soltera soltero casada casado
    divorciada divorciado célibataire mariée marié divorcée divorcé solteira solteiro
    """,
    """
    work works working worked job jobs employed unemployed employer retired retire teaches teacher teach career
    freelance freelancer freelances self-employed arbeitet arbeitslos rentner trabaja trabajo jubilada jubilado
    travaille chômage retraitée retraité lavora pensione trabalha aposentada
    """,
    "lives live moved moves resides residence home address wohnt zieht vive mudó habite habita mora reside",
    """
    vegan vegetarian pescatarian omnivore carnivore diet meat gluten-free keto vegana vegano vegetariana vegetariano
    végane végétarienne végétarien veganerin veganer vegetarierin vegetarier
    """,
    "pet pets dog dogs cat cats puppy kitten parrot hamster rabbit haustier haustiere hund katze mascota perro gato",
    "smokes smoke smoker smoking non-smoker raucht fuma fume",
)
SIDES = tuple(_words(side) for side in _SIDES)
