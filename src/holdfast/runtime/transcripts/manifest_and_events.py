"""The store's manifest, which every runtime checks when it opens, and its event log."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain import ids
from holdfast.domain.access import storewide_grant
from holdfast.domain.events import Event, EventKind
from holdfast.domain.ids import EventId
from holdfast.domain.manifest import MANIFEST, Manifest, manifest_for, merge_manifest
from holdfast.domain.memory import Plane
from holdfast.domain.profiles import Backend, Profile
from holdfast.domain.scope import Scope
from holdfast.ports import Reader, Transaction
from holdfast.runtime.gate import Core

# The log is pruned occasionally, not with every event: it may exceed its budget by about this many.
_SLACK = 256


async def check_manifest(core: Core, profile: Profile, backend: Backend | str, version: int, space: str) -> Manifest:
    """Create the store's manifest, or compare it with the runtime's options; raise `ManifestMismatch` if they differ.

    Stores the time, and prunes the space's events to the profile's budget.
    """
    expected = manifest_for(profile, backend, version, core.clock.now())

    def keep(transaction: Transaction) -> Manifest:
        manifest = merge_manifest(load_manifest(transaction), expected)
        transaction.maintenance.put_fact(MANIFEST, manifest.to_json())
        transaction.events.prune(space, profile.budget.events)
        return manifest

    return await core.store.write(storewide_grant(), keep)


def load_manifest(reader: Reader) -> Manifest | None:
    text = reader.maintenance.fact(MANIFEST)
    return None if text is None else Manifest.from_json(text)


def append_event(
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
    """Append an event in the transaction that caused it. About `keep` events of a space are retained."""
    event_id = EventId(core.ids.new(ids.EVENT))
    transaction.events.append(
        Event(event_id, kind, scope, core.clock.now(), plane, record_key, content_hash, details or {})
    )
    if int(event_id[-4:], 16) % _SLACK == 0:
        transaction.events.prune(scope.space, keep)
    return event_id
