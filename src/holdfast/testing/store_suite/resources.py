"""Resources are added and removed together with their chunks, and belong to a scope like any record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import ResourceId
from holdfast.domain.memory import Plane, Trust
from holdfast.domain.resources import Resource, resource_uri
from holdfast.domain.scope import SCOPE_PARTS, Scope
from holdfast.errors import AccessDenied
from holdfast.ports import NewRevision, Store
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    BOB,
    EMBEDDER,
    EVERYTHING,
    SPACE,
    Scribe,
    delta,
    forget,
    read_grant,
    scenario,
    texts,
    write_grant,
)

SHA = "ab" * 32
THERE = "https://there"


def new_resource(scribe: Scribe, scope: Scope, *chunks: str, sha256: str = SHA) -> tuple[Resource, list[NewRevision]]:
    """A resource with those chunks."""
    at: datetime = scribe.clock.step()
    resource_id = ResourceId(scribe.ids.new("r"))
    uri = resource_uri(scope, resource_id)
    resource = Resource(
        id=resource_id, uri=uri, name="a name", media_type="text/plain", sha256=sha256, bytes=5, chunks=len(chunks),
        external_uri=THERE, scope=scope, recorded_at=at,
    )  # fmt: skip
    return resource, [
        scribe.revision(scope, text, plane=Plane.RESOURCE, trust=Trust.LOW, source=uri, recorded_at=at)
        for text in chunks
    ]


async def add_resource(store: Store, resource: Resource, chunks: Sequence[NewRevision]) -> None:
    await store.write(write_grant(resource.scope), lambda t: t.resources.add(resource, chunks, EMBEDDER, ANALYZER))


class ResourceContract:
    """The promises of every store about resources."""

    @scenario
    async def test_a_resource_is_kept_with_its_chunks(self, store: Store) -> None:
        scribe = Scribe()
        resource, chunks = new_resource(scribe, ANA, "one", "two", "three")
        await add_resource(store, resource, chunks)
        assert await store.read(SPACE, lambda r: r.resources.find(resource.id)) == resource
        assert await store.read(SPACE, lambda r: r.resources.find_file(ANA, SHA, THERE)) == resource
        assert await texts(store) == ["three", "two", "one"]
        found = await delta(store)
        resource_rows = [(row.plane, row.source, row.trust) for row in found.rows]
        assert resource_rows == [("resource", resource.uri, Trust.LOW.level)] * 3
        assert len(found.vectors) == 3
        counts = await store.read(SPACE, lambda r: r.maintenance.counts(EMBEDDER, ANALYZER))
        assert (counts["resources"], counts["memories"], counts["pending_vectors"]) == (1, 3, 0)
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1] == []

    @scenario
    async def test_the_same_file_of_another_address_is_another_resource(self, store: Store) -> None:
        scribe = Scribe()
        kept = []
        for address in (THERE, "https://elsewhere", None):
            resource, chunks = new_resource(scribe, ANA, "the same")
            kept.append(replace(resource, external_uri=address))
            assert await store.read(SPACE, lambda r, address=address: r.resources.find_file(ANA, SHA, address)) is None  # type: ignore[misc]
            await add_resource(store, kept[-1], chunks)
        for each in kept:
            found = await store.read(SPACE, lambda r, each=each: r.resources.find_file(ANA, SHA, each.external_uri))  # type: ignore[misc]
            assert found == each

    @scenario
    async def test_the_chunks_that_were_not_forgotten_are_told(self, store: Store) -> None:
        scribe = Scribe()
        resource, chunks = new_resource(scribe, ANA, "one", "two")
        await add_resource(store, resource, chunks)
        await add_resource(store, *new_resource(scribe, BOB, "three"))
        ids = [chunk.id for chunk in chunks]
        assert sorted(await store.read(SPACE, lambda r: r.resources.chunks(resource))) == sorted(ids)
        assert list(await store.read(read_grant(BOB), lambda r: r.resources.chunks(resource))) == []
        await forget(store, ForgetTarget(ids=(ids[0],)), write_grant(ANA), scribe.clock.step())
        assert list(await store.read(SPACE, lambda r: r.resources.chunks(resource))) == ids[1:]

    @scenario
    async def test_resources_are_listed_newest_first(self, store: Store) -> None:
        scribe = Scribe()
        kept = [new_resource(scribe, ANA, f"chunk {number}", sha256=f"{number:064x}") for number in range(5)]
        for resource, chunks in kept:
            await add_resource(store, resource, chunks)
        newest = [resource for resource, _ in kept][::-1]
        assert list(await store.read(SPACE, lambda r: r.resources.page(None, 10))) == newest
        assert list(await store.read(SPACE, lambda r: r.resources.page(newest[1].id, 2))) == newest[2:4]

    @pytest.mark.parametrize("part", SCOPE_PARTS)
    @scenario
    async def test_a_resource_of_another_scope_is_out_of_reach(self, store: Store, part: str) -> None:
        scribe = Scribe()
        whole = Scope(**dict.fromkeys(SCOPE_PARTS, "x"))
        # Without a subject, an agent has its own partition.
        there = replace(whole, subject=None) if part == "agent" else whole
        here = replace(there, **{part: "y"})
        resource, chunks = new_resource(scribe, there, "canary")
        await add_resource(store, resource, chunks)
        assert await store.read(read_grant(here), lambda r: r.resources.find(resource.id)) is None
        assert await store.read(read_grant(here), lambda r: r.resources.find_file(there, SHA, THERE)) is None
        assert await store.read(EVERYTHING, lambda r: r.resources.find_file(here, SHA, THERE)) is None
        assert list(await store.read(read_grant(here), lambda r: r.resources.page(None, 10))) == []
        for target in (ForgetTarget(source=resource.uri), ForgetTarget(conversation=there.conversation)):
            doomed = await store.read(read_grant(here), lambda r, target=target: r.records.plan_forget(target))  # type: ignore[misc]
            assert (doomed.resource_ids, doomed.memory_ids) == ((), ())
        if here.partition != there.partition:
            with pytest.raises(AccessDenied):
                await store.write(write_grant(here), lambda t: t.resources.add(resource, chunks, EMBEDDER, ANALYZER))
        assert await store.read(EVERYTHING, lambda r: r.resources.find(resource.id)) == resource

    @pytest.mark.parametrize("by", ["source", "subject", "conversation"])
    @scenario
    async def test_a_resource_is_forgotten_with_its_chunks(self, store: Store, by: str) -> None:
        scribe = Scribe()
        resource, chunks = new_resource(scribe, ANA, "one", "two")
        other, others = new_resource(scribe, BOB, "three")
        await add_resource(store, resource, chunks)
        await add_resource(store, other, others)
        targets = {
            "source": ForgetTarget(source=resource.uri),
            "subject": ForgetTarget(subject="ana"),
            "conversation": ForgetTarget(conversation="chat"),
        }
        doomed = await store.read(read_grant(ANA), lambda r: r.records.plan_forget(targets[by]))
        assert (doomed.resource_ids, len(doomed.memory_ids)) == ((resource.id,), 2)
        assert await forget(store, targets[by], write_grant(ANA), scribe.clock.step()) == (2, 0)
        assert await store.read(EVERYTHING, lambda r: r.resources.find(resource.id)) is None
        assert await store.read(EVERYTHING, lambda r: r.resources.find(other.id)) == other
        assert await texts(store) == ["three"]
        assert (await store.read(EVERYTHING, lambda r: r.maintenance.integrity(EMBEDDER)))[1] == []
        # The same file can come again, and gets numbers of its own.
        again, chunks = new_resource(scribe, ANA, "four")
        await add_resource(store, again, chunks)
        assert await store.read(SPACE, lambda r: r.resources.find_file(ANA, SHA, THERE)) == again
        assert await texts(store) == ["four", "three"]

    @scenario
    async def test_a_source_that_only_looks_like_a_resource_takes_none_along(self, store: Store) -> None:
        scribe = Scribe()
        resource, chunks = new_resource(scribe, ANA, "one")
        await add_resource(store, resource, chunks)
        for source in (resource.id, f"resource:bob:{resource.id}", f"resource:{resource.id}", "resource:", "x:" + SHA):
            target = ForgetTarget(source=source)
            doomed = await store.read(SPACE, lambda r, target=target: r.records.plan_forget(target))  # type: ignore[misc]
            assert doomed.resource_ids == ()
