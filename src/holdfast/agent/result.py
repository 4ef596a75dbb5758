"""The result of a run: the answer, its status, and the memory that the model was given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from holdfast.agent.curated import MemorySnapshot
from holdfast.agent.gateway import RecalledItem
from holdfast.agent.ports import ReasoningPiece, SessionHit, TextPiece, TokenUsage, ToolCall

_WORD = re.compile(r"[^\W_]+")
# Stop words. Only for marking evidence, so a short list is enough.
_EMPTY_WORDS = frozenset(
    """a about all also am an and any are as at be because been but by can could did do does for from had has have he
    her him his how i if in into is it its just me my no not now of on or our out she so some than that the their
    them then there these they this those to too up us user was we were what when where which who why will with would
    yes you your gateway memory note noted notes recalls session sessions
    der die das ein eine und ist sind war ich du sie wir nicht mit von zu auf fur den dem des im
    le la les un une des et est sont je tu il elle nous vous ne pas de du que qui dans pour avec sur mon ma mes
    el los las una y es son yo no con por para en su sus mi mis lo al del se""".split()
)


Origin = str | int | float


class RunStatus(StrEnum):
    COMPLETED = "completed"
    TOOL_LIMIT = "tool_limit"  # answered at the tool limit
    FAILED = "failed"  # the model gave no answer; `error` says why


@dataclass(frozen=True, slots=True)
class RunError:
    """The error of a failed run: its code, and its message, which holds no key."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that was called, and whether it succeeded."""

    name: str
    ok: bool


class Layer(StrEnum):
    CURATED = "curated"
    GATEWAY = "gateway"
    SESSIONS = "sessions"


@dataclass(frozen=True, slots=True)
class MemorySource:
    """One memory that the model was given; `shared` are the words that it has in common with the answer."""

    layer: Layer
    text: str
    origin: Mapping[str, Origin] = field(default_factory=dict)
    shared: tuple[str, ...] = ()

    @property
    def is_used(self) -> bool:
        """True if the answer could come from it. Shared words are a hint, not proof."""
        return bool(self.shared)


@dataclass(frozen=True, slots=True)
class RunExplanation:
    """The memory that the model was given, by layer."""

    sources: tuple[MemorySource, ...] = ()
    recall_failed: str | None = None
    """The category of the gateway's failure; None if it answered, or there is no gateway."""

    def of(self, layer: Layer) -> tuple[MemorySource, ...]:
        return tuple(source for source in self.sources if source.layer is layer)

    @property
    def used_sources(self) -> tuple[MemorySource, ...]:
        return tuple(source for source in self.sources if source.is_used)


@dataclass(frozen=True, slots=True)
class AgentRunResult:
    """One run. `text` is shown to the user: the answer, or empty if the run failed."""

    session_id: str
    run_id: str
    text: str
    status: RunStatus
    usage: TokenUsage = field(default_factory=TokenUsage)
    tool_calls: tuple[ToolUse, ...] = ()
    error: RunError | None = None
    explained: RunExplanation = field(default_factory=RunExplanation, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is being called."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A tool was called; `content` is the model's view of the result."""

    call: ToolCall
    ok: bool
    content: str


@dataclass(frozen=True, slots=True)
class AnswerCompleted:
    """The answer is complete and in its session. Storing it at the gateway comes next, and may take a while."""

    text: str


RunEvent = TextPiece | ReasoningPiece | ToolStarted | ToolEnded | AnswerCompleted


def curated_sources(snapshot: MemorySnapshot) -> list[MemorySource]:
    targets = {"user": snapshot.user, "memory": snapshot.memory}
    return [
        MemorySource(Layer.CURATED, entry, {"target": target, "entry": number})
        for target, entries in targets.items()
        for number, entry in enumerate(entries, 1)
    ]


def gateway_sources(items: Iterable[RecalledItem]) -> list[MemorySource]:
    return [MemorySource(Layer.GATEWAY, item.text or "", _origin_of(item)) for item in items]


def session_sources(hits: Iterable[SessionHit]) -> list[MemorySource]:
    """List each message once, even if it was found several times."""
    found = {(hit.session_id, hit.number): hit for hit in hits}
    return [
        MemorySource(
            Layer.SESSIONS,
            hit.text,
            {"session_id": hit.session_id, "number": hit.number, "at": hit.at.isoformat(), "role": str(hit.role)},
        )
        for hit in found.values()
    ]


def _origin_of(item: RecalledItem) -> dict[str, Origin]:
    names = ("id", "session_id", "score", "source_scope", "resource_uri")
    return {name: value for name in names if (value := getattr(item, name)) is not None}


def explain(
    prompt: str, answer: str, sources: Iterable[MemorySource], recall_failed: str | None = None
) -> RunExplanation:
    """Mark the sources that share words with the answer.

    Words from the prompt do not show where an answer comes from, so they count only if no source shares any other.
    """
    unmarked = tuple(sources)
    answer_words = content_words(answer)
    for words in (answer_words - content_words(prompt), answer_words):
        marked = tuple(replace(each, shared=_shared_words(each.text, words)) for each in unmarked)
        if any(each.shared for each in marked):
            return RunExplanation(marked, recall_failed)
    return RunExplanation(unmarked, recall_failed)


def content_words(text: str) -> frozenset[str]:
    """Return a text's content words, without case and accents; in scripts without spaces, each character."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    words = _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))
    return frozenset(
        piece
        for word in words
        for piece in _pieces(word)
        if piece not in _EMPTY_WORDS and (len(piece) > 1 or piece > "\u2fff")
    )


def _pieces(word: str) -> Sequence[str]:
    return tuple(word) if word[0] > "\u2fff" else (word,)


def _shared_words(text: str, words: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(content_words(text) & words))
