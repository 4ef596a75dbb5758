"""`jobs` and `costs`: background work and costs, at a prompt."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast import ControlPlane
from holdfast.app import open_engine
from holdfast.domain.access import storewide_grant
from holdfast.domain.jobs import JobKind
from holdfast.settings import Settings

from .conftest import Holdfast


@pytest.fixture
def busy(holdfast: Holdfast, quiet_environment: Path) -> Holdfast:
    """The command line with a store that holds a capture whose extraction is queued."""
    with ControlPlane.open(quiet_environment / "memory.db", embedder="fake", work=False) as plane:
        source = {"kind": "run", "run_id": "r1"}
        plane.emit("post_run_capture", "h1", "I live in Porto.", source=source, agent="builder", run="r1")
    return holdfast


def test_a_job_is_listed_shown_cancelled_and_tried_again(busy: Holdfast) -> None:
    listed = busy("jobs", "list")
    assert "extract" in listed.out
    assert "post_run_capture of run" in listed.out
    by = ("--agent", "builder", "--run", "r1", "--state", "queued", "--kind", "extract", "--hook", "post_run_capture")
    (job,) = busy("jobs", "list", *by, "--json").json["jobs"]
    job_id = job["job_id"]
    assert (job["state"], job["retry_available"], job["scope"]["agent_id"]) == ("queued", False, "builder")
    assert (job["hook"]["hook_id"], job["source"]["run_id"], job["binding_key"]) == ("h1", "r1", "default")
    assert "state      queued" in busy("jobs", "show", job_id).out
    assert busy("jobs", "retry", job_id).code == 5
    cancelled = busy("jobs", "cancel", job_id)
    assert "state      cancelled" in cancelled.out
    assert f"`holdfast jobs retry {job_id}` retries it." in cancelled.out
    assert busy("jobs", "show", job_id, "--json").json["retry_available"] is True
    again = busy("jobs", "retry", job_id, "--json").json
    assert (again["retry_of"], again["state"]) == (job_id, "queued")
    assert "tries again" not in busy("jobs", "show", job_id).out, "it was tried again already"
    assert busy("jobs", "show", job_id, "--json").json["retry_available"] is False
    assert busy("jobs", "cancel", job_id).code == 5
    assert busy("jobs", "list", "--state", "stuck").out == "There are no such jobs.\n"


def test_a_job_that_nobody_works_at_any_more_is_stuck_in_words_and_in_json(
    busy: Holdfast, quiet_environment: Path
) -> None:
    _taken_and_left(quiet_environment / "memory.db")
    (job,) = busy("jobs", "list", "--state", "stuck", "--json").json["jobs"]
    assert (job["state"], job["retry_available"]) == ("stuck", False)
    assert busy("jobs", "show", job["job_id"], "--json").json == job
    assert "state      stuck" in busy("jobs", "show", job["job_id"]).out


def _taken_and_left(path: Path) -> None:
    """Claim a job as a worker whose lease then expires."""

    async def take() -> None:
        engine = await open_engine(str(path), Settings(), embedder="fake", work=False)
        now, ended = datetime.now(UTC), timedelta(seconds=-1)
        try:
            await engine._core.store.write(storewide_grant(), lambda t: t.jobs.claim(frozenset(JobKind), now, ended))
        finally:
            await engine.close()

    asyncio.run(take())


def test_a_job_shows_how_far_it_came_and_what_it_goes_back_to(busy: Holdfast) -> None:
    assert "done       0 of 1" in busy("jobs", "show", busy("jobs", "list", "--json").json["jobs"][0]["job_id"]).out
    assert busy("worker", "--once").out == "1 job done.\n"
    assert "done 1 of 1," in busy("jobs", "list", "--state", "succeeded").out
    with ControlPlane.open("memory.db", embedder="fake", work=False) as plane:
        (job,) = plane.jobs(kinds=["extract"]).items
    assert job.cause is not None
    shown = busy("jobs", "show", job.id).out
    told = {"done": "1 of 1", "binding": "default", "hook id": "h1", "run": "r1", "operation": job.cause.operation_id}
    for name, value in told.items():
        assert f"  {name:<9}  {value}\n" in shown


def test_a_job_that_delivers_shows_its_delivery(holdfast: Holdfast, quiet_environment: Path, nowhere: str) -> None:
    with ControlPlane.open(quiet_environment / "memory.db", embedder="fake", work=False) as plane:
        plane.create_binding("far", "gateway", config={"url": nowhere, "user_id": "u"})
        plane.set_default("far")
        plane.emit("post_run_capture", "h1", "I live in Porto.", source={"kind": "run", "run_id": "r1"})
        (job,), (delivery,) = plane.jobs(kinds=["deliver"]).items, plane.deliveries().items
    shown = holdfast("jobs", "show", job.id).out
    assert f"  delivery   {delivery.id}\n" in shown
    assert "  run        r1\n" in shown


LISTS = {
    ("binding", "activity"): "activity",
    ("costs", "events"): "events",
    ("costs", "fees"): "events",
    ("deliveries", "list"): "deliveries",
    ("jobs", "list"): "jobs",
    ("operations", "list"): "operations",
    ("operations", "list", "--all"): "operations",
    ("operations", "list", "--type", "query"): "operations",
}


@pytest.mark.parametrize("command", LISTS, ids=" ".join)
def test_a_list_says_that_it_was_cut_off_and_only_then(
    holdfast: Holdfast, quiet_environment: Path, nowhere: str, command: tuple[str, ...]
) -> None:
    with ControlPlane.open(quiet_environment / "memory.db", embedder="fake", work=False) as plane:
        plane.create_binding("far", "gateway", config={"url": nowhere, "user_id": "u"})
        for number in range(3):
            plane.query("Who is Ben?")
            plane.add_fee("other", f"Of {number}", 1)
        plane.set_default("far")
        for number in range(3):
            plane.emit("post_run_capture", f"h{number}", "I live in Porto.", source="run")
    there = len(holdfast(*command, "--json").json[LISTS[command]])
    assert there >= 3 or command == ("costs", "events")
    cut = holdfast(*command, "--limit", "2")
    assert cut.err == ("holdfast: warning: there is more; raise --limit to see it\n" if there else "")
    assert holdfast(*command, "--limit", "1000").err == ""


def test_deliveries_are_listed_shown_tried_again_and_dropped(
    holdfast: Holdfast, quiet_environment: Path, nowhere: str
) -> None:
    with ControlPlane.open(quiet_environment / "memory.db", embedder="fake", work=False) as plane:
        plane.create_binding("far", "gateway", config={"url": nowhere, "user_id": "u"})
        plane.set_default("far")
        source = {"kind": "run", "run_id": "r1"}
        plane.emit("post_run_capture", "h1", "I live in Porto.", source=source, agent="builder", run="r1")
        (job,) = plane.jobs(kinds=["deliver"]).items
        plane.cancel_job(job.id)
    listed = holdfast("deliveries", "list", "--status", "dead", "--hook", "post_run_capture", "--to", "binding:far")
    assert "binding:far" in listed.out
    (delivery,) = holdfast("deliveries", "list", "--source", "run", "--json").json["deliveries"]
    shown = holdfast("deliveries", "show", delivery["delivery_id"])
    retry, drop = (f"`holdfast deliveries {each} {delivery['delivery_id']}`" for each in ("retry", "drop"))
    assert f"{retry} retries it, {drop} drops it." in shown.out
    assert "Porto" not in shown.out + holdfast("deliveries", "show", delivery["delivery_id"], "--json").out
    assert holdfast("deliveries", "retry", delivery["delivery_id"], "--json").json["status"] == "pending"
    assert holdfast("deliveries", "retry", delivery["delivery_id"]).code == 5
    assert "dropped" in holdfast("deliveries", "drop", delivery["delivery_id"]).out
    assert holdfast("deliveries", "drop", delivery["delivery_id"]).code == 5
    assert holdfast("deliveries", "list", "--status", "pending").out == "There are no such deliveries.\n"
    told = holdfast("binding", "activity").out
    assert all(each in told for each in ("binding_created", "default_set", "far", "operator:local"))
    activity = holdfast("binding", "activity", "--json").json["activity"]
    assert {each["key"] for each in activity} >= {"far"}
    assert nowhere not in str(activity)


@pytest.fixture
def nowhere() -> str:
    """An address without a server."""
    return "http://127.0.0.1:9"


def test_fees_and_prices_are_written_down_and_shown(busy: Holdfast) -> None:
    made = busy("costs", "fee", "subscription", "19.90", "November", "--provider", "mem0", "--invoice", "i1")
    assert made.out == "Recorded: 19.90 USD, subscription: November\n"
    assert "i1" in busy("costs", "fees").out
    (fee,) = busy("costs", "fees", "--json").json["events"]
    assert fee["amount_micros"] == 19_900_000
    credit = busy("costs", "fee", "--currency", "EUR", "--", "other", "-5", "Refund")
    assert credit.out == "Recorded: -5.00 EUR, other: Refund\n"
    summary = busy("costs", "summary", "--by", "model")
    assert summary.out.startswith("No metered calls were made in that time.")
    assert "19.90 USD" in summary.out
    assert len(busy("costs", "summary", "--json").json["fees"]) == 2
    assert busy("costs", "events").out == "No metered calls were made.\n"
    busy("costs", "prices", "set", "mem0", "--input", "0.15", "--output", "0.6")
    assert "0.15 USD" in busy("costs", "prices", "list").out
    (price,) = busy("costs", "prices", "list", "--json").json["prices"]
    assert (price["model"], price["input_micros"]) == ("*", 150_000)
    assert busy("costs", "prices", "remove", "mem0").out == "Removed the price of mem0 *.\n"
    assert "There are no prices" in busy("costs", "prices", "list").out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("jobs", "list", "--state", "lost"), 2, "--state: there is no 'lost'; use one of queued"),
        (("jobs", "list", "--kind", "gossip"), 2, "--kind: there is no 'gossip'"),
        (("jobs", "list", "--hook", "after_lunch"), 2, "--hook: there is no 'after_lunch'"),
        (("jobs", "list", "--since", "noon"), 2, "--since: "),
        (("deliveries", "list", "--status", "lost"), 2, "--status: there is no 'lost'; use one of pending"),
        (("deliveries", "list", "--hook", "after_lunch"), 2, "--hook: there is no 'after_lunch'"),
        (("deliveries", "show", "dlv_none"), 3, "there is no delivery"),
        (("deliveries", "retry", "dlv_none"), 3, "there is no delivery"),
        (("deliveries", "drop", "dlv_none"), 3, "there is no delivery"),
        (("jobs", "show", "job_none"), 3, "there is no job 'job_none'"),
        (("jobs", "retry", "job_none"), 3, "there is no job"),
        (("jobs", "cancel", "job_none"), 3, "there is no job"),
        (("jobs", "list", "--store", "none.db"), 6, "there is no store"),
        (("costs", "summary", "--by", "mood"), 2, "--by: there is no 'mood'; use one of binding"),
        (("costs", "events", "--limit", "0"), 2, "--limit"),
        (("costs", "fee", "gift", "1", "x"), 2, "KIND: there is no 'gift'; use one of subscription"),
        (("costs", "fee", "other", "a lot", "x"), 2, "give an amount such as 19.90"),
        (("costs", "fee", "other", "0.0000001", "x"), 2, "at most six digits"),
        (("costs", "fee", "other", "1", "x", "--currency", "dollars"), 2, "--currency: "),
        (("costs", "fee", "other", "1", " "), 2, "DESCRIPTION: is empty"),
        (("costs", "fee", "other", "1", "x", "--at", "noon"), 2, "--at: is not an ISO 8601 time"),
        (("costs", "fee", "other", "1", "x", "--binding", "No Key"), 2, "--binding: "),
        (("costs", "fee", "other", "-5", "Refund"), 2, "To give -5 as an argument, put -- before all of them"),
        (("costs", "fee", "other", "-x", "Refund"), 2, "No such option: -x"),
        (("costs", "fees", "--limit", "x"), 2, "--limit"),
        (("costs", "prices", "set", "mem0", "--input", "-1"), 2, "--input -1: a price is 0 or more"),
        (("costs", "prices", "set", "mem0"), 2, "no price was given; give --input"),
        (("costs", "prices", "set"), 2, "PROVIDER"),
        (("costs", "prices", "remove", "none"), 3, "there is no price"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value)[:20],
)
def test_what_cannot_be_done_says_why(busy: Holdfast, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = busy(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_for_people_an_error_names_the_option_and_for_programs_the_field(busy: Holdfast) -> None:
    told = busy("deliveries", "list", "--hook", "after_lunch", "--json").error
    assert told["message"].startswith("--hook: there is no 'after_lunch'")
    assert told["field"] == "kind"
