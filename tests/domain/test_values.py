"""Scopes, texts, times, numbers, metadata, targets and jobs: validation and derived values."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.checks import (
    MAX_QUERY_CHARS,
    MAX_TEXT_CHARS,
    Scalar,
    check_metadata,
    checked_flag,
    checked_real,
    checked_text,
    checked_whole,
)
from holdfast.domain.forgetting import ForgetPreview, ForgetTarget
from holdfast.domain.ids import JobId, checked_id, kind_of
from holdfast.domain.jobs import FIRST_RETRY, Job, JobKind, JobStatus, retry_delay
from holdfast.domain.memory import GUARDED_PLANES, OPEN_PLANES, TRUST_LEVELS, Plane, Trust, Validity
from holdfast.domain.scope import FILTER_PARTS, MAX_PART_CHARS, SCOPE_PARTS, Partition, PartitionKind, Scope
from holdfast.domain.times import EPOCH, checked_iso_time, checked_time, from_micros, to_micros
from holdfast.domain.transcript import Draft
from holdfast.errors import InvalidInput, InvalidScope, InvalidText, InvalidTimestamp

NAMES = st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=40).filter(str.strip)
STORABLE = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1)

# --- scope ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", SCOPE_PARTS)
@pytest.mark.parametrize("wrong", ["", " ", "\t", "a\x00", "a\nb", "\x7f", "\ud800", "x" * 257, 5, b"a", [], True])
def test_a_part_of_a_scope_is_a_plain_name(part: str, wrong: object) -> None:
    with pytest.raises(InvalidScope) as refused:
        Scope(**{part: wrong})
    assert refused.value.field == part


def test_only_the_space_is_needed() -> None:
    assert Scope() == Scope(space="default")
    with pytest.raises(InvalidScope):
        Scope(space=None)  # type: ignore[arg-type]


@given(NAMES)
def test_any_name_can_be_a_part_and_stays_as_it_is(name: str) -> None:
    for part in SCOPE_PARTS:
        scope = Scope(**{part: name})
        assert getattr(scope, part) == name
        assert scope.given()[part] == name


def test_a_name_as_long_as_allowed_is_allowed() -> None:
    assert Scope(subject="x" * MAX_PART_CHARS).subject == "x" * 256


@given(subject=st.none() | NAMES, agent=st.none() | NAMES)
def test_a_record_lies_with_its_subject_else_its_agent_else_with_all(subject: str | None, agent: str | None) -> None:
    partition = Scope(space="s", subject=subject, agent=agent, app="a").partition
    if subject is not None:
        assert partition == Partition("s", PartitionKind.SUBJECT, subject)
    elif agent is not None:
        assert partition == Partition("s", PartitionKind.AGENT, agent)
    else:
        assert partition == Partition("s", PartitionKind.SHARED)


def test_a_subject_and_an_agent_of_one_name_do_not_meet() -> None:
    assert Scope(subject="x").partition != Scope(agent="x").partition


@pytest.mark.parametrize("part", FILTER_PARTS)
def test_a_part_that_is_given_must_match_and_one_that_is_not_matches_anything(part: str) -> None:
    one, other = Scope(**{part: "one"}), Scope(**{part: "other"})
    assert one.covers(one)
    assert not one.covers(other)
    assert not one.covers(Scope())
    assert Scope().covers(one)


def test_another_space_is_never_covered() -> None:
    assert not Scope(space="a").covers(Scope(space="b"))


def test_every_part_is_a_filter_or_chooses_what_is_read() -> None:
    assert {*FILTER_PARTS, "space", "subject", "agent"} == set(SCOPE_PARTS)


# --- text and numbers -------------------------------------------------------------------------------------------------


@given(STORABLE.filter(str.strip))
def test_text_is_never_altered(text: str) -> None:
    assert checked_text(text, "text") is text


@pytest.mark.parametrize("wrong", ["", " ", "\n\u2003\t", "a\x00b", "\ud83d", "a\udc00", None, 5, b"a", ["a"]])
def test_text_that_cannot_be_kept_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidText) as refused:
        checked_text(wrong, "text")
    assert refused.value.field == "text"


def test_text_is_refused_from_one_character_too_many() -> None:
    assert checked_text("x" * MAX_TEXT_CHARS, "text")
    with pytest.raises(InvalidText, match=r"1,000,001 .*: split it"):
        checked_text("x" * (MAX_TEXT_CHARS + 1), "text")


def test_what_cannot_be_split_is_to_be_shortened() -> None:
    with pytest.raises(InvalidText, match="at most 256 are allowed: shorten it"):
        checked_text("x" * 257, "sender", max_chars=256)
    with pytest.raises(InvalidText, match="shorten it"):
        checked_text("x" * (MAX_QUERY_CHARS + 1), "query", max_chars=MAX_QUERY_CHARS)


def test_the_error_says_where_the_unstorable_character_is() -> None:
    with pytest.raises(InvalidText, match="NUL character at position 3"):
        checked_text("abc\x00", "text")
    with pytest.raises(InvalidText, match="surrogate at position 0"):
        checked_text("\ud800abc", "text")


@pytest.mark.parametrize("wrong", [0, 11, -1, True, False, 1.0, "1", None, 10**40])
def test_a_whole_number_is_one_within_its_bounds(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="from 1 to 10") as refused:
        checked_whole(wrong, "n", 1, 10)
    assert len(str(refused.value)) < 120
    assert [checked_whole(right, "n", 1, 10) for right in (1, 10)] == [1, 10]


@pytest.mark.parametrize("wrong", [True, "1", None, float("nan"), float("inf"), float("-inf"), 1j])
def test_a_number_is_finite_and_no_truth_value(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        checked_real(wrong, "n")
    assert [checked_real(right, "n") for right in (0, -1.5)] == [0, -1.5]


@pytest.mark.parametrize("wrong", [0, 1, None, "True"])
def test_a_truth_value_is_nothing_else(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        checked_flag(wrong, "f")
    assert checked_flag(True, "f")


@pytest.mark.parametrize("wrong", ["", " ", "\x00", "\ud800", "x" * 257, None, 5])
def test_an_id_is_a_short_text(wrong: object) -> None:
    with pytest.raises(InvalidText):
        checked_id(wrong, "record_id")
    assert checked_id("mem_1", "record_id") == "mem_1"


def test_the_kind_of_an_id_is_its_prefix() -> None:
    assert [kind_of(value) for value in ("mem_1", "msg_1_2", "plain", "", "_x")] == ["mem", "msg", "", "", ""]


# --- times ------------------------------------------------------------------------------------------------------------


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_survives_as_microseconds(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment


@given(st.integers(to_micros(datetime.min.replace(tzinfo=UTC)), to_micros(datetime.max.replace(tzinfo=UTC))))
def test_microseconds_survive_as_a_moment(micros: int) -> None:
    assert to_micros(from_micros(micros)) == micros


@given(st.datetimes(min_value=datetime(2, 1, 1), max_value=datetime(9998, 12, 31)), st.integers(-14 * 60, 14 * 60))
def test_a_moment_is_the_same_moment_in_utc_whatever_zone_and_form_it_came_in(naive: datetime, minutes: int) -> None:
    moment = naive.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    for given_as in (moment, moment.isoformat()):
        read = checked_time(given_as, "at")
        assert read == moment
        assert read.utcoffset() == timedelta(0)


@given(st.datetimes())
def test_a_moment_without_a_zone_is_read_as_utc(naive: datetime) -> None:
    assert checked_time(naive, "at") == naive.replace(tzinfo=UTC)
    assert checked_time(naive.isoformat(), "at") == naive.replace(tzinfo=UTC)


def test_a_zone_that_knows_no_offset_is_no_zone() -> None:
    class Vague(tzinfo):
        def utcoffset(self, moment: datetime | None) -> None:
            return None

        def dst(self, moment: datetime | None) -> None:
            return None

        def tzname(self, moment: datetime | None) -> str:
            return "vague"

    assert checked_time(datetime(2026, 3, 1, tzinfo=Vague()), "at") == datetime(2026, 3, 1, tzinfo=UTC)


@given(st.integers(10**8, 10**11 - 1), st.integers(0, 999))
def test_a_number_is_seconds_or_milliseconds_by_its_size(seconds: int, millis: int) -> None:
    moment = EPOCH + timedelta(seconds=seconds, milliseconds=millis)
    in_seconds, in_millis = seconds + millis / 1_000, seconds * 1_000 + millis
    assert checked_time(seconds, "at") == checked_time(str(seconds), "at") == EPOCH + timedelta(seconds=seconds)
    assert abs(checked_time(in_seconds, "at") - moment) < timedelta(milliseconds=1)
    assert checked_time(in_millis, "at") == checked_time(str(in_millis), "at") == moment
    with pytest.raises(InvalidTimestamp, match="expected a datetime or an ISO 8601 text"):
        checked_iso_time(in_millis, "at")


@given(st.dates())
def test_a_date_is_its_midnight_in_utc(day: date) -> None:
    midnight = datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert checked_time(day, "at") == checked_time(day.isoformat(), "at") == midnight
    assert checked_time(f"{day:%Y%m%d}".zfill(8), "at") == midnight


@given(
    st.one_of(
        st.integers(max_value=10**8 - 1), st.integers(min_value=10**14), st.floats(max_value=99_999_999),
        st.floats(min_value=1e14), st.just(float("nan")), st.booleans(), st.none(), st.binary(),
        st.from_regex(r"[a-zé ]+"),
    )
)  # fmt: skip
def test_whatever_is_no_moment_is_refused_by_name(wrong: object) -> None:
    with pytest.raises(InvalidTimestamp) as refused:
        checked_time(wrong, "at")
    assert refused.value.field == "at"


def test_moments_just_outside_the_calendar_are_refused() -> None:
    for wrong in ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"):
        with pytest.raises(InvalidTimestamp, match="years 1 to 9999"):
            checked_time(wrong, "at")


def test_the_epoch_is_zero() -> None:
    assert to_micros(EPOCH) == 0
    assert to_micros(EPOCH - timedelta(microseconds=1)) == -1


def test_validity_ends_after_it_begins() -> None:
    assert Validity(EPOCH, EPOCH + timedelta(microseconds=1))
    for until in (EPOCH, EPOCH - timedelta(1)):
        with pytest.raises(InvalidInput, match="valid_until"):
            Validity(EPOCH, until)


# --- messages ---------------------------------------------------------------------------------------------------------


SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0")),
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False), st.booleans(), st.none(),
)  # fmt: skip


@given(st.dictionaries(NAMES, SCALARS, max_size=8))
def test_any_scalars_can_be_metadata(metadata: dict[str, Scalar]) -> None:
    check_metadata(metadata)
    assert Draft("x", metadata=MappingProxyType(metadata)).metadata == metadata


@pytest.mark.parametrize(
    "wrong",
    [
        None, 5, "a", ["a"], {"a": ["a"]}, {"a": float("nan")}, {"a": 2**63}, {1: "a"}, {"": "a"},
        {"a": "\x00"}, {"a": "\ud800"}, {"a": "x" * 4_097},
        {str(number): "" for number in range(65)},
    ],
)  # fmt: skip
def test_metadata_is_a_few_scalars_by_name(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="metadata"):
        check_metadata(wrong)


def test_guarded_and_open_planes_are_all_planes() -> None:
    assert set(Plane) == GUARDED_PLANES | OPEN_PLANES
    assert not GUARDED_PLANES & OPEN_PLANES


# --- forget targets ---------------------------------------------------------------------------------------------------

ONE = {"ids": ("mem_1",), "conversation": "talk", "subject": "ana", "source": "web"}


@pytest.mark.parametrize("name", ONE)
def test_one_target_is_enough(name: str) -> None:
    assert getattr(ForgetTarget(**{name: ONE[name]}), name) == ONE[name]  # type: ignore[arg-type]


def test_a_conversation_may_be_a_subjects() -> None:
    target = ForgetTarget(conversation="talk", subject="ana")
    assert (target.conversation, target.subject) == ("talk", "ana")


@pytest.mark.parametrize(
    "names", [("ids", "source"), ("ids", "subject"), ("ids", "conversation"), ("source", "subject"), tuple(ONE)]
)
def test_two_targets_are_one_too_many(names: tuple[str, ...]) -> None:
    with pytest.raises(InvalidInput, match="one target"):
        ForgetTarget(**{name: ONE[name] for name in names})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "empty", [{}, {"ids": ()}, {"subject": ""}, {"conversation": ""}, {"source": ""}, {"ids": ("",)}, {"source": " "}]
)
def test_what_is_empty_is_never_everything(empty: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        ForgetTarget(**empty)  # type: ignore[arg-type]


def test_a_preview_of_nothing_is_empty() -> None:
    def preview(messages: int, memories: int) -> ForgetPreview:
        return ForgetPreview("token", messages, memories, 0, 0, 0, 0, (), truncated=False)

    assert [preview(*counts).empty for counts in ((0, 0), (1, 0), (0, 1))] == [True, False, False]


# --- jobs -------------------------------------------------------------------------------------------------------------


def test_each_attempt_waits_twice_as_long_as_the_one_before() -> None:
    delays = [retry_delay(attempt) for attempt in range(1, 5)]
    assert delays == [FIRST_RETRY * factor for factor in (1, 2, 4, 8)]


@pytest.mark.parametrize(
    ("status", "lease", "stuck"),
    [
        (JobStatus.RUNNING, timedelta(0), True),
        (JobStatus.RUNNING, timedelta(seconds=1), False),
        (JobStatus.RUNNING, None, False),
        (JobStatus.QUEUED, timedelta(0), False),
        (JobStatus.FAILED, timedelta(0), False),
    ],
)
def test_a_job_is_stuck_when_its_lease_ran_out_while_it_ran(
    status: JobStatus, lease: timedelta | None, stuck: bool
) -> None:
    until = None if lease is None else EPOCH + lease
    job = Job(JobId("job_1"), JobKind.INDEX, Scope(), (), status, 1, 1, EPOCH, EPOCH, until, None, None, 0, 0, None)
    assert job.is_stuck(EPOCH) is stuck


# --- trust ------------------------------------------------------------------------------------------------------------


@given(st.sampled_from(Trust), st.sampled_from(Trust))
def test_trust_is_ordered_by_level_and_written_as_a_word(one: Trust, other: Trust) -> None:
    levels = one.level, other.level
    assert [one < other, one <= other, one > other, one >= other, one == other] == [
        levels[0] < levels[1],
        levels[0] <= levels[1],
        levels[0] > levels[1],
        levels[0] >= levels[1],
        levels[0] == levels[1],
    ]
    assert (min(one, other).level, max(one, other).level) == (min(levels), max(levels))
    assert TRUST_LEVELS[one.level] is one
    assert (str(one), f"{one}", json.loads(json.dumps(one))) == (one.name.lower(),) * 3
