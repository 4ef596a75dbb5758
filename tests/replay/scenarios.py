"""The scenarios of the committed fixtures. `test_fixtures.py` writes and checks `fixtures/`.

Each part of a family differs in one thing, such as the authority of a message, so that a failing fixture says what
changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.domain.candidates import TARGETS
from holdfast.domain.memory import Plane
from holdfast.domain.profiles import PROFILES, Pressure
from holdfast.domain.transcript import Role
from holdfast.domain.transcript_turns import Authority, DeliveryStatus, HostRefVisibility, View
from holdfast.testing.replay import BenchmarkRecord, RecallBenchmark, RecallCase, ReplayFixture

Step = dict[str, Any]
MANY_DAYS = 91 * 86_400.0
BACKUP = "Stop the writers, copy the folder to the second disk, compare both checksums, then start the writers."


def step(operation: str, **arguments: Any) -> Step:
    return {"operation": operation, **arguments}


def said(text: str, role: str = "user", authority: str | None = None, **more: Any) -> dict[str, Any]:
    labelled = {} if authority is None else {"authority": str(authority)}
    return {"text": text, "role": role, **labelled, **more}


def turn(number: int, *messages: dict[str, Any], refs: list[dict[str, Any]] | None = None) -> Step:
    listed = [{"message_id": f"m{number}-{place}", **each} for place, each in enumerate(messages, 1)]
    return step("commit_transcript", turn={"turn_id": f"turn-{number}", "messages": listed}, host_refs=refs or [])


def views(*named: str) -> list[Step]:
    return [step("replay_transcript", view=str(view)) for view in named]


def lifecycle(transition: str, turn_id: str | None = None) -> Step:
    return step("transcript_lifecycle", transition=transition, reason="a replay", turn_id=turn_id)


def learned(text: str, *messages: int, relation: str = "new", known: int | None = None) -> dict[str, Any]:
    blank = {"since": None, "until": None}
    return {"text": text, "messages": messages, "relation": relation, "known": known, **blank}


def skill(title: str, content: str, **more: Any) -> dict[str, Any]:
    return {"title": title, "content": content, **more}


def all_fixtures() -> Iterator[ReplayFixture]:
    for name, steps in (
        *authorities(), *references(), *deliveries(), *recalls(), *projections(), *candidates(), *lessons(),
        *skills(), *transfers(), *repairs(),
    ):  # fmt: skip
        yield ReplayFixture(name, tuple(steps))
    for profile in PROFILES:
        yield ReplayFixture(f"profile-{profile}", tuple(everyday()), profile)


# --- redaction --------------------------------------------------------------------------------------------------------


def authorities() -> Iterator[tuple[str, list[Step]]]:
    """Each authority, in each state and each view."""
    for authority in Authority:
        name = authority.replace("_", "-")
        steps = [
            turn(
                1,
                said("The spare key hangs in the shed."),
                said("A second voice adds a word.", "system", authority),
                said("A third voice answers.", "assistant", authority),
            ),
            *views(*View),
            lifecycle("archive"),
            *views(View.MODEL_CONTEXT, View.HOST_UI),
            lifecycle("restore"),
            step("recall", query="Where does the spare key hang?"),
            step("project", user_query="A second voice adds which word?"),
            lifecycle("mask"),
            *views(View.OPERATOR_AUDIT, View.EXPORT),
        ]
        yield f"authority-{name}", steps


def references() -> Iterator[tuple[str, list[Step]]]:
    """Each visibility of a host's reference, in each view, before and after its turn is deleted."""
    for visibility in HostRefVisibility:
        ref = {
            "host_kind": "desk",
            "business_ref_type": "ticket",
            "business_ref_id": "T-7",
            "relation": "origin",
            "visibility": str(visibility),
            "label": "A leaking tap",
        }
        steps = [
            turn(1, said("The tap in the kitchen leaks."), refs=[ref]),
            *views(*View),
            lifecycle("archive"),
            *views(*View),
            lifecycle("mask"),
            *views(*View),
            lifecycle("restore"),
            lifecycle("delete_raw"),
            *views(*View),
            step("inspect"),
        ]
        yield f"reference-{visibility.replace('_', '-')}", steps


