"""Every result that the library, the control plane and the runtime return presents itself."""

from __future__ import annotations

import inspect
import json
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from types import FunctionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.cli import main
from holdfast.control.verbs import VERBS as CONTROL_VERBS
from holdfast.domain.arguments import result_type_of
from holdfast.domain.json_values import to_plain
from holdfast.domain.presentable import Presentable, PresentableList, Results, is_secret
from holdfast.domain.result_lines import MAX_CHARS, MAX_LINES
from holdfast.domain.result_tables import MAX_ROWS
from holdfast.domain.users import Issued, User
from holdfast.errors import InvalidInput
from holdfast.runtime.verbs import VERBS as LIBRARY_VERBS
from holdfast.sdk import AsyncMemoryRuntime
from holdfast.wire import JsonCodec
from values import anything, exact

NOW = datetime(2026, 11, 19, 9, 30, tzinfo=UTC)
# Dataclasses of the public API that callers make. They are no results.
INPUTS = {"AllOf", "AnyOf", "Compare", "CustomEmbedder", "Draft", "Not", "Weights"}


def results_in(hint: Any) -> Iterator[Any]:
    """The dataclasses that a type names, with their parameters."""
    hint = getattr(hint, "__supertype__", hint)
    if is_dataclass(get_origin(hint) or hint):
        yield hint
    for part in get_args(hint):
        yield from results_in(part)


def returned() -> dict[Any, None]:
    """What verbs and methods return, and the public names."""
    kinds = [result_type_of(entry.request) for table in (LIBRARY_VERBS, CONTROL_VERBS) for entry in table.values()]
    for face in (holdfast.AsyncMemory, holdfast.AsyncControlPlane, AsyncMemoryRuntime):
        for name, method in inspect.getmembers(face, callable):
            if not name.startswith("_"):
                kinds.append(get_type_hints(inspect.unwrap(method)).get("return"))
    kinds += [getattr(holdfast, name) for name in holdfast.__all__ if name not in INPUTS]
    return dict.fromkeys(each for kind in kinds for each in results_in(kind))


def reached(kinds: Any) -> set[type]:
    """These dataclasses, and all that their fields hold."""
    found: set[type] = set()
    left = list(kinds)
    while left:
        kind = left.pop()
        origin = get_origin(kind) or kind
        if origin not in found:
            found.add(origin)
            left += [each for hint in get_type_hints(origin).values() for each in results_in(hint)]
    return found


RETURNED = returned()
EACH = pytest.mark.parametrize("kind", RETURNED, ids=str)


def test_everything_that_is_returned_presents_itself() -> None:
    assert len(RETURNED) > 75
    assert [kind.__name__ for kind in reached(RETURNED) if not issubclass(kind, Presentable)] == []
    lists = [kind for kind in reached(RETURNED) if "items" in {each.name for each in fields(kind)}]
    assert len(lists) > 8
    assert [kind.__name__ for kind in lists if not issubclass(kind, PresentableList)] == []


