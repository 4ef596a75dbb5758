"""Fingerprints of a memory under replay: of its records, and of its event log.

Ids are replaced by their order, so that a fingerprint does not depend on how many ids were made in between.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import partial

from holdfast.domain.access import LOCAL_OPERATOR, Action
from holdfast.domain.canonical import fingerprint
from holdfast.domain.events import Event
from holdfast.domain.runtime_api.exchange import MemorySpaceExportRequest
from holdfast.domain.scope import Scope
from holdfast.ports import Service
from holdfast.runtime.cursors import MAX_PAGE
from holdfast.runtime.events import ListEvents
from holdfast.sdk.runtime import AsyncMemoryRuntime

_ID = re.compile(r"\b([a-z]+)_[0-9a-f]{32}\b")


async def fingerprint_state(runtime: AsyncMemoryRuntime) -> str:
    """Return the fingerprint of all records, from the lines of the exported space."""
    report = await runtime.export_space(MemorySpaceExportRequest(include_private=True))
    lines = (report.content or b"").splitlines()
    return fingerprint(_with_numbered_ids(json.loads(line) for line in lines[1:-1]))


async def fingerprint_events(service: Service, space: str) -> str:
    """Return the fingerprint of the space's event log, oldest first."""
    events = await read_events(service, space)
    return fingerprint(_with_numbered_ids(map(_describe_event, reversed(events))))


async def read_events(service: Service, space: str) -> list[Event]:
    """Return the whole event log of a space, newest first."""
    scope = Scope(space=space)
    found: list[Event] = []
    cursor = None
    while True:
        make = partial(ListEvents, scope, limit=MAX_PAGE, cursor=cursor)
        page = await service.perform(LOCAL_OPERATOR, Action.EVENTS, make, space=space)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            return found


def _describe_event(event: Event) -> dict[str, object]:
    described = event.to_dict()
    described["scope"].pop("space")
    return described


def _with_numbered_ids(values: Iterable[object]) -> list[object]:
    numbers: dict[str, str] = {}

    def number_id(found: re.Match[str]) -> str:
        return numbers.setdefault(found[0], f"{found[1]}#{len(numbers)}")

    text = json.dumps(list(values), sort_keys=True)
    result: list[object] = json.loads(_ID.sub(number_id, text))
    return result
