"""An adapter can do exactly what its capabilities declare."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from holdfast.domain.contract import (
    MAX_SUMMARY_CHARS,
    Capabilities,
    CorrectResult,
    ExtractionJob,
    ExtractionJobPage,
    ProfileResult,
    QueryRequest,
    RecordHandle,
    TraceResult,
)
from holdfast.errors import HoldfastError
from holdfast.testing.provider_suite.trial import BINDING, Trial, run_on_adapter


class CapabilityContract:
    @run_on_adapter
    async def test_capabilities_are_said_and_stay(self, trial: Trial) -> None:
        declared = trial.adapter.capabilities
        assert isinstance(declared, Capabilities)
        assert all(isinstance(getattr(declared, each.name), bool) for each in fields(declared))
        assert isinstance(trial.adapter.key, str)
        assert trial.adapter.key
        await trial.note("Anything.")
        assert trial.adapter.capabilities == declared

    @run_on_adapter
    async def test_a_correction_takes_the_place_of_what_it_corrects(self, trial: Trial) -> None:
        adapter: Any = trial.adapter
        handle = RecordHandle(adapter.key, "any")
        if not adapter.capabilities.correction:
            await trial.check_unsupported("correct", handle, "text", trial.scope(), None)
            return
        old = await trial.note("The meeting room is on floor two.")
        done = await adapter.correct(old, "The meeting room is on floor five.", trial.scope(), "it moved")
        assert isinstance(done, CorrectResult)
        assert done.record.provider_key == adapter.key
        assert done.superseded in (None, old)
        await trial.eventually(
            lambda: trial.text_of(done.record), lambda seen: seen == "The meeting room is on floor five."
        )
        await trial.eventually(lambda: trial.texts(), lambda seen: seen == ["The meeting room is on floor five."])
        await trial.eventually(
            lambda: trial.find_texts("Where is the meeting room?"),
            lambda seen: seen == ["The meeting room is on floor five."],
        )
        assert await trial.text_of(old) != "The meeting room is on floor two."
        gone = await adapter.forget([done.record], trial.scope())
        assert tuple(gone.forgotten) == (done.record,)
        await trial.eventually(lambda: trial.texts(), lambda seen: seen == [])

    @run_on_adapter
    async def test_what_is_not_there_cannot_be_corrected(self, trial: Trial) -> None:
        adapter: Any = trial.adapter
        if not adapter.capabilities.correction:
            return
        for key in (adapter.key, "somebody-else"):
            with pytest.raises(HoldfastError):
                await adapter.correct(RecordHandle(key, "never-was"), "text", trial.scope(), None)

    @run_on_adapter
    async def test_a_profile_is_short_and_of_nobody_else(self, trial: Trial) -> None:
        adapter: Any = trial.adapter
        if not adapter.capabilities.profile:
            await trial.check_unsupported("profile", trial.scope())
            return
        assert isinstance(await adapter.profile(trial.scope()), ProfileResult)
        for number in range(40):
            await trial.write(f"Preference {number}: {'plain words ' * 20}")
        await trial.note("Bo prefers Tamarind.", trial.scope(agent="bo"))
        found = await adapter.profile(trial.scope())
        assert found.summary is None or 0 < len(found.summary) <= MAX_SUMMARY_CHARS
        assert "Tamarind" not in str(found.summary)

    @run_on_adapter
    async def test_extraction_jobs_are_of_the_scope_that_caused_them(self, trial: Trial) -> None:
        adapter: Any = trial.adapter
        if not adapter.capabilities.extraction_jobs:
            await trial.check_unsupported("list_extraction_jobs", trial.scope(), None)
            return
        for number in range(3):
            done = await trial.capture(f"We use database number {number}.")
            assert all(isinstance(job, ExtractionJob) for job in done.jobs)
        page = await adapter.list_extraction_jobs(trial.scope(), None)
        assert isinstance(page, ExtractionJobPage)
        assert page.items
        assert all(isinstance(job, ExtractionJob) and job.provider_job_id for job in page.items)
        assert not (await adapter.list_extraction_jobs(trial.scope(agent="bo"), None)).items

    @run_on_adapter
    async def test_a_job_that_is_not_there_cannot_be_tried_again(self, trial: Trial) -> None:
        adapter: Any = trial.adapter
        if not adapter.capabilities.extraction_retry:
            await trial.check_unsupported("retry_extraction_job", "any", trial.scope())
            return
        with pytest.raises(HoldfastError):
            await adapter.retry_extraction_job("never-was", trial.scope())

    @run_on_adapter
    async def test_an_explanation_is_plain_data(self, trial: Trial) -> None:
        adapter: Any = trial.adapter
        request = QueryRequest(BINDING, trial.scope(), "Which dog is black?")
        if not adapter.capabilities.explanation:
            await trial.check_unsupported("explain", request)
            return
        await trial.note("The black dog is called Soot.")
        found = await adapter.explain(request)
        assert isinstance(found, TraceResult)
        assert json.loads(json.dumps(found.trace, allow_nan=False)) == found.trace
