"""Wrong options and commands: each names the right one. The answers are a golden file.

To accept a change: `HOLDFAST_REFRESH_GOLDEN=1 pytest tests/cli/test_did_you_mean.py`, then read the diff.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from .conftest import Holdfast

GOLDEN = Path(__file__).parent / "golden" / "did-you-mean.answers"
# Read before the fixtures clear the settings.
REFRESH = bool(os.environ.get("HOLDFAST_REFRESH_GOLDEN"))
TYPED = (
    "search x --user-id ana",
    "search x --user ana",
    "search x --company acme",
    "search x --tenant acme",
    "search x --session-id monday",
    "search x --thread monday",
    "search x --top_k 3",
    "search x --n-results 3",
    "search x --from yesterday",
    "search x --knd memory",
    "search --query x",
    "search x --frobnicate",
    "search x -z",
    "list --count 3",
    "get --memory-id mem_1",
    "remember --content x",
    "remember --text x",
    "remember x --tags a",
    "correct mem_1 --message x",
    "add --content x",
    "add x --author ana",
    "history mem_1 --user-id ana",
    "forget --user-id ana",
    "flush --session-id monday",
    "export memory.jsonl --company acme",
    "jobs list --compny acme",
    "operations list --top-n 3",
    "user create ana --company acme",
    "credential create ana --tenant acme",
    "--store memory.db search x",
    "store --store memory.db stats",
    "store stats other.db",
    "store stats postgresql://ana:secret@localhost/other",
    "store restore a.backup other.db",
    "store backup",
    "serve --port",
    "serch x",
    "find x",
    "delete mem_1",
    "update mem_1 x",
    "save x",
    "ls",
    "show mem_1",
    "log mem_1",
    "undo mem_1 1",
    "chat",
    "init",
    "frobnicate",
)


def test_a_wrong_name_is_answered_with_the_right_one(holdfast: Holdfast) -> None:
    answers = []
    for typed in TYPED:
        ran = holdfast(*shlex.split(typed))
        assert (ran.code, ran.out) == (2, ""), typed
        assert holdfast(*shlex.split(typed), "--json").error["code"] == "usage"
        answers.append(f"$ holdfast {typed}\n{ran.err}")
    text = "".join(answers)
    if REFRESH:
        GOLDEN.write_text(text, "utf-8")
    assert text == GOLDEN.read_text("utf-8")


def test_both_names_of_the_number_of_results_and_its_short_forms_are_one_option(ana: Holdfast) -> None:
    for command in (("search", "Lisbon wine"), ("recall", "Lisbon wine"), ("list",), ("browse",)):
        answers = {ana(*command, name, "1", "--json").out for name in ("--limit", "--top-k", "-n", "-k")}
        assert len(answers) == 1, command
        assert answers != {ana(*command, "--json").out}, command
