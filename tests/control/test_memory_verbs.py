"""Memory through the control plane: whoever keeps it, one call is one row, and the row says what served it."""

from __future__ import annotations

import asyncio

from desk import AGENT, BOT, NOTE, Desk, rows_of, text

from holdfast.control.memory import Capture, Query
from holdfast.domain.operations import Outcome


def test_a_new_company_is_served_by_our_own_store(desk: Desk, runner: asyncio.Runner) -> None:
    with rows_of(desk, runner.run) as rows:
        captured = runner.run(desk.do(Capture(BOT, NOTE, text("The deploy key lives in the vault.")), AGENT))
        found = runner.run(desk.do(Query(BOT, "deploy key"), AGENT))
    assert (captured.binding, captured.provider) == ("default", "local")
    assert [each.text for each in found.result.snippets] == ["The deploy key lives in the vault."]
    assert [(row.action, row.outcome, row.touched) for row in rows] == [
        ("capture", Outcome.SUCCEEDED, 1),
        ("query", Outcome.SUCCEEDED, 1),
    ]
    assert [row.id for row in rows] == [captured.operation_id, found.operation_id]