def deliveries() -> Iterator[tuple[str, list[Step]]]:
    """Each outcome of an answer, and a host that sends its history again."""
    for status in DeliveryStatus:
        history = [said("Book a table for two.", message_id="h1"), said("On Friday.", message_id="h2")]
        steps = [
            step(
                "finalize_turn",
                turn_id="turn-1",
                delivery_status=str(status),
                input_messages=history,
                assistant_message="The table is booked.",
                tool_observations=["reservation 42 stored"],
            ),
            step(
                "finalize_turn",
                turn_id="turn-2",
                delivery_status="delivered",
                input_messages=[*history, said("Make it three.", message_id="h3")],
                assistant_message="Three it is.",
            ),
            *views(View.RAW_OWNER_ONLY, View.HOST_UI),
            step("replay", limit=4),
            step("inspect"),
        ]
        yield f"delivery-{status.replace('_', '-')}", steps


# --- ranking ----------------------------------------------------------------------------------------------------------

HOUSEHOLD = (
    ("ana", "My sister Clara moved to Porto in March and works at a bakery."),
    ("ben", "The car needs new brakes; the garage asked for 340 euros."),
    ("ana", "I am allergic to walnuts, but almonds are fine."),
    ("ben", "We should paint the kitchen green before the winter."),
    ("ana", "The dentist gave me an appointment on 12 May at nine."),
    ("ben", "I never learned to swim, so I stay away from the lake."),
    ("ana", "Clara's bakery closes on Mondays."),
    ("ben", "Could you remind me which paint we chose?"),
    ("ana", "We chose the matt green from the shop at the station."),
    ("ben", "The neighbours feed our cat Miso when we travel."),
)
QUESTIONS = {
    "names": ("Where does Clara work?", "Who feeds the cat?"),
    "numbers": ("How much do the brakes cost?", "340 euros"),
    "dates": ("When is the dentist's appointment?", "What happens in May?"),
    "speakers": ("What can Ben not do?", "What is Ana allergic to?"),
    "context": ("Which paint did we choose?", "When is the bakery closed?"),
    "nothing": ("What is the capital of Mongolia?", "Thanks!"),
}


def recalls() -> Iterator[tuple[str, list[Step]]]:
    told = [turn(place, said(text, sender=who)) for place, (who, text) in enumerate(HOUSEHOLD, 1)]
    for name, queries in QUESTIONS.items():
        asked = [step("recall", query=query, limit=5, min_score=floor) for query in queries for floor in (None, 0.0)]
        yield f"recall-{name}", [*told, *asked]


def projections() -> Iterator[tuple[str, list[Step]]]:
    told = [turn(place, said(text, sender=who)) for place, (who, text) in enumerate(HOUSEHOLD[:6], 1)]
    query = "What should I know about the household?"
    for pressure in Pressure:
        shown = step("project", user_query=query, pressure=str(pressure), system_max_len=420, min_score=0.0)
        yield f"project-{pressure}", [*told, shown]
    yield "project-audited", [*told, step("project", user_query=query, min_score=0.0, audit_id="audit-1")]
    private = {
        "candidate_id": "p1",
        "authority": "soul_governance",
        "content": "Ana fears the dark.",
        "target": "private",
    }
    steps = [
        step("write", candidates=[private]),
        step("recall", query="What does Ana fear?"),
        *(step("project", user_query="What does Ana fear?", include_private=flag) for flag in (False, True)),
    ]
    yield "project-private", steps


# --- governance -------------------------------------------------------------------------------------------------------


