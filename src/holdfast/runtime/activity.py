"""Who changed what in how a company's memory is looked after: events, in the commit of the change that they are of."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain import ids
from holdfast.domain.access import Grant
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.scope import Scope
from holdfast.runtime.requests import Core


def activity(
    core: Core, grant: Grant, kind: EventKind, key: str | None, details: Mapping[str, str | int | None] | None = None
) -> Event:
    """An event to be appended. `key` is what was changed; `details` are names and counts, never values or texts.

    It is of whatever memory the change was made in: a grant for one agent's or subject's writes nowhere else.
    """
    about = {"actor": str(grant.actor), **(details or {})}
    event_id = EventId(core.ids.new(ids.EVENT))
    scope = Scope(grant.scope.space, subject=grant.scope.subject, agent=grant.scope.agent)
    return Event(event_id, kind, scope, core.clock.now(), record_key=key, details=about)