class Tags(HTMLParser):
    """The tags and attributes of a document, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: set[tuple[str, str | None]] = set()
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ("table", "caption", "tr", "th", "td")
        self.open.append(tag)
        self.attributes |= set(attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        pytest.fail(f"a comment: {data}")


PLAIN_TABLE = Tags(Issued(User("ana", "default", NOW))._repr_html_())
ATTRIBUTES = PLAIN_TABLE.attributes | Tags(Results([User("ana", "default", NOW)])._repr_html_()).attributes


@EACH
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_result_is_json_that_holds_all_of_it_a_short_line_and_a_table(kind: Any, data: st.DataObject) -> None:
    try:
        result = data.draw(anything(kind))
    except InvalidInput:
        assume(False)
    secrets = [each.name for each in fields(result) if is_secret(each)]
    document = json.loads(result.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert document == result.to_dict() == json.loads(result.to_json(indent=2))
    assert list(document) == [each.name for each in fields(result) if each.name not in secrets]
    restored = JsonCodec(kind, closed=False).decode(result.to_json().encode())
    assert exact(restored) == exact(replace(result, **dict.fromkeys(secrets)))

    line = repr(result)
    assert line.startswith(f"{type(result).__name__}(")
    assert (len(line) <= MAX_CHARS, line.isprintable()) == (True, True)
    assert Tags(result._repr_html_()).attributes <= ATTRIBUTES
    if isinstance(result, PresentableList):
        items = getattr(result, result._items)
        assert (len(result), tuple(result), bool(result)) == (len(items), items, bool(items))
        assert [result[place] for place in range(len(items))] == list(result[:]) == list(items)


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</td></tr></table><h1>",
    "<!-- &lt;b&gt; $x$",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str, tmp_path: Any) -> None:
    with holdfast.open(tmp_path / "memory.db", embedder="fake") as memory:
        where = {"subject": text, "conversation": text}
        memory.add([{"text": text, "sender": text, "metadata": {text: text}}], source=text, **where)
        memory.remember(text, source=text, metadata={text: text}, **where)
        results: list[Any] = [
            *(memory.search(text, subject=text), memory.recall(text, subject=text, min_score=0)),
            *(memory.explain(text, subject=text), memory.list(**where), memory.browse(**where), memory.jobs()),
            *(memory.list(**where)[0], memory.list(**where)[1], memory.add_resource(text, name=text, subject=text)),
            *(memory.resources(subject=text), memory.create_user("ana", subjects=None), memory.stats()),
        ]
        assert all(text in Tags(memory.list(**where)[place]._repr_html_()).text for place in (0, 1))
    for result in results:
        assert Tags(result._repr_html_()).attributes <= ATTRIBUTES, type(result)
    assert text in Tags(results[0]._repr_html_()).text


def test_hidden_characters_show_in_a_line_and_in_a_table() -> None:
    user = User("ana\u202e\u200b\x1b[31m", "default", NOW)
    for shown in (repr(user), user._repr_html_()):
        assert "\\u202e" in shown
        assert shown.isprintable()


def test_a_key_is_shown_by_its_attribute_alone() -> None:
    issued = Issued(User("ana", "default", NOW), "uk_secret", created=True)
    assert issued.key == "uk_secret"
    shown = (repr(issued), str(issued), issued._repr_html_(), issued.to_json(), Results([issued])._repr_html_())
    assert [text for text in (*shown, repr(Results([issued])), str(issued.to_dict())) if "uk_secret" in text] == []
    assert "key=<hidden>" in repr(issued)


def test_the_results_of_a_search_are_a_tuple() -> None:
    with holdfast.open(":memory:", embedder="fake") as memory:
        memory.add(["I moved to Lisbon.", "Lisbon is sunny."], subject="ana")
        hits = memory.search("Lisbon", subject="ana")
        assert memory.search("Lisbon", subject="nobody") == ()
        assert isinstance(memory.history(hits[0].id), Results)
    assert isinstance(hits, tuple)
    assert hits == tuple(hits)
    copied = pickle.loads(pickle.dumps(hits))
    assert (copied, type(copied)) == (hits, Results)
    assert json.loads(hits.to_json()) == hits.to_list() == [hit.to_dict() for hit in hits]
    assert repr(hits) == f"({hits[0]!r},\n {hits[1]!r})"
    assert repr(Results([1])) == "(1,)"
    assert repr(Results()) == "()"


def test_long_results_are_cut_in_lines_and_tables() -> None:
    many = Results(User(f"user {number}", "default", NOW) for number in range(MAX_ROWS + 5))
    assert (len(repr(many).splitlines()), repr(many)[-1]) == (MAX_LINES + 1, ")")
    html = many._repr_html_()
    assert (html.count("<tr>"), "… and 5 more" in html) == (MAX_ROWS + 2, True)


@pytest.mark.parametrize("words", [10, 10_000])
def test_a_hit_is_one_short_line_with_its_whole_id(words: int) -> None:
    with holdfast.open(":memory:", embedder="fake") as memory:
        memory.add("Lisbon\n" * words, subject="ana")
        memory.remember("Lisbon " * words, subject="ana")
        recalled, page = memory.recall("Lisbon", subject="ana", min_score=0), memory.list(subject="ana")
        lines: Sequence[object] = (*memory.search("Lisbon", subject="ana"), *page, recalled, page)
    for shown in lines:
        line = repr(shown)
        assert (len(line) <= MAX_CHARS, line.isprintable()) == (True, True)
        assert f"id={getattr(shown, 'id', '')!r}" in line or shown in (recalled, page)
    assert recalled
    assert repr(page) == "Page(2 items)"


def test_json_of_a_command_is_the_dictionary_of_the_result(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "fake")
    store = str(tmp_path / "memory.db")
    with holdfast.open(store) as memory:
        memory.remember("I moved to Lisbon.", subject="ana", metadata={"rooms": 2})
        page, stats = memory.list(), memory.stats()
        found = memory.search("Lisbon")
    for words, expected in (
        (["list"], page.to_dict()),
        (["get", page[0].id], page[0].to_dict()),
        (["history", page[0].id], {"revisions": [page[0].to_dict()]}),
        (["store", "stats"], stats.to_dict()),
        (["search", "Lisbon"], {"query": "Lisbon", "hits": to_plain(found, digits=6)}),
    ):
        assert main([*words, "--json", "--store", store]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert {name: printed[name] for name in expected} == expected


def test_a_value_that_json_cannot_hold_is_refused_by_its_type() -> None:
    with pytest.raises(TypeError, match="a object cannot be written as JSON"):
        to_plain({"name": object()})


def test_help_explains_every_public_name() -> None:
    assert dir(holdfast) == sorted([*holdfast.__all__, "__version__"])
    public = [getattr(holdfast, name) for name in holdfast.__all__]
    # dataclass() gives a class without a docstring its signature.
    unexplained = [each for each in public if (each.__doc__ or "(").startswith((f"{each.__name__}(", "("))]
    assert unexplained == []
    members = [(kind, name, each) for kind in public if isinstance(kind, type) for name, each in vars(kind).items()]
    assert [
        f"{kind.__name__}.{name}"
        for kind, name, each in members
        if name[0] != "_" and isinstance(each, property | FunctionType) and not inspect.getdoc(each)
    ] == []
