"""Tell whether two texts say the same, and whether a text is small talk. Pure, and cautious: a doubt means no.

Two texts repeat each other if their content words, numbers, names and negations agree; words that carry nothing ("a
reminder:", "again") do not count. Similarity of meaning is not used: "the demo is on 3 May" is near "the demo is on
5 May", and says something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SPACELESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# Longer texts are compared by their beginning.
_MOST_CHARS = 2_000
_STEM_CHARS = 6
# An assistant's message that restates the user's has most of its content words, and few others.
_ECHO_SHARE = 0.75
_LEAST_ECHO_WORDS = 2


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Function words, pronouns and fillers: texts that differ in these alone say the same.
_EMPTY = _words(
    """
    a about actually again all also am an and any are as at be been being btw but by confirmed did do does for from
    fyi get got had has have he her hers him his i i'd i'll i'm i've in is it it's its just me mine my no note of oh ok
    okay on or our ours please reminder she so still than that that's the their theirs them then there they this those
    to too update us was we we're we've were will with would yes you you're you've your yours
    aber als am auch auf das dem den der des die dir du ein eine einen einer es für habe hast hat ich ihr im in ist ja
    mein meine mir mit sich sie sind so und von war wir zu zum zur dein deine
    al con de del el ella en es está ha hay he la las le lo los me mi mis para por que se su sus te tu tus un una ya yo
    au aux avec ce ces c'est de des du elle en est et il j'ai je la le les ma mes mon nous on sa se ses son sur ta
    te tes tu un une vous y
    """
)
_NEGATIONS = _words(
    """
    no not never neither nor none nothing nobody without cannot can't don't doesn't didn't won't isn't aren't wasn't
    weren't haven't hasn't hadn't wouldn't shouldn't couldn't dont doesnt didnt cant wont isnt arent longer stopped quit
    nicht nie kein keine keinen keiner nichts ohne nunca jamás sin ningún ninguna nada ne pas jamais sans aucun aucune
    não sem nenhum non mai senza
    """
)
_FIRST_PERSON = _words(
    "i i'd i'll i'm i've me my mine ich mir mich mein meine meinen meiner yo me mi mis je j'ai me mon ma mes eu meu"
    " minha io mio mia mi"
)
_NEGATING_CHARACTERS = re.compile("[不没沒非无無未別别]|ない|ません|않|안 ")
# A message of these words alone is small talk. A capitalized name may stand beside them: "Thanks, Ben!".
_COURTESIES = _words(
    """
    ok okay k kk sure yes yep yeah yup no nope nah thanks thank thx ty cheers welcome got it noted understood copy
    right alright fine good great cool nice awesome amazing perfect lovely wow haha hahaha hehe lol lmao hi hello hey
    hiya bye goodbye goodnight morning afternoon evening night later soon see talk you ya u to that that's thats is it's
    its sounds will do very much so a lot well done please sorry no worries problem np anytime will of course absolutely
    exactly indeed agreed true same here me too i i'll i'm know let if there anything else can help happy glad oh ah hm
    hmm um and the all for my pleasure don't mention be how are doing what's up congrats congratulations enjoy have day
    weekend one take care makes sense
    danke bitte gern gerne ja nein gut super alles klar hallo tschüss morgen guten abend tag bis später vielen dank
    gracias de nada vale sí si bueno hola adiós hasta luego buenos días buenas noches claro perfecto genial muchas
    merci beaucoup oui non d'accord bonjour salut au revoir bien sûr très de rien ça va
    obrigado obrigada por nada sim não tudo bem olá tchau bom dia boa noite claro ótimo
    grazie mille prego sì va bene ciao buongiorno buonasera certo perfetto
    """
)
_SPACELESS_COURTESIES = re.compile(
    r"[\s\W]*(?:(?:好的?|谢谢你?|不客气|嗯+|哈+|是的?|没问题|知道了|收到|明白了?|你好|再见|早上好|晚安|ありがとう(?:ございます)?|"
    r"はい|いいえ|了解(?:です)?|おはよう(?:ございます)?|こんにちは|おやすみ|감사합니다|고마워|네|안녕(?:하세요)?)[\s\W]*)+"
)
# Longer messages hold more than courtesies.
_MOST_COURTESY_WORDS = 12


@dataclass(frozen=True, slots=True)
class Statement:
    """The words of a text that carry its meaning: stems in their order, numbers, names, and whether it negates.

    A personal one is about its speaker: "I live here", said by two people, is two statements.
    """

    speaker: str | None
    stems: tuple[str, ...]
    numbers: tuple[str, ...]
    names: frozenset[str]
    is_negated: bool
    is_personal: bool

    def repeats(self, other: Statement) -> bool:
        """True if both say the same."""
        if not self.stems and not self.numbers:
            return False
        names = self.names | other.names
        return (
            set(self.stems) == set(other.stems)
            and self._agrees(other)
            and self._is_of_same_speaker(other)
            and [stem for stem in self.stems if stem in names] == [stem for stem in other.stems if stem in names]
        )

    def echoes(self, other: Statement) -> bool:
        """True if this restates the other with few words of its own: "So you moved to Lisbon! How is it?"."""
        own, others = set(self.stems), set(other.stems)
        if len(others) < _LEAST_ECHO_WORDS or not self._agrees(other):
            return False
        shared = len(own & others)
        return shared >= _ECHO_SHARE * len(others) and len(own) - shared <= max(2, shared // 2)

    def adds_to(self, other: Statement) -> int:
        """Count the words and numbers of this that the other does not have."""
        return len(set(self.stems) - set(other.stems)) + len(set(self.numbers) - set(other.numbers))

    def _agrees(self, other: Statement) -> bool:
        return self.numbers == other.numbers and self.is_negated == other.is_negated

    def _is_of_same_speaker(self, other: Statement) -> bool:
        if not (self.is_personal or other.is_personal) or None in (self.speaker, other.speaker):
            return True
        return self.speaker == other.speaker


def read_statement(text: str, *, speaker: str | None = None) -> Statement:
    """Read a text. The speaker's own name counts as a pronoun: "Ana lives here", said of Ana, is "I live here"."""
    own = speaker.casefold().split() if speaker else ()
    stems: list[str] = []
    numbers: list[str] = []
    names: set[str] = set()
    head = text[:_MOST_CHARS]
    is_negated = not head.isascii() and _NEGATING_CHARACTERS.search(head) is not None
    is_personal = False
    for place, word in enumerate(_WORD.findall(head)):
        read = _read_word(word)
        is_negated = is_negated or read.negates
        is_personal = is_personal or read.is_personal
        if read.is_empty or read.folded in own:
            continue
        if read.is_number:
            numbers.append(read.folded)
            continue
        if place and word[0].isupper():
            names.update(read.stems)
        stems += read.stems
    name = None if speaker is None else speaker.casefold()
    return Statement(name, tuple(stems), tuple(numbers), frozenset(names), is_negated, is_personal)


