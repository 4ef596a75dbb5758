"""The check of what is proposed as a skill: a log, a raw payload, or a text that tells nothing to do, is none."""

from __future__ import annotations

import json
import re
from enum import StrEnum

from holdfast.domain.checks import checked_text
from holdfast.domain.repetition import is_small_talk, only_asks, read_statement
from holdfast.errors import InvalidInput

# A procedure says at least so many words that carry meaning.
_LEAST_WORDS = 2
# The share of lines that look like a log or a stack trace.
_LOG_SHARE = 0.5
_LOG_LINE = re.compile(
    r"""\s*(?:
        [\[(]?\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d            # 2026-11-19 20:34
        | [\[(]?\d\d:\d\d:\d\d                         # 20:34:22
        | \w{3}\s+\d+\s\d\d:\d\d:\d\d\s                # Nov 19 20:34:22, as syslog
        | [\[(]?(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)[\])]?[:\s]
        | \d+\.\d+\.\d+\.\d+\s.*"(?:GET|POST|PUT|PATCH|DELETE|HEAD)\s
        | at\s[\w.$<>]+\(.*\)                          # a frame of Java or JavaScript
        | File\s".*",\sline\s\d+                       # a frame of Python
        | goroutine\s\d+\s\[ | panic:\s | Traceback\s\(most\srecent\scall\slast\)
        )""",
    re.VERBOSE,
)
_TRACE = re.compile(r"^Traceback \(most recent call last\):|^\s+at [\w.$<>]+\(.*:\d+\)", re.MULTILINE)
# Longer runs without a space are encoded data.
_BLOB = re.compile(r"[A-Za-z0-9+/=_-]{160,}")
_MARKUP = re.compile(r"\s*<(?:!doctype|\?xml|html|svg)\b", re.IGNORECASE)


class SkillRejection(StrEnum):
    """The reason why a proposed skill is not kept."""

    EMPTY_OR_INVALID = "empty_or_invalid"
    RAW_PAYLOAD_OR_LOG = "raw_payload_or_log"
    WEAK_PROCEDURE = "weak_procedure"


def reject_procedure(procedure: object, max_chars: int) -> SkillRejection | None:
    """Return the reason why a text is no procedure; None if it is one."""
    try:
        text = checked_text(procedure, "content", max_chars=max_chars)
    except InvalidInput:
        return SkillRejection.EMPTY_OR_INVALID
    if is_raw_payload(text):
        return SkillRejection.RAW_PAYLOAD_OR_LOG
    return SkillRejection.WEAK_PROCEDURE if _is_weak(text) else None


def is_raw_payload(text: str) -> bool:
    """True for JSON, markup, encoded data, logs and stack traces."""
    if _is_json(text) or _MARKUP.match(text) or _BLOB.search(text) or _TRACE.search(text):
        return True
    lines = [line for line in text.splitlines() if line.strip()]
    return sum(_LOG_LINE.match(line) is not None for line in lines) >= _LOG_SHARE * len(lines)


def _is_json(text: str) -> bool:
    if text.strip()[:1] not in ("{", "["):
        return False
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_weak(text: str) -> bool:
    if is_small_talk(text) or only_asks(text):
        return True
    said = read_statement(text)
    return len(said.stems) + len(said.numbers) < _LEAST_WORDS
