"""Refuse a commit subject of over 72 characters or with a full stop at its end. pre-commit passes the message file."""

import sys
from pathlib import Path

MAX_CHARS = 72


def problem(subject: str) -> str | None:
    if not subject:
        return "the subject is empty"
    if len(subject) > MAX_CHARS:
        return f"the subject has {len(subject)} characters; {MAX_CHARS} is the limit"
    return "the subject ends with a full stop" if subject.endswith(".") else None


if __name__ == "__main__":
    lines = Path(sys.argv[1]).read_text("utf-8").splitlines()
    sys.exit(problem(next((line for line in lines if not line.startswith("#")), "")))
