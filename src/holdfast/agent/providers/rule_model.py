"""A rule-based stand-in for a model: it keeps what users tell it, and quotes it on request. Offline, without a key.

It gets the same messages and tools as a model, so that the whole agent can be tried without one. It stores statements
with the `memory` tool, if there is one. It looks for answers in its input (notes, the reference message, the
conversation), then in earlier sessions. It quotes, and never invents.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.agent.ports import ModelEvent, ModelMessage, Reply, Role, TextPiece, ToolCall, ToolSpec
from holdfast.agent.providers.intent_rules import (
    ClassifiedSentence,
    Wish,
    classify_sentences,
    is_about_speaker,
    is_question,
    slot,
)
from holdfast.agent.providers.overlap import best, words_of, words_to_look_for
from holdfast.agent.providers.prompt_parser import Note, ParsedPrompt, parse_messages
from holdfast.agent.texts import parse_object

MEMORY, SEARCH = "memory", "session_search"
_MOST_CALLS = 5
_LISTED = 10
_SESSIONS = 10
_SAID_BY_USER = "user: "
_PIECE = re.compile(r"\S+\s*|\s+")
_QUOTED = re.compile("“([^“”]+)”")
_ABOUT_SELF = re.compile(r"\b(?:i|me|my|mine|we|us|our)\b", re.IGNORECASE)
_WHO_AM_I = re.compile(r"\bwho\s+am\s+i\b", re.IGNORECASE)
_THANKS = re.compile(r"\b(?:thanks|thank\s+you|thx)\b", re.IGNORECASE)
# Without an example: a gateway stores this text, and would recall an example as if the user had said it.
_INTRODUCTION = (
    "I am a handful of rules and no model. "
    "Tell me something about yourself, and I keep it; ask me later, and I quote it."
)
_NOT_KNOWN = "I do not know"


class RuleModel:
    """Implements `ChatModel`. The same messages always get the same answer."""

    @property
    def name(self) -> str:
        return "scripted:rules"

    async def stream(self, messages: Sequence[ModelMessage], tools: Sequence[ToolSpec]) -> AsyncIterator[ModelEvent]:
        reply = _decide_reply(parse_messages(messages), frozenset(tool.name for tool in tools))
        for piece in _PIECE.findall(reply.text):
            yield TextPiece(piece)
            await asyncio.sleep(0)  # lets a cancellation in between two words
        yield reply

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _decide_reply(known: ParsedPrompt, tools: frozenset[str]) -> Reply:
    wishes = _latest(classify_sentences(known.prompt))
    if not known.results and (calls := _calls(wishes, known, tools)):
        return Reply("", calls)
    parts = [*_confirm_changes(wishes, known), *_answer_questions(wishes, known)]
    if not parts and _THANKS.search(known.prompt):
        return Reply("You are welcome.")
    return Reply(" ".join(parts) or _INTRODUCTION)


def _latest(wishes: Sequence[ClassifiedSentence]) -> list[ClassifiedSentence]:
    """Drop statements that a later sentence of the same prompt replaces."""
    last_by_slot = {slot(wish.text): wish for wish in wishes if wish.wish is Wish.KEEP}
    return [
        wish
        for wish in wishes
        if wish.wish is not Wish.KEEP or slot(wish.text) is None or last_by_slot[slot(wish.text)] is wish
    ]


# --- tool calls before the answer ------------------------------------------------------------------------------------


def _calls(wishes: Sequence[ClassifiedSentence], known: ParsedPrompt, tools: frozenset[str]) -> tuple[ToolCall, ...]:
    calls: list[tuple[str, dict[str, Any]]] = []
    if MEMORY in tools:
        calls += [(MEMORY, change) for change in _changes(wishes, known)]
    if SEARCH in tools:
        unanswered = [wish.text for wish in wishes if wish.wish is Wish.KNOW and _answer(wish.text, known) is None]
        looked_for = [words_to_look_for(_rephrase_question(text)) for text in unanswered]
        calls += [(SEARCH, {"query": words, "limit": _SESSIONS}) for words in looked_for[:1] if words]
    return tuple(
        ToolCall(f"rules-{number}", name, json.dumps(arguments, ensure_ascii=False))
        for number, (name, arguments) in enumerate(calls[:_MOST_CALLS], 1)
    )


def _changes(wishes: Sequence[ClassifiedSentence], known: ParsedPrompt) -> Iterator[dict[str, Any]]:
    for wish in wishes:
        target = "user" if is_about_speaker(wish.text) else "memory"
        if wish.wish is Wish.KEEP and not _is_noted(wish.text, known):
            if (before := _replaced_note(wish.text, known)) is not None:
                yield {"action": "replace", "target": before.target, "old_text": before.text, "content": wish.text}
            else:
                yield {"action": "add", "target": target, "content": wish.text}
        elif wish.wish is Wish.FORGET and (note := _note_about(wish.text, known)) is not None:
            yield {"action": "remove", "target": note.target, "old_text": note.text}


def _is_noted(text: str, known: ParsedPrompt) -> bool:
    return any(note.text == text for note in known.notes)


def _replaced_note(text: str, known: ParsedPrompt) -> Note | None:
    """Find the note that this one replaces."""
    filled = slot(text)
    return next((note for note in known.notes if filled is not None and slot(note.text) == filled), None)


def _note_about(text: str, known: ParsedPrompt) -> Note | None:
    return best(text, [(note.text, note) for note in known.notes])


# --- the answer ------------------------------------------------------------------------------------------------------


def _confirm_changes(wishes: Sequence[ClassifiedSentence], known: ParsedPrompt) -> Iterator[str]:
    """Yield one sentence for each thing to keep or forget, by its outcome."""
    became = {result.about: result for result in _results(known)}
    for wish in wishes:
        if wish.wish is Wish.KEEP:
            result = became.get(wish.text)
            if result is not None:
                yield result.to_text(f"Noted: “{wish.text}”", f"I could not keep “{wish.text}”")
            elif _is_noted(wish.text, known):
                yield f"I know: “{wish.text}” is in my notes."
            elif known.recalls:
                yield f"Noted: “{wish.text}” It goes to the Memory Gateway with this conversation."
            else:
                yield f"I heard: “{wish.text}” I have no tool to keep it with, but it stays in this session."
        elif wish.wish is Wish.FORGET:
            note = _note_about(wish.text, known)
            result = became.get(note.text) if note is not None else None
            if note is not None and result is not None:
                yield result.to_text(
                    f"Taken out of my notes: “{note.text}” What was said in sessions stays in them.",
                    f"I could not take “{note.text}” out of my notes",
                )
            else:
                yield "There is no such note that I could take out."


def _answer_questions(wishes: Sequence[ClassifiedSentence], known: ParsedPrompt) -> Iterator[str]:
    for wish in wishes:
        if wish.wish is not Wish.KNOW:
            continue
        if not words_of(wish.text) and not _ABOUT_SELF.search(wish.text):
            yield _INTRODUCTION
        else:
            yield _answer(wish.text, known) or _found_in_sessions(wish.text, known) or _not_known(known)


def _answer(question: str, known: ParsedPrompt) -> str | None:
    """Quote from the input. Of equal matches the latest: the conversation, then the notes, then the rest."""
    question = _rephrase_question(question)
    if not words_of(question):
        return _all_that_is_known(known) if _ABOUT_SELF.search(question) else None
    lines = [
        *((line, f"The Memory Gateway recalls: “{line}”") for line in reversed(_worth_quoting(known.reference))),
        *((note.text, f"From my notes: “{note.text}”") for note in known.notes),
        *((said, f"You said it here: “{said}”") for said in _still_said(known.said)),
    ]
    return best(question, lines)


def _rephrase_question(question: str) -> str:
    return "What is my name?" if _WHO_AM_I.search(question) else question


def _all_that_is_known(known: ParsedPrompt) -> str | None:
    found = list(
        dict.fromkeys(
            [*(note.text for note in known.notes), *_worth_quoting(known.reference), *_still_said(known.said)]
        )
    )
    if not found:
        return None
    more = f" And {len(found) - _LISTED} more." if len(found) > _LISTED else ""
    return "This is what I have: " + " ".join(f"“{line}”" for line in found[:_LISTED]) + more


def _found_in_sessions(question: str, known: ParsedPrompt) -> str | None:
    texts = [text for result in _results(known) if result.name == SEARCH for text in result.texts]
    found = best(_rephrase_question(question), [(text, text) for text in reversed(_worth_quoting(texts))])
    return None if found is None else f"In an earlier session you said: “{found}”"


def _not_known(known: ParsedPrompt) -> str:
    looked = ["in my notes"] if known.notes else []
    looked += ["in what the Memory Gateway recalls"] if known.recalls else []
    looked += ["in earlier sessions"] if any(result.name == SEARCH for result in _results(known)) else []
    where = f"; I looked {' and '.join(looked)}" if looked else ""
    return f"{_NOT_KNOWN}{where}. Tell me, and I will."


def _still_said(prompts: Sequence[str]) -> list[str]:
    """List the statements of this conversation, without those that it later asks to forget."""
    found: list[str] = []
    for wish in (sentence for prompt in prompts for sentence in classify_sentences(prompt)):
        if wish.wish is Wish.KEEP:
            found = [said for said in found if slot(said) is None or slot(said) != slot(wish.text)]
            found.append(wish.text)
        elif wish.wish is Wish.FORGET and (said := best(wish.text, [(each, each) for each in found])) is not None:
            found.remove(said)
    return found


def _worth_quoting(lines: Sequence[str]) -> list[str]:
    """Drop questions and this model's own answers; keep what those quote from the user."""
    found: list[str] = []
    for line in lines:
        if line.startswith(_QUOTING):
            found += _QUOTED.findall(line)
        elif not line.startswith(_OTHERWISE) and not is_question(line):
            found.append(line)
    return list(dict.fromkeys(found))