def candidates() -> Iterator[tuple[str, list[Step]]]:
    """A candidate of each authority for each plane, in each privacy."""
    for authority in Authority:
        proposed = [
            {
                "candidate_id": f"{target}-{privacy}",
                "authority": str(authority),
                "content": f"Ana repairs old clocks in her workshop, item {place}.",
                "target": str(target),
                "privacy": privacy,
            }
            for place, (target, privacy) in enumerate(
                (target, privacy) for target in TARGETS for privacy in ("shareable", "standard", "private")
            )
        ]
        cited = {
            **proposed[0],
            "candidate_id": "cited",
            "content": "Ana sells old clocks.",
            "evidence_refs": [{"turn_id": "turn-1"}],
        }
        steps = [
            turn(1, said("I sell old clocks.")),
            step("write", candidates=[*proposed, cited]),
            step("write", candidates=[cited]),
            step("recall", query="What does Ana do with clocks?", min_score=0.0),
            step("inspect"),
        ]
        yield f"write-{authority.replace('_', '-')}", steps


def lessons() -> Iterator[tuple[str, list[Step]]]:
    """The scripted model proposes; memory decides."""
    first = [
        turn(1, said("I live in Lisbon."), said("Noted.", "assistant")),
        step("maintain", answers={"memories": [learned("Ana lives in Lisbon.", 1)]}),
    ]
    look = [step("recall", query="Where does Ana live?", min_score=0.0), step("inspect")]
    for relation, text, heard in (
        ("duplicate", "Ana lives in Lisbon.", "As I said, I live in Lisbon."),
        ("update", "Ana lives in Porto.", "I moved, now I live in Porto."),
        ("contradiction", "Ana lives in Faro.", "I live in Faro."),
    ):
        answers = {"memories": [learned(text, 1, relation=relation, known=1)]}
        yield f"maintain-{relation}", [*first, turn(2, said(heard)), step("maintain", answers=answers), *look]
    outside = step("maintain", external_content_used=True, answers={"memories": [learned("Ana lives in Rome.", 1, 2)]})
    yield "maintain-external", [turn(1, said("Read this page."), said("Ana lives in Rome.", "tool")), outside, *look]
    invented = [learned("Ana owns 12 boats.", 1), learned("Ana lives in Lisbon.", 9), {"text": 3}]
    yield "maintain-invented", [first[0], step("maintain", answers={"memories": invented}), *look]
    taught = {"procedures": [{"title": "Back up the archive", "steps": BACKUP.split(", "), "messages": [1]}]}
    steps = [
        turn(1, said(BACKUP), said("The checksums agree.", "assistant")),
        step("maintain", tool_calls=["shell"], answers=taught),
        step("maintain", tool_calls=["shell"], answers=taught),
        step("list_skills"),
        step("recall", query="How is the archive backed up?"),
    ]
    yield "maintain-tools", steps