class _Word(NamedTuple):
    folded: str
    negates: bool
    is_personal: bool
    is_empty: bool
    is_number: bool
    stems: tuple[str, ...]


# Words repeat; texts are not cached, because they can be forgotten.
@lru_cache(20_000)
def _read_word(word: str) -> _Word:
    folded = word.casefold().replace("’", "'").removesuffix("'s")
    negates = folded in _NEGATIONS
    is_number = any(char.isdigit() for char in folded)
    return _Word(
        folded, negates, folded in _FIRST_PERSON, negates or folded in _EMPTY, is_number, tuple(_stems(folded))
    )


def is_small_talk(text: str) -> bool:
    """True if a message says nothing that could be remembered: "Got it, thanks!", "haha", an emoji."""
    if len(text) > _MOST_CHARS:
        return False
    words = _WORD.findall(text)
    if not words:
        return not any(char.isalnum() for char in text)
    if _SPACELESS.search(text):
        return _SPACELESS_COURTESIES.fullmatch(text) is not None
    if len(words) > _MOST_COURTESY_WORDS:
        return False
    others = [word for word in words if word.casefold().replace("’", "'") not in _COURTESIES]
    return not others or (len(others) == 1 < len(words) and others[0][0].isupper() and others[0] != words[0])


def _stems(word: str) -> Iterator[str]:
    """Yield a word without its ending; pairs of characters for scripts without spaces."""
    if _SPACELESS.search(word):
        yield from (word[at : at + 2] for at in range(max(1, len(word) - 1)))
    else:
        yield _without_ending(word)[:_STEM_CHARS]


def _without_ending(word: str) -> str:
    for ending in ("ings", "ing", "ies", "ed", "es", "s", "e"):
        if len(word) - len(ending) >= 3 and word.endswith(ending):
            return word[: -len(ending)]
    return word
