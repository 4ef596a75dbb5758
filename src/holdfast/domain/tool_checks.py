"""The check of texts about tool calls: a secret, a raw payload or a full schema is no summary."""

from __future__ import annotations

import re
from enum import StrEnum

from holdfast.domain.secret_strength import find_weakness
from holdfast.domain.skill_checks import is_raw_payload


class ObservationRejection(StrEnum):
    """The reason why a feedback is not taken: nothing of it is stored."""

    SECRET = "observation_holds_secret"  # noqa: S105 - the name of a reason
    SCHEMA = "observation_holds_schema"
    RAW_PAYLOAD = "observation_holds_raw_payload"


_SECRET = re.compile(
    r"""
    -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    | \b(?:(?:api|access)[_-]?key|secret|token|passw(?:or)?d|pwd|credential|authorization|cookie)s?["']?
      \s*[:=]\s*["']?\S{4,}
    | \bbearer\s+[\w.~+/-]{8,}
    | \b(?:sk|pk|rk|ghp|gho|ghu|ghs|ghr|glpat|xox[abprs]|whsec|hf)[_-][A-Za-z0-9_-]{12,}
    | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*             # a JSON web token
    | ://[^/\s:@]+:[^/\s@]+@                        # a password in an address
    """,
    re.VERBOSE | re.IGNORECASE,
)
# A long run of letters and digits that is hard to guess, and no digest or UUID, is a key of some service.
_RUN = re.compile(r"[A-Za-z0-9_+/=-]{24,}")
_DIGEST = re.compile(r"(?:sha\d+[:-])?[0-9a-f-]+", re.IGNORECASE)
_SCHEMA = re.compile(
    r"""["'](?:\$schema|properties|parameters|input_?schema|json_?schema|required|additionalProperties)["']\s*:""",
    re.IGNORECASE,
)
# An object with several members within the text.
_OBJECT = re.compile(r"""\{\s*["'][^"']+["']\s*:.*?,\s*["'][^"']+["']\s*:""", re.DOTALL)


def reject_text(text: str) -> ObservationRejection | None:
    """Return the reason why a text about a call is not taken; None if it is a summary."""
    if not text:
        return None
    if _SECRET.search(text) or any(_is_key(run) for run in _RUN.findall(text)):
        return ObservationRejection.SECRET
    if _SCHEMA.search(text):
        return ObservationRejection.SCHEMA
    return ObservationRejection.RAW_PAYLOAD if _OBJECT.search(text) or is_raw_payload(text) else None


def _is_key(run: str) -> bool:
    has_both = any(char.isdigit() for char in run) and any(char.isalpha() for char in run)
    # A path or a name is made of parts that are words.
    longest = max(re.split(r"[/_=-]", run), key=len)
    return has_both and len(longest) >= 20 and not _DIGEST.fullmatch(run) and find_weakness(longest) is None
