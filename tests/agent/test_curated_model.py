"""Curated memory compared with a list: after any changes by the tool or by hand, both hold the same."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from curation import Curated
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from holdfast.agent.curated.entries import join_entries, parse_entries
from holdfast.agent.curated.threats import threat_in

LIMITS = {"memory": 60, "user": 40}
FILES = {"memory": "MEMORY.md", "user": "USER.md"}
entries = (
    st.text(
        alphabet=st.characters(exclude_categories=("Cs", "Cc")) | st.sampled_from("§\n ab"), min_size=1, max_size=30
    )
    .map(str.strip)
    .filter(lambda text: text and all(line.strip(" \t") != "§" for line in text.split("\n")))
)
words = st.text(alphabet="ab §", min_size=1, max_size=8).map(lambda text: f"w{text}w")
targets = st.sampled_from(["memory", "user"])


@settings(deadline=None)
@given(st.lists(entries))
def test_entries_are_read_as_they_were_written(given: list[str]) -> None:
    assert parse_entries(join_entries(given)) == tuple(given)
    assert parse_entries(join_entries(given) + "\n") == tuple(given)


@settings(deadline=None)
@example("\r \n§\n0")
@given(st.text() | st.text(alphabet="§\n\r\t\x0b\x85\u2028a "))
def test_whatever_is_in_a_file_is_the_same_once_it_was_written_again(text: str) -> None:
    assert parse_entries(join_entries(parse_entries(text))) == parse_entries(text)


@settings(deadline=None)
@given(st.text() | st.text(alphabet="§\n\r\t a"))
def test_reading_loses_nothing_but_blanks_and_marks(text: str) -> None:
    assert "".join("".join(parse_entries(text)).split()).replace("§", "") == "".join(text.split()).replace("§", "")


class Model(RuleBasedStateMachine):
    """Compare changes by the tool and edits by hand with two lists."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="holdfast-curated-"))
        self.curated = Curated(self.folder, memory_chars=LIMITS["memory"], user_chars=LIMITS["user"])
        self.lists: dict[str, list[str]] = {"memory": [], "user": []}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def applied(self, changes: list[dict[str, Any]]) -> dict[str, list[str]] | None:
        """The lists after the changes; None if the changes are invalid."""
        after = {name: list(held) for name, held in self.lists.items()}
        for change in changes:
            held = after[change["target"]]
            if change["action"] == "add":
                if change["content"] not in held:
                    held.append(change["content"])
                continue
            found = [entry for entry in held if change["old_text"] in entry]
            if len(set(found)) != 1:
                return None
            at = held.index(found[0])
            held[at : at + 1] = [change["content"]] if change["action"] == "replace" else []
        over = [
            name for name, held in after.items() if held != self.lists[name] and len(join_entries(held)) > LIMITS[name]
        ]
        return None if over else after

    def check(self, changes: list[dict[str, Any]], answer: dict[str, Any]) -> None:
        expected = self.applied(changes)
        assert answer["success"] is (expected is not None), answer
        self.lists = expected or self.lists
        touched = [name for name in FILES if any(change["target"] == name for change in changes)]
        shown = answer["entries"] if len(touched) > 1 else {touched[0]: answer["entries"]}
        assert shown == {name: self.lists[name] for name in touched}

    @rule(name=targets, content=words)
    def add(self, name: str, content: str) -> None:
        self.check([{"action": "add", "target": name, "content": content}], self.curated("add", name, content))

    @rule(name=targets, content=words, old=st.text(alphabet="wab", min_size=1, max_size=4))
    def replace(self, name: str, content: str, old: str) -> None:
        change = {"action": "replace", "target": name, "content": content, "old_text": old}
        self.check([change], self.curated("replace", name, content, old))

    @rule(name=targets, old=st.text(alphabet="wab", min_size=1, max_size=4))
    def remove(self, name: str, old: str) -> None:
        change = {"action": "remove", "target": name, "old_text": old}
        self.check([change], self.curated("remove", name, old_text=old))

    @rule(data=st.data())
    def batch(self, data: st.DataObject) -> None:
        add = st.fixed_dictionaries({"action": st.just("add"), "target": targets, "content": words})
        old = st.text(alphabet="wab", min_size=1, max_size=4)
        remove = st.fixed_dictionaries({"action": st.just("remove"), "target": targets, "old_text": old})
        changes = data.draw(st.lists(add | remove, min_size=1, max_size=4))
        self.check(changes, self.curated(operations=changes))

    @rule(name=targets, held=st.lists(words, max_size=4))
    def edit(self, name: str, held: list[str]) -> None:
        """Edit by hand; duplicates and more than the limit are allowed."""
        (self.folder / FILES[name]).write_text("\n\n§ \n".join(held), "utf-8")
        self.lists[name] = held

    @invariant()
    def the_snapshot_shows_the_lists_as_far_as_they_fit(self) -> None:
        seen = self.curated.snapshot()
        for name, shown in (("memory", seen.memory), ("user", seen.user)):
            held = self.lists[name]
            fitting = [count for count in range(len(held) + 1) if len(join_entries(held[:count])) <= LIMITS[name]]
            assert shown == tuple(held[: max(fitting)])

    @invariant()
    def nothing_is_left_behind(self) -> None:
        assert {name for name in self.curated.names() if ".bak." not in name} <= {".lock", "MEMORY.md", "USER.md"}


def test_no_word_of_the_model_is_taken_for_a_threat() -> None:
    assert not threat_in("waw§wbbw § w")


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