def skills() -> Iterator[tuple[str, list[Step]]]:
    name = "runtime_skill__back_up_the_archive"
    write = step("write_procedural", writes=[skill("Back up the archive", BACKUP, citations=["ticket 9"])])
    ask = step("recall", query="How do I back up the archive?")
    yield "skill-changes", [
        write, ask,
        step("edit_skill", name=name, summary="Copies the archive to the second disk.", edit_reason="shorter"), ask,
        step("set_skill_enabled", name=name, enabled=False), ask,
        step("set_skill_enabled", name=name, enabled=True), step("list_skills"),
        step("delete_skill", name=name), ask, step("list_skills"),
    ]  # fmt: skip
    unfit = [
        skill("A log", "2026-01-01 10:00:00 INFO started\n2026-01-01 10:00:01 ERROR failed"),
        skill("JSON", '{"steps": ["one", "two"]}'),
        skill("Thanks", "Thank you!"),
        skill("Empty", " "),
    ]
    yield "skill-rejections", [step("write_procedural", writes=unfit), step("list_skills"), ask]
    twin = skill("Back up the archive", BACKUP.replace("second", "third"), name=name)
    yield "skill-revisions", [
        write, write, step("write_procedural", writes=[twin]), step("list_skills"), ask,
    ]  # fmt: skip
    used = [
        [turn(number, said(f"Back up the archive, please, round {number}.")),
         step("maintain", runtime_skill_selected_ids=[name], reuse_outcome=outcome), step("wait", seconds=30_000.0)]
        for number, outcome in enumerate(("neutral", "succeeded", "mismatch", "mismatch"), 1)
    ]  # fmt: skip
    yield "skill-outcomes", [write, *(each for part in used for each in part), step("list_skills"), ask]
    better = {**twin, "topic": "backup", "summary": "Copies the archive."}
    why = {"rationale": "The second disk is full.", "evidence_refs": [name, "ticket 9"]}
    fourth = {"title": "Back up", "steps": [BACKUP.replace("second", "fourth")], "messages": [1]}
    used = {"runtime_skill_selected_ids": [name], "reuse_outcome": "mismatch"}
    failing = step("maintain", **used, answers={"procedures": [fourth]})
    failures = [each for number in (1, 2, 3) for each in (turn(number, said(f"It failed {number} times.")), failing)]
    yield "skill-proposals", [
        write, step("validate_proposal", proposal_id="p-1", writes=[better]),
        step("propose", proposal_id="p-1", writes=[better], **why),
        step("propose", proposal_id="p-2", notes=[{"target": name, "summary": "Retire it."}], **why),
        step("propose", proposal_id="p-1", writes=[better], **why), ask, step("list_proposals"),
        step("approve_proposal", proposal_id="p-2"), step("reject_proposal", proposal_id="p-2", reason="done"),
        step("approve_proposal", proposal_id="p-1", reason="tried"), step("approve_proposal", proposal_id="p-1"), ask,
        *failures,
        step("list_proposals", include_decided=True), step("delete_skill", name=name),
        step("list_proposals", include_decided=True),
    ]  # fmt: skip
    yield "skill-stale", [write, step("wait", seconds=MANY_DAYS), step("list_skills"), ask]


# --- moving, repair, profiles -----------------------------------------------------------------------------------------


def transfers() -> Iterator[tuple[str, list[Step]]]:
    talk = [
        turn(1, said("I play the cello."), said("Since when?", "assistant")),
        turn(2, said("Since I was six."), said("A hidden thought.", "assistant", "private_garden_internal")),
        step("maintain", answers={"memories": [learned("Ana plays the cello since she was six.", 1)]}),
    ]
    for mode in ("bootstrap", "full_restore"):
        for private in (False, True):
            steps = [
                *talk,
                step("export", mode=mode, include_private=private),
                step("import", mode=mode, target_chat_id="second-chat", include_private=private),
                step("replay_transcript", view="raw_owner_only", scope={"channel": "replay", "chat_id": "second-chat"}),
                step("recall", query="What does Ana play?", min_score=0.0),
                step("inspect"),
            ]
            yield f"transfer-{mode.replace('_', '-')}{'-private' if private else ''}", steps


def repairs() -> Iterator[tuple[str, list[Step]]]:
    talk = [turn(number, said(f"Message {number} is about the garden.")) for number in (1, 2, 3)]
    learn = step("maintain", answers={"memories": [learned("Ana's third message is about the garden, 3.", 1)]})
    changes = [lifecycle(name, "turn-2") for name in ("review", "mask", "archive", "restore", "delete_raw", "restore")]
    steps = [
        *talk, learn, *changes, lifecycle("delete_raw", "turn-3"), lifecycle("archive"),
        step("repair_transcript"), step("replay", limit=3), *views(*View), step("export_transcript"),
        step("recover"), step("recall", query="What is the garden message about?", min_score=0.0),
    ]  # fmt: skip
    yield "lifecycle-of-turns", steps


def everyday() -> list[Step]:
    """A short day, within the budgets of the smallest device."""
    return [
        turn(1, said("My train leaves at 7:40 from platform 3."), said("Noted.", "assistant")),
        step("write_procedural", writes=[skill("Water the plants", "Fill the can. Water the ferns. Empty the tray.")]),
        step("recall", query="When does my train leave?"),
        step("project", user_query="How do I water the plants?"),
        step("replay_transcript", view="host_ui"),
        step("inspect", query="train"),
    ]


# --- benchmarks -------------------------------------------------------------------------------------------------------


