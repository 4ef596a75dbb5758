"""No view shows what it must not, and the tables that decide this are correct.

The rules are written out here a second time, in another form than in the code. `wrongs` compares the two on any turn,
by canaries: over random turns, over one of each kind, and with each cell of the tables changed on purpose.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.domain.ids import MessageId, TurnId
from holdfast.domain.redaction import (
    AUTHORITIES,
    MAX_BUDGET,
    REFERENCES,
    STATES,
    RedactedTranscriptSlice,
    RedactedTurn,
    RedactionReason,
    RefShown,
    StateRule,
    TranscriptGovernanceBudget,
    TranscriptRedactionReportItem,
    TranscriptReplayAudit,
    clip_items,
    redact_turn,
    redact_turns,
)
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import (
    ActorAttribution,
    Authority,
    ConversationKey,
    HostOpaqueRef,
    HostRefVisibility,
    Relation,
    TranscriptMessage,
    TranscriptState,
    TranscriptTurn,
    View,
)
from holdfast.errors import InvalidInput
from holdfast.testing.full_repr import full_repr

AT = datetime(2026, 3, 1, tzinfo=UTC)
KEY = ConversationKey("home", "chat", "1")
WIDE = TranscriptGovernanceBudget(*[1_000] * 5)
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "transcripts.md"

# --- the rules, written out again -------------------------------------------------------------------------------------

PRIVATE = {"soul_governance", "private_garden_internal"}
# By view: the visibilities of references that are shown, and those of them that keep their label.
SEEN = {
    "raw_owner_only": {"internal", "host_ui", "model_context", "operator_audit", "export"},
    "model_context": {"model_context"},
    "host_ui": {"host_ui", "export"},
    "operator_audit": {"host_ui", "operator_audit", "export"},
    "export": {"export"},
}
LABELLED = {"raw_owner_only": SEEN["raw_owner_only"], "host_ui": {"host_ui"}}


def state_reason(state: str, view: str) -> str | None:
    if state == "masked":
        return "lifecycle_masked"
    if state == "raw_deleted":
        return "raw_deleted"
    return "model_context_policy" if (state, view) == ("archived", "model_context") else None


def message_reason(state: str, authority: str, role: str, view: str) -> str | None:
    if whole := state_reason(state, view):
        return whole
    if view == "raw_owner_only":
        return None
    if authority in PRIVATE:
        return "private_authority"
    unlabelled = authority == "legacy_transcript" and role in ("tool", "system")
    return "operator_only" if unlabelled or authority == "operator_diagnostic" else None


def reference_reason(state: str, visibility: str, view: str) -> str | None:
    if view == "model_context" and state != "active":
        return state_reason(state, view)
    return None if visibility in SEEN[view] else "host_ref_visibility"


def label_reason(state: str, visibility: str, view: str) -> str | None:
    if state in ("masked", "raw_deleted"):
        return state_reason(state, view)
    return None if visibility in LABELLED.get(view, set()) else "host_ref_label"


@dataclass
class Expected:
    """The expected result for a turn in a view: visible canaries, hidden canaries, redactions and counts."""

    seen: set[str]
    hidden: set[str]
    items: list[tuple[str, str | None, int | None]]
    audit: TranscriptReplayAudit
    cut: bool


def expected(turn: TranscriptTurn, view: View, budget: TranscriptGovernanceBudget) -> Expected:
    seen: set[str] = set()
    hidden: set[str] = set()
    items: list[tuple[str, str | None, int | None]] = []
    for message in turn.messages:
        reason = message_reason(turn.state, message.authority, message.role, view)
        (hidden if reason else seen).update(canaries(message.text))
        items += [(reason, message.id, None)] if reason else []
    messages, shown, labels = len(items), 0, 0
    for index, ref in enumerate(turn.host_refs):
        names = canaries(f"{ref.host_kind} {ref.business_ref_type} {ref.business_ref_id}")
        reason = reference_reason(turn.state, ref.visibility, view)
        if not reason and shown == budget.host_refs_per_turn:
            reason = "profile_budget"
        if reason:
            items.append((reason, None, index))
            hidden |= names | canaries(ref.label)
            continue
        shown += 1
        seen |= names
        reason = label_reason(turn.state, ref.visibility, view) if ref.label else None
        (hidden if reason else seen).update(canaries(ref.label))
        items += [(reason, None, index)] if reason else []
        labels += bool(reason)
    refs = len(turn.host_refs)
    audit = TranscriptReplayAudit(1, len(turn.messages), messages, refs, refs - shown, labels)
    cut = len(items) > budget.redaction_items or any(reason == "profile_budget" for reason, _, _ in items)
    return Expected(seen, hidden, items[: budget.redaction_items], audit, cut)


def canaries(text: str | None) -> set[str]:
    return set(re.findall(r"<\w+>", text or ""))


def told(result: RedactedTurn | RedactedTranscriptSlice) -> str:
    """Return everything in a result, as it would be printed and sent."""
    return full_repr(result) + json.dumps(dataclasses.asdict(result), default=str)


def wrongs(turn: TranscriptTurn, view: View, budget: TranscriptGovernanceBudget) -> list[str]:
    """Return the errors in what `view` shows of `turn`."""
    result, want = redact_turn(turn, view, budget), expected(turn, view, budget)
    everything = canaries(told(result))
    messages = {message.id: message for message in result.messages}
    reasons = {
        message.id: message_reason(turn.state, message.authority, message.role, view) for message in turn.messages
    }
    found = [
        *(f"leaks {canary}" for canary in sorted(everything & want.hidden)),
        *(f"lacks {canary}" for canary in sorted(want.seen - everything)),
        *(f"{message.id} gone" for message in turn.messages if message.id not in messages),
        *(f"{m.id} says {m.redaction}" for m in result.messages if m.redaction != reasons[m.id]),
        *(f"{m.id} has a text or authority" for m in result.messages if m.redaction and (m.text or m.authority)),
    ]
    items = [(item.reason.value, item.message_id, item.host_ref) for item in result.redactions]
    if items != want.items or any(item.turn_id != turn.id for item in result.redactions):
        found.append(f"reports {items}, not {want.items}")
    if (result.audit, result.profile_budget_applied) != (want.audit, want.cut):
        found.append(f"counts {result.audit} {result.profile_budget_applied}, not {want.audit} {want.cut}")
    return found


# --- turns ------------------------------------------------------------------------------------------------------------


def message_of(place: int, authority: Authority, text: str = "said") -> TranscriptMessage:
    role = list(Role)[place % len(Role)]
    return TranscriptMessage(MessageId(f"m{place}"), role, f"{text} <m{place}> and <n{place}>", authority)


def ref_of(place: int, visibility: HostRefVisibility, labelled: bool, relation: Relation) -> HostOpaqueRef:
    label = f"About <l{place}>" if labelled else None
    return HostOpaqueRef(f"desk <h{place}>", f"type <t{place}>", f"<i{place}>", relation, visibility, label)


def turn_of(
    state: TranscriptState, messages: list[TranscriptMessage], refs: list[HostOpaqueRef], number: int = 1
) -> TranscriptTurn:
    who = ActorAttribution(speaker_id="ana", agent_id="eve", triggered_by="schedule")
    return TranscriptTurn(TurnId(f"t{number}"), number, KEY, state, tuple(messages), AT, tuple(refs), who)


def any_turn(chance: random.Random, number: int = 1) -> TranscriptTurn:
    state = chance.choice(list(TranscriptState))
    authorities = chance.choices(list(Authority), k=chance.randint(1, 5))
    messages = [message_of(place, authority) for place, authority in enumerate(authorities)]
    if state is TranscriptState.RAW_DELETED and chance.random() < 0.3:
        messages = [replace(message, text=None) for message in messages]
    visibilities = chance.choices(list(HostRefVisibility), k=chance.randint(0, 5))
    relations = list(Relation)
    refs = [
        ref_of(place, visibility, chance.random() < 0.7, chance.choice(relations))
        for place, visibility in enumerate(visibilities)
    ]
    return turn_of(state, messages, refs, number)


def any_budget(chance: random.Random) -> TranscriptGovernanceBudget:
    return WIDE if chance.random() < 0.5 else TranscriptGovernanceBudget(*(chance.randint(1, 6) for _ in fields(WIDE)))


def one_of_each() -> Iterator[TranscriptTurn]:
    """Return a turn in each state, with a message of every authority and references of every visibility."""
    messages = [message_of(place, authority) for place, authority in enumerate(Authority)]
    pairs = [(visibility, labelled) for visibility in HostRefVisibility for labelled in (True, False)]
    refs = [ref_of(place, *pair, Relation.RELATED) for place, pair in enumerate(pairs)]
    return (turn_of(state, messages, refs) for state in TranscriptState)


EACH = list(one_of_each())


def all_wrongs() -> list[str]:
    return [f"{view}, {turn.state}: {wrong}" for turn in EACH for view in View for wrong in wrongs(turn, view, WIDE)]


# --- leaks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_no_view_shows_what_it_may_not_and_none_lacks_what_it_may(seed: int) -> None:
    """Two thousand random turns for each of ten seeds, each turn in a random view with a random budget."""
    chance = random.Random(seed)
    for number in range(2_000):
        turn, view, budget = any_turn(chance), chance.choice(list(View)), any_budget(chance)
        assert not wrongs(turn, view, budget), (seed, number, turn, view, budget)


def test_each_kind_of_message_and_reference_is_shown_as_it_should_be_in_each_state_and_view() -> None:
    assert not all_wrongs()


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(TranscriptState),
    st.lists(st.tuples(st.sampled_from(Authority), TEXTS), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from(HostRefVisibility), st.booleans(), st.sampled_from(Relation)), max_size=4),
    st.sampled_from(View),
)
def test_whatever_is_said_around_it_a_canary_stays_where_it_belongs(
    state: TranscriptState,
    said: list[tuple[Authority, str]],
    about: list[tuple[HostRefVisibility, bool, Relation]],
    view: View,
) -> None:
    text = [re.sub("[<>]", "", words) for _, words in said]
    messages = [message_of(place, authority, text[place]) for place, (authority, _) in enumerate(said)]
    refs = [ref_of(place, *parts) for place, parts in enumerate(about)]
    assert not wrongs(turn_of(state, messages, refs), view, WIDE)


@pytest.mark.parametrize("view", View)
def test_the_place_of_a_turn_and_who_took_part_are_shown_in_every_view(view: View) -> None:
    for turn in EACH:
        shown = redact_turn(turn, view, WIDE)
        kept = ("id", "sequence", "key", "state", "committed_at", "attribution")
        assert [getattr(shown, name) for name in kept] == [getattr(turn, name) for name in kept]
        assert shown.view is view
        assert [(message.id, message.role) for message in shown.messages] == [(m.id, m.role) for m in turn.messages]


def test_the_owner_sees_an_open_turn_as_it_is() -> None:
    turn = EACH[0]
    shown = redact_turn(turn, View.RAW_OWNER_ONLY, WIDE)
    assert [message.text for message in shown.messages] == [message.text for message in turn.messages]
    assert [message.authority for message in shown.messages] == list(Authority)
    assert tuple(shown_ref.ref for shown_ref in shown.host_refs) == turn.host_refs
    assert shown.redactions == ()


def test_a_view_that_is_not_known_shows_nothing() -> None:
    for show in (lambda view: redact_turn(EACH[0], view, WIDE), lambda view: redact_turns(EACH, view, WIDE)):
        with pytest.raises(InvalidInput) as refused:
            show("everything")
        assert refused.value.field == "view"
        assert canaries(str(refused.value)) == set()


# --- changed cells ----------------------------------------------------------------------------------------------------


def table_of(table: Any) -> list[tuple[Any, View]]:
    return [(row, view) for row in table for view in table[row]]


LEVELS = list(RefShown)
RULES = {rule for row in STATES.values() for rule in row.values()}
AUTHORITY_CELLS = (None, RedactionReason.PRIVATE_AUTHORITY, RedactionReason.OPERATOR_ONLY)
MUTANTS = [
    *(
        pytest.param(AUTHORITIES, row, view, other, id=f"{row}-{view}-{other}")
        for row, view in table_of(AUTHORITIES)
        for other in AUTHORITY_CELLS
        if other != AUTHORITIES[row][view]
    ),
    *(
        pytest.param(REFERENCES, row, view, level, id=f"{row}-{view}-{level.name}")
        for row, view in table_of(REFERENCES)
        for level in LEVELS
        if level is not REFERENCES[row][view]
    ),
    # An open state has no reason, so only whole rules replace it.
    *(
        pytest.param(STATES, row, view, rule, id=f"{row}-{view}-{rule.messages}-{rule.references.name}")
        for row, view in table_of(STATES)
        for rule in sorted({*RULES, *(StateRule(STATES[row][view].messages, level) for level in LEVELS)}, key=repr)
        if rule != STATES[row][view] and (rule.messages or rule in RULES)
    ),
]


@pytest.mark.parametrize(("table", "row", "view", "other"), MUTANTS)
def test_a_change_of_any_cell_is_found(
    table: Any, row: Any, view: View, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(table[row], view, other)
    found = all_wrongs()
    assert found
    assert all(wrong.startswith(f"{view},") for wrong in found)


@pytest.mark.parametrize(("table", "kind"), [(AUTHORITIES, Authority), (REFERENCES, HostRefVisibility)])
def test_what_the_tables_do_not_name_is_an_error_and_never_shown(
    table: Any, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row in kind:
        with monkeypatch.context() as without:
            without.delitem(table, row)
            for turn in EACH:
                for view in View:
                    with pytest.raises(KeyError):
                        redact_turn(turn, view, WIDE)


def test_the_tables_have_a_cell_for_everything() -> None:
    for table, kind in ((STATES, TranscriptState), (AUTHORITIES, Authority), (REFERENCES, HostRefVisibility)):
        assert list(table) == list(kind)  # type: ignore[call-overload]
        assert all(list(row) == list(View) for row in table.values())  # type: ignore[attr-defined]
    changed = [(id(mutant.values[0]), mutant.values[1], mutant.values[2]) for mutant in MUTANTS]
    cells = [(id(table), *cell) for table in (AUTHORITIES, REFERENCES, STATES) for cell in table_of(table)]
    assert min(changed.count(cell) for cell in cells) >= 2
    assert len(cells) == (13 + 5 + 4) * 5


# --- budgets only tighten ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", [part.name for part in fields(TranscriptGovernanceBudget)])
@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "9", None, MAX_BUDGET + 1])
def test_a_budget_of_nothing_or_no_number_is_refused(part: str, wrong: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        replace(WIDE, **{part: wrong})
    assert refused.value.field == part


SIZES = st.lists(st.integers(1, 9), min_size=5, max_size=5).map(lambda sizes: TranscriptGovernanceBudget(*sizes))


@given(SIZES, SIZES)
def test_a_tightened_budget_is_within_both(one: TranscriptGovernanceBudget, other: TranscriptGovernanceBudget) -> None:
    both = one.tighten(other)
    for part in fields(both):
        name = part.name
        assert getattr(both, name) == min(getattr(one, name), getattr(other, name))


def pieces(result: RedactedTurn) -> set[object]:
    """Return all pieces that a turn shows."""
    return {*((m.id, m.text) for m in result.messages), *((r.index, r.ref) for r in result.host_refs)}


@pytest.mark.parametrize("seed", range(2))
def test_a_tighter_budget_never_shows_more(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(500):
        turn, view = any_turn(chance), chance.choice(list(View))
        wide = TranscriptGovernanceBudget(*(chance.randint(1, 8) for _ in fields(WIDE)))
        tight = wide.tighten(TranscriptGovernanceBudget(*(chance.randint(1, 8) for _ in fields(WIDE))))
        more, less = redact_turn(turn, view, wide), redact_turn(turn, view, tight)
        assert pieces(less) <= pieces(more)
        assert less.profile_budget_applied or less == replace(more, profile_budget_applied=False)
        assert less.profile_budget_applied or not more.profile_budget_applied
        assert less.audit.redacted_host_refs >= more.audit.redacted_host_refs
        assert len(less.redactions) <= tight.redaction_items


def test_what_the_budget_cuts_is_said_and_counted() -> None:
    refs = [ref_of(place, HostRefVisibility.EXPORT, place == 0, Relation.RELATED) for place in range(4)]
    turn = turn_of(TranscriptState.ACTIVE, [message_of(0, Authority.USER_ASSERTED)], refs)
    shown = redact_turn(turn, View.EXPORT, replace(WIDE, host_refs_per_turn=2, redaction_items=2))
    assert [ref.index for ref in shown.host_refs] == [0, 1]
    assert shown.redactions == (
        TranscriptRedactionReportItem(RedactionReason.HOST_REF_LABEL, turn.id, host_ref=0),
        TranscriptRedactionReportItem(RedactionReason.PROFILE_BUDGET, turn.id, host_ref=2),
    )
    assert shown.audit == TranscriptReplayAudit(1, 1, 0, 4, 2, 1)
    assert shown.profile_budget_applied
    enough = redact_turn(turn, View.EXPORT, replace(WIDE, host_refs_per_turn=4, redaction_items=1))
    assert not enough.profile_budget_applied


def test_a_list_is_clipped_from_its_end() -> None:
    assert clip_items([1, 2, 3], 2) == ((1, 2), True)
    assert clip_items([1, 2], 2) == ((1, 2), False)
    assert clip_items([], 1) == ((), False)


# --- slices -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_a_slice_is_its_turns_and_keeps_to_the_budget_as_a_whole(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        turns = [any_turn(chance, number) for number in range(chance.randint(0, 6))]
        view, budget = chance.choice(list(View)), any_budget(chance)
        found = redact_turns(turns, view, budget)
        alone = [redact_turn(turn, view, replace(budget, redaction_items=1_000)) for turn in turns[: budget.page_size]]
        assert [pieces(turn) for turn in found.turns] == [pieces(turn) for turn in alone]
        assert [turn.audit for turn in found.turns] == [turn.audit for turn in alone]
        assert found.audit == sum((turn.audit for turn in alone), TranscriptReplayAudit())
        items = [item for turn in alone for item in turn.redactions]
        assert list(found.redactions) == items[: budget.redaction_items]
        cut = len(turns) > budget.page_size or len(items) > budget.redaction_items
        assert found.profile_budget_applied == (cut or any(turn.profile_budget_applied for turn in alone))


def test_the_turns_beyond_a_page_are_not_in_it() -> None:
    turns = [turn_of(TranscriptState.ACTIVE, [message_of(n, Authority.USER_ASSERTED)], [], n) for n in range(3)]
    page = redact_turns(iter(turns), View.HOST_UI, replace(WIDE, page_size=2))
    assert canaries(told(page)) == {"<m0>", "<n0>", "<m1>", "<n1>"}
    assert page.profile_budget_applied


# --- the documentation page -------------------------------------------------------------------------------------------


def drawn(first: str) -> dict[str, list[str]]:
    """Return the rows of the page's table with this first column, by their first cell."""
    table = re.search(rf"^\| {first} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text("utf-8"), re.MULTILINE)
    assert table, f"the page has no table of {first}"
    rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table.group(1).splitlines()]
    return {name.strip("`"): cells for row in rows for name in row[0].split(", ") for cells in [row[1:]]}


def test_the_page_draws_the_tables_as_they_are() -> None:
    levels = {RefShown.NOTHING: "—", RefShown.WITHOUT_LABEL: "without label", RefShown.WITH_LABEL: "with label"}
    assert drawn("reference") == {row: [levels[cell] for cell in cells.values()] for row, cells in REFERENCES.items()}
    assert drawn("message") == {
        row: [f"`{cell}`" if cell else "shown" for cell in cells.values()] for row, cells in AUTHORITIES.items()
    }
    assert drawn("state") == {
        row: [f"`{rule.messages}`, {levels[rule.references]}" if rule.messages else "open" for rule in cells.values()]
        for row, cells in STATES.items()
    }
