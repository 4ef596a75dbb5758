"""The store's papers: the manifest, which every runtime presents when it opens, and the event log."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain import ids
from holdfast.domain.access import storewide
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.memory import Plane
from holdfast.domain.papers import MANIFEST, Manifest, manifest_for, presented
from holdfast.domain.profiles import Backend, Profile
from holdfast.domain.scope import Scope
from holdfast.ports import Reader, Transaction
from holdfast.runtime.perform import Core

# The log is cut now and then, not with every event: it may be longer than its budget by about so many.
_SLACK = 256


async def present_manifest(core: Core, profile: Profile, backend: Backend | str, version: int, space: str) -> Manifest:
    """Make the store's manifest, or compare it with what the runtime is opened as; `ManifestMismatch` if they differ.

    The moment is kept, and what the profile has no room for of the space's events goes.
    """
    wanted = manifest_for(profile, backend, version, core.clock.now())

    def keep(transaction: Transaction) -> Manifest:
        kept = presented(manifest_of(transaction), wanted)
        transaction.put_fact(MANIFEST, kept.to_json())
        transaction.prune_events(space, profile.budget.events)
        return kept

    return await core.store.write(storewide(), keep)


def manifest_of(reader: Reader) -> Manifest | None:
    text = reader.fact(MANIFEST)
    return None if text is None else Manifest.from_json(text)


def note_event(
    transaction: Transaction,
    core: Core,
    kind: EventKind,
    scope: Scope,
    *,
    keep: int,
    plane: Plane | None = None,
    record_key: str | None = None,
    content_hash: str | None = None,
    details: Mapping[str, str | int | None] | None = None,
) -> EventId:
    """Leave an event in the transaction of what caused it. Of a space, about `keep` stay."""
    event_id = EventId(core.ids.new(ids.EVENT))
    transaction.append_event(
        Event(event_id, kind, scope, core.clock.now(), plane, record_key, content_hash, details or {})
    )
    if int(event_id[-4:], 16) % _SLACK == 0:
        transaction.prune_events(scope.space, keep)
    return event_id