# Beginnings of this model's own answers, which memory may recall: those that quote valid facts, and others.
_QUOTING = (
    "Noted: “",
    "I know: “",
    "I heard: “",
    "The Memory Gateway recalls: “",
    "From my notes: “",
    "You said it here: “",
    "This is what I have: ",
    "In an earlier session you said: “",
)
_OTHERWISE = (
    "I could not ",
    "Taken out of ",
    "There is no such note",
    "You are welcome",
    _NOT_KNOWN,
    _INTRODUCTION[:30],
)


# --- results of the calls --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Result:
    name: str
    about: str  # the text to keep or to remove
    error: str | None
    texts: tuple[str, ...]

    def to_text(self, done: str, failed: str) -> str:
        return done if self.error is None else f"{failed}: {self.error}"


def _results(known: ParsedPrompt) -> list[_Result]:
    found = []
    for call, content in known.results:
        arguments, answer = parse_object(call.arguments), parse_object(content)
        about = str(arguments.get("content") or arguments.get("old_text") or "")
        error = None if answer and answer.get("success", True) else str(answer.get("error") or content)
        texts = tuple(_texts(answer)) if call.name == SEARCH else ()
        found.append(_Result(call.name, about, error, texts))
    return found


def _texts(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the user's messages in an answer of `session_search`: the hits, and the messages around them."""
    results = answer.get("results")
    for found in results if isinstance(results, list) else ():
        if isinstance(found, dict):
            around = [*(found.get("before") or ()), *(found.get("after") or ())]
            said = [str(found.get("text") or "")] if found.get("role") == Role.USER else []
            said += [str(line)[len(_SAID_BY_USER) :] for line in around if str(line).startswith(_SAID_BY_USER)]
            yield from (sentence.text for text in said for sentence in classify_sentences(text))
