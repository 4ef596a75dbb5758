"""`forget` shows a preview, asks for confirmation, and prints a receipt."""

from __future__ import annotations

from pathlib import Path

from .conftest import Holdfast


def test_a_dry_run_shows_and_changes_nothing(ana: Holdfast) -> None:
    ran = ana("forget", "--subject", "ana", "--dry-run")
    assert ran.code == 0
    assert "This forgets 2 messages" in ran.out
    assert "I love red wine." in ran.out
    assert "Nothing was forgotten" in ran.out
    assert ana("store", "stats", "--json").json["messages"] == 2


def test_it_gives_a_receipt_and_leaves_nothing(ana: Holdfast, tmp_path: Path) -> None:
    ran = ana("forget", "--subject", "ana", "--yes")
    assert ran.code == 0
    assert "Forgotten: 2 messages" in ran.out
    assert "op_" in ran.out
    assert ana("search", "wine", "--subject", "ana", "--json").json["hits"] == []
    assert not any(b"red wine" in file.read_bytes() for file in tmp_path.iterdir())
    # No job is left either.
    assert "queued" not in ana("store", "stats", "--json").json["jobs"]


def test_by_id_it_forgets_that_one_and_what_rests_on_it(ana: Holdfast) -> None:
    (lisbon,) = (
        hit["id"]
        for hit in ana("search", "moved", "--kind", "message", "--subject", "ana", "--json").json["hits"]
        if "Lisbon" in hit["text"]
    )
    told = ana("forget", lisbon, "--subject", "ana", "--yes", "--json").json
    assert told["preview"]["messages"] == 1
    assert told["preview"]["derived"] == 1
    assert told["receipt"]["remaining"] == 0
    left = ana("search", "Lisbon wine", "--subject", "ana", "--json").json["hits"]
    assert left
    assert not any("Lisbon" in hit["text"] for hit in left)


def test_by_source_and_conversation(holdfast: Holdfast) -> None:
    holdfast("add", "From the import.", "--source", "import", "--conversation", "one")
    holdfast("add", "From a chat.", "--conversation", "two")
    assert holdfast("forget", "--source", "import", "--yes", "--json").json["receipt"]["messages"] == 1
    assert holdfast("forget", "--conversation", "two", "--yes", "--json").json["receipt"]["messages"] == 1


def test_a_conversation_of_somebody_is_not_forgotten_without_a_subject(holdfast: Holdfast) -> None:
    holdfast("add", "The code is 4711.", "--subject", "ana", "--conversation", "c1")
    ran = holdfast("forget", "--conversation", "c1", "--yes")
    assert ran.code == 2
    assert "subject: conversation 'c1' belongs to one subject, `ana`: name it; nothing was forgotten" in ran.err
    assert holdfast("forget", "--conversation", "c1", "--subject", "ana", "--yes").code == 0
    again = holdfast("forget", "--conversation", "c1", "--subject", "ana", "--yes")
    assert (again.code, "nothing matches" in again.err) == (3, True)


def test_without_a_terminal_it_needs_a_yes(ana: Holdfast) -> None:
    ran = ana("forget", "--subject", "ana", stdin=b"y\n")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert "--dry-run" in ran.err
    assert ana("store", "stats", "--json").json["messages"] == 2


def test_hostile_text_in_a_preview_is_shown_escaped(holdfast: Holdfast) -> None:
    holdfast("add", "wine \x1b[2J", "--subject", "mal")
    assert "\x1b" not in holdfast("forget", "--subject", "mal", "--dry-run").out


def test_a_conversation_is_forgotten_with_what_was_learned_from_it(ana: Holdfast) -> None:
    ana("add", "I work as a nurse.", "--subject", "eve", "--conversation", "c", "--flush")
    ran = ana("forget", "--subject", "eve", "--conversation", "c", "--yes")
    assert ran.code == 0
    assert "This forgets 1 message and 1 memory" in ran.out
    assert ana("store", "stats", "--subject", "eve", "--json").json["memories"] == 0