def all_benchmarks() -> Iterator[RecallBenchmark]:
    yield RecallBenchmark("recall", tuple(_household()), RECALL_CASES)
    yield RecallBenchmark("persona_governance", tuple(_persona()), PERSONA_CASES)


def _household() -> Iterator[BenchmarkRecord]:
    names = "clara brakes walnuts paint dentist swim mondays reminder green cat".split()
    for name, (who, text) in zip(names, HOUSEHOLD, strict=True):
        yield BenchmarkRecord(name, text, who)
    for name, text in (
        ("vegetarian", "Ana has been a vegetarian since 2019."),
        ("language", "Ben speaks Portuguese and a little Czech."),
        ("office", "Ana works from home on Tuesdays and Thursdays."),
        ("violin", "Ana plays the violin in a quartet."),
    ):
        yield BenchmarkRecord(name, text, plane=Plane.LONG_TERM)


def _case(name: str, query: str, *relevant: str, **more: Any) -> RecallCase:
    return RecallCase(name, query, relevant, **{"expected_top_id": relevant[0] if relevant else None, **more})


RECALL_CASES = (
    _case("name", "Where does Clara work?", "clara", "mondays", min_mrr=1.0),
    _case("cost", "How much do the brakes cost?", "brakes", min_recall=1.0),
    _case("allergy", "What is Ana allergic to?", "walnuts", min_recall=1.0),
    _case("colour", "Which colour did we choose for the kitchen?", "paint", "green", min_recall=1.0),
    _case("date", "When is the dentist's appointment?", "dentist", min_recall=1.0),
    _case("other-words", "Who looks after our pet on holidays?", "cat", expected_top_id=None),
    _case("diet", "Does Ana eat meat?", "vegetarian", plane=Plane.LONG_TERM),
    _case("music", "Which instrument does Ana play?", "violin", min_recall=1.0),
    _case("home-office", "On which days is Ana at home?", "office"),
    _case("languages", "Can Ben speak Portuguese?", "language", min_mrr=1.0),
    _case("closing-day", "When is the bakery closed?", "mondays", "clara"),
    _case("first-person", "What did I say about walnuts?", "walnuts"),
    _case("nothing", "What is the capital of Mongolia?"),
)


def _persona() -> Iterator[BenchmarkRecord]:
    yield BenchmarkRecord("tea", "Ana drinks green tea in the morning.", plane=Plane.LONG_TERM)
    yield BenchmarkRecord("dark", "Ana fears the dark.", plane=Plane.PRIVATE, authority="soul_governance")
    yield BenchmarkRecord(
        "soul", "The assistant wants to be patient.", plane=Plane.SOUL_CANDIDATE, authority="soul_governance"
    )
    yield BenchmarkRecord("rumour", "Ana hates tea.", plane=Plane.LONG_TERM, authority="external_content")
    yield BenchmarkRecord(
        "guess", "Ana drinks coffee in the evening.", plane=Plane.LONG_TERM, authority="assistant_utterance"
    )
    yield BenchmarkRecord("thought", "I think that Ana is afraid of the dark.", authority="private_garden_internal")
    yield BenchmarkRecord("trace", "Traceback: the tea service failed.", authority="operator_diagnostic")
    yield BenchmarkRecord("told", "Tea keeps me awake at night.", "ana")
    yield BenchmarkRecord("advice", "Black tea may keep you awake at night.", "assistant", Role.ASSISTANT)


_HIDDEN = ("dark", "soul", "rumour", "guess", "thought", "trace")
PERSONA_CASES = tuple(
    RecallCase(name, query, relevant, _HIDDEN, min_recall=1.0)
    for name, query, relevant in (
        ("preference", "What does Ana drink?", ("tea",)),
        ("fear", "What is Ana afraid of?", ()),
        ("persona", "What does the assistant want to be?", ()),
        ("rumour", "Does Ana hate tea?", ("tea",)),
        ("diagnostic", "Why did the tea service fail?", ()),
        ("awake", "What keeps Ana awake?", ("told",)),
        ("own-words", "What did I say about tea at night?", ("told",)),
    )
)
