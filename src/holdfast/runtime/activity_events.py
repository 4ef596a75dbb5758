"""Activity events: who changed which setting of a space's memory. Each is written in the commit of its change."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain import ids
from holdfast.domain.access import Grant
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.scope import Scope
from holdfast.runtime.requests import Core


def activity_event(
    core: Core, grant: Grant, kind: EventKind, key: str | None, details: Mapping[str, str | int | None] | None = None
) -> Event:
    """Build an event to append. `key` names what was changed; `details` are names and counts, never values or texts.

    Its scope is the memory that was changed: a grant for one agent or subject can write nowhere else.
    """
    about = {"actor": str(grant.actor), **(details or {})}
    event_id = EventId(core.ids.new(ids.EVENT))
    scope = Scope(grant.scope.space, subject=grant.scope.subject, agent=grant.scope.agent)
    return Event(event_id, kind, scope, core.clock.now(), record_key=key, details=about)
