"""The store's manifest, which every runtime checks when it opens."""

from __future__ import annotations

from holdfast.domain.access import storewide_grant
from holdfast.domain.manifest import MANIFEST, Manifest, manifest_for, merge_manifest
from holdfast.domain.profiles import Backend, Profile
from holdfast.ports import Reader, Transaction
from holdfast.runtime.gate import Core


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
