"""Keep of a message what its speaker states as their own: not what is quoted, pasted or pretended.

Quotations, code, markup, lines of others ("Bob: I live in Paris"), texts to work on and instructions to an agent are
left out. The function is cautious: it rather leaves out a statement than takes another's for the speaker's own.
"""

from __future__ import annotations

import re
import unicodedata

_APOSTROPHES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'})
_EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u27bf][\U0001f000-\U0001faff\u2600-\u27bf\ufe0f\u200d]*")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
# A tag at the beginning of a line ("[system]", "[10:02]") says that the line is somebody else's.
_TAGGED_LINE = re.compile(r"^[ \t]*\[[^\n]*$", re.MULTILINE)
_BRACKETED = re.compile(r"\[[^\]\n]*(?:\]|$)", re.MULTILINE)
_MARKUP = re.compile(r"<[^>\n]*(?:>|$)|\{[^}\n]*(?:\}|$)|`[^`\n]*(?:`|$)", re.MULTILINE)
_MARK = "§"  # placeholder for removed text; no value may hold it
# After a colon it is speech: 'she said: "…"'.
_QUOTED = re.compile(r'(:\s*)?"([^"\n]*)(?:"|$)', re.MULTILINE)
# All that follows the head of a forwarded mail, "Ben wrote:" or "Transcript:" is another's.
_FORWARDED = re.compile(
    r"^[ \t]*(?:from|von|de|da): .*\n(?:.*\n){0,4}?[ \t]*(?:subject|betreff|asunto|objet|assunto|oggetto): .*"
    r"|^[ \t]*-{2,} ?(?:forwarded|original|weitergeleitet|ursprünglich).*"
    r"|^.{0,80}\b(?:wrote|writes|schrieb|schreibt|escribió|écrit|escreveu|transcript|begin quote):[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_OWN_WORDS = re.compile(
    r"\b(?:i|i'm|my|we|our|me|ich|yo|je|j|eu|mi|meu|mein)\b|我|^[^\w]*$"
    r"|^\W*(?:always|never|please|don't|do not|from now on|answer|reply|respond|use|keep|call|stop"
    r"|no more|be|write|speak)\b",
    re.IGNORECASE,
)

# "Bob: I live in Paris" and "> I live in Paris" are not the speaker's own words.
_FOREIGN_LINE = re.compile(
    r"\s*(?:>|[-*#|]\s|\d+[.)]\s|(?!(?:ps|btw|(?:please )?(?:note|remember)|update|correction|fun fact|fyi)\b)"
    r"(?P<head>[\w .'-]{1,40}):\s)",
    re.IGNORECASE,
)
_MOST_NAME_WORDS = 3
# "I looked it up: my car is a 2017 Mazda" is the speaker's own; "my sister said: I live in Paris" is not.
_OWN_HEAD = re.compile(r"\b(?:i|my|we|our|ich|mein\w*|yo|mis?|je|mon|ma|eu|meu|minha)\b", re.IGNORECASE)
_SPEECH = re.compile(
    r"\b(?:sa(?:id|ys)|wr(?:ote|ites)|t(?:old|ells)|ask(?:ed|s)|answer(?:ed|s)|repli(?:ed|es)|texted|quot\w+|to me|me"
    r"|sag\w*|schr\w+|dijo|dice|escrib\w+|dit|écri\w+|disse|diz|escreve\w*)\b",
    re.IGNORECASE,
)
_TASK = re.compile(
    r"(?:^|[.!?:\n] {0,2})(?:(?:please|can you|could you|now|help me) ){0,3}"
    r"(?:translate|rewrite|proofread|paraphrase|summari[sz]e|rephrase|write(?! (?:to me|in|with)\b)"
    r"|draft|compose|role-?play"
    r"|pretend|act as|act like"
    r"|repeat after|repeat the|correct (?:this|the|my)|fix (?:this|the|my)|edit (?:this|the|my)|imagine|suppose|say:"
    r"|let's pretend|let's say|finish (?:this|the)|complete (?:this|the)|traduce"
    r"|übersetze|traduis|traduza|翻译|dear )",
    re.IGNORECASE,
)
_UNRELIABLE = re.compile(
    r"\b(?:just kidding|only kidding|i'm kidding|jk|just joking|i'm joking|april fools|role-?play\w*"
    r"|lyrics|in character"
    r"|sarcas\w+|hypothetical\w*|for example|example sentence|jailbreak\w*|system prompt)\b|(?:^|\s)/s\b"
    r"|\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|rule|previous"
    r"|prior|above|guideline)"
    r"|\bfrom now on,? (?:you|your|act|behave)\b"
    r"|\bwithout (?:any )?(?:limits|restrictions|filters?|rules|guardrails|censorship|limitations)\b"
    r"|\byou (?:are now|must|should now|will now)\b|</?(?:system|user|assistant|instructions?)\b"
    r"|\b(?:system|assistant):",
    re.IGNORECASE,
)


def own_words(text: str) -> str:
    """Return the speaker's own words; an empty text if the whole message is a task, a pretence or an instruction."""
    text = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    if _UNRELIABLE.search(text) or _TASK.search(text):
        return ""
    forwarded = _FORWARDED.search(text)
    return _own_lines(text[: forwarded.start()] if forwarded else text)


def _own_lines(text: str) -> str:
    text = _TAGGED_LINE.sub("", _EMOJI.sub(" . ", _FENCE.sub("\n", text)))
    text = _MARKUP.sub(_MARK, _BRACKETED.sub(" . ", text))
    return _QUOTED.sub(_without_speech, "\n".join(map(_own_part, text.split("\n"))))


def _own_part(line: str) -> str:
    """Return the part of a line before another's words: "I live here. Bob wrote: …" is their own up to the stop."""
    found = _FOREIGN_LINE.match(line)
    if found is None:
        return line
    before, stop, head = (found["head"] or "").rpartition(". ")
    is_name = len(re.findall(r"\w+", head)) <= _MOST_NAME_WORDS and _OWN_HEAD.search(head) is None
    if head and not is_name and _SPEECH.search(head) is None:
        return line
    return before + stop


def _without_speech(quoted: re.Match[str]) -> str:
    """Keep a quoted title; remove quoted speech."""
    words = quoted[2]
    is_speech = quoted[1] is not None or _OWN_WORDS.search(words) or words.count(" ") > 5
    return f"{quoted[1] or ''}{_MARK if is_speech else words}"
