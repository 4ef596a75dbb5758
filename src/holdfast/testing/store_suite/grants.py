"""A grant limits what can be seen, counted, found, changed and forgotten."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.forgetting import ForgetTarget
from holdfast.domain.ids import MessageId
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.scope import SCOPE_PARTS, Partition, PartitionKind, Scope
from holdfast.errors import AccessDenied, HoldfastError, NotFound
from holdfast.ports import (
    IndexUpdate,
    ListFilter,
    Reader,
    Store,
    StoredResponse,
)
from holdfast.testing.store_suite.scribe import (
    ANA,
    ANALYZER,
    BOB,
    EMBEDDER,
    EVERYTHING,
    SHARED,
    SPACE,
    Scribe,
    add,
    analysis,
    delta,
    find_record,
    forget,
    number_of,
    populate,
    put,
    read_grant,
    scenario,
    texts,
    vector,
    write_grant,
)


class GrantContract:
    # --- grants ---

    _PARTITIONING = ("space", "subject", "agent")

    @staticmethod
    def _scopes(part: str) -> tuple[Scope, Scope]:
        """Two scopes that differ in one part."""
        whole = {name: f"{name}-here" for name in SCOPE_PARTS}
        # A subject chooses the partition before an agent does.
        whole.pop("subject" if part == "agent" else "agent")
        return Scope(**whole), Scope(**{**whole, part: f"{part}-there"})

    @pytest.mark.parametrize("part", SCOPE_PARTS)
    @scenario
    async def test_a_grant_never_sees_another_scope(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        message, memory = await populate(store, scribe, there)
        numbers = [await number_of(store, message), await number_of(store, memory)]
        grant = read_grant(here)

        def look(reader: Reader) -> None:
            assert reader.records.find(message) is None
            assert reader.records.find(memory) is None
            assert reader.records.find(memory, scribe.clock.step(3600)) is None
            assert list(reader.records.revisions(memory)) == []
            assert reader.records.fetch(numbers) == {}
            assert list(reader.records.page(ListFilter(), None, 10)) == []
            assert list(reader.records.page(ListFilter(source="canary"), None, 10)) == []
            assert list(reader.index.backlog(EMBEDDER, ANALYZER, 0, 10)) == []
            assert list(reader.index.backlog_of([message, memory], EMBEDDER, ANALYZER)) == []
            assert reader.records.in_slot(here, "slot") is None
            # A conversation is sealed as a whole, across its runs and issues.
            assert part in ("run", "issue") or list(reader.transcripts.unsealed_messages(here)) == []
            assert list(reader.jobs.newest()) == []
            assert reader.jobs.counts() == {}
            assert list(reader.operations.page()) == []
            counts = reader.maintenance.counts(EMBEDDER, ANALYZER)
            counts.pop("partitions")
            assert set(counts.values()) == {0}

        await store.read(grant, look)

    @pytest.mark.parametrize("part", SCOPE_PARTS)
    @scenario
    async def test_a_grant_never_forgets_another_scope(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        message, memory = await populate(store, scribe, there)
        targets = [
            ForgetTarget(ids=(message, memory)),
            ForgetTarget(source="canary"),
            ForgetTarget(conversation=there.conversation),
        ]
        if there.subject is not None:
            targets.append(ForgetTarget(subject=there.subject))
        for target in targets:
            doomed = await store.read(read_grant(here), lambda r, target=target: r.records.plan_forget(target))  # type: ignore[misc]
            assert (doomed.message_ids, doomed.memory_ids, doomed.derived_ids) == ((), (), ())
            assert (doomed.revisions, doomed.weakened, doomed.conversations) == (0, 0, 0)
            left = await forget(store, target, write_grant(here), scribe.clock.step())
            assert left == (0, 0)
        assert await find_record(store, message, grant=EVERYTHING) is not None
        assert await find_record(store, memory, grant=EVERYTHING) is not None

    @pytest.mark.parametrize("part", _PARTITIONING)
    @scenario
    async def test_a_grant_never_reaches_another_partition(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        await populate(store, scribe, there)
        changes = await store.read(EVERYTHING, lambda r: r.index.change_of(there.partition))

        def look(reader: Reader) -> None:
            assert there.partition not in reader.index.partitions()
            assert reader.index.change_of(there.partition) == 0
            empty = reader.index.delta(there.partition, 0, EMBEDDER)
            assert (list(empty.rows), list(empty.vectors), list(empty.removed), empty.scopes) == ([], [], [], {})
            assert reader.records.response(there.partition, "key") is None
            assert list(reader.transcripts.unsealed_messages(there)) == []
            assert reader.records.in_slot(there, "slot") is None

        await store.read(read_grant(here), look)
        await store.write(write_grant(here), look)
        assert changes > 0

    @pytest.mark.parametrize("part", _PARTITIONING)
    @scenario
    async def test_a_grant_never_writes_into_another_partition(self, store: Store, part: str) -> None:
        scribe = Scribe()
        here, there = self._scopes(part)
        message, memory = await populate(store, scribe, there)
        before = await delta(store, there), await find_record(store, memory, grant=EVERYTHING)
        numbers = [await number_of(store, message), await number_of(store, memory)]
        grant = write_grant(here)
        with pytest.raises(AccessDenied):
            await add(store, scribe.turn(there, "intruder"), grant)
        with pytest.raises(AccessDenied):
            await put(store, scribe.revision(there, "intruder"), grant)
        with pytest.raises(AccessDenied):
            await store.write(
                grant,
                lambda t: t.records.put_response(
                    there.partition, "other", StoredResponse("d", "{}"), scribe.clock.now()
                ),
            )
        entries = [IndexUpdate(number, [vector()], analysis("intruder")) for number in numbers]
        await store.write(grant, lambda t: t.index.update(entries, EMBEDDER, ANALYZER))
        await store.write(grant, lambda t: t.index.mark_stale())
        await store.write(grant, lambda t: t.transcripts.seal(there))
        # Claiming the id of a foreign memory does not allow superseding it.
        stolen = replace(scribe.revision(here, "stolen"), id=memory, supersedes=1)
        with pytest.raises(HoldfastError):
            await put(store, stolen, grant)
        assert before == (await delta(store, there), await find_record(store, memory, grant=EVERYTHING))

    @scenario
    async def test_a_subject_is_read_together_with_what_is_shared_and_no_other_space(self, store: Store) -> None:
        scribe = Scribe()
        for scope in (ANA, BOB, SHARED, replace(SHARED, space="other"), replace(ANA, space="other")):
            await add(store, scribe.turn(scope, f"{scope.space} {scope.subject}"))
        assert await texts(store, read_grant(ANA)) == ["default None", "default ana"]
        assert await texts(store, SPACE) == ["default None", "default bob", "default ana"]
        assert len(await texts(store, EVERYTHING)) == 5
        partitions = await store.read(read_grant(ANA), lambda r: r.index.partitions())
        assert set(partitions) == {
            Partition("default", PartitionKind.SUBJECT, "ana"),
            Partition("default", PartitionKind.SHARED),
        }

    @scenario
    async def test_evidence_is_shown_only_to_those_who_reach_it(self, store: Store) -> None:
        scribe = Scribe()
        message = scribe.message("a secret of Ana's")
        await add(store, scribe.turn(ANA, message))
        memory = scribe.revision(Scope(), "what all may know", evidence=[message.id])
        await put(store, memory, SPACE)
        seen = [
            await find_record(store, memory.id, grant=read_grant(scope))
            for scope in (Scope(subject="ana"), Scope(subject="bob"))
        ]
        assert [len(record.evidence) for record in seen if isinstance(record, MemoryRecord)] == [1, 0]
        number = await number_of(store, memory.id)
        fetched = await store.read(read_grant(Scope(subject="bob")), lambda r: r.records.fetch([number]))
        assert [record.evidence for record in fetched.values() if isinstance(record, MemoryRecord)] == [()]

    @scenario
    async def test_evidence_out_of_reach_cannot_be_linked(self, store: Store) -> None:
        scribe = Scribe()
        theirs, memory = scribe.message("Bob's"), scribe.revision(Scope(subject="ana"), "a memory")
        await add(store, scribe.turn(BOB, theirs))
        await put(store, memory)
        for unreachable in (theirs.id, MessageId("msg_none"), MessageId(memory.id)):
            with pytest.raises(NotFound):
                await put(store, scribe.revision(Scope(subject="ana"), "no", evidence=[unreachable]))
        assert await texts(store, read_grant(Scope(subject="ana"))) == ["a memory"]

    @scenario
    async def test_counts_cover_exactly_what_the_grant_reaches(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "one", scribe.message("two", vectors=())))
        await add(store, scribe.turn(replace(ANA, conversation="other"), "three"))
        await add(store, scribe.turn(BOB, "four", "five"))
        first = scribe.revision(Scope(subject="ana"), "fact")
        await put(store, first)
        await put(store, scribe.revision(Scope(subject="ana"), "fact, corrected", of=first, supersedes=1))
        counts = await store.read(read_grant(Scope(subject="ana")), lambda r: r.maintenance.counts(EMBEDDER, ANALYZER))
        assert counts == {
            "messages": 3,
            "memories": 1,
            "conversations": 2,
            "pending_vectors": 1,
            "stale_vectors": 0,
            "partitions": 1,
            "tombstones": 0,
            "approximate": 0,
            "users": 0,
            "resources": 0,
        }
        assert (await store.read(read_grant(ANA), lambda r: r.maintenance.counts(EMBEDDER, ANALYZER)))["messages"] == 2
        assert (await store.read(SPACE, lambda r: r.maintenance.counts(EMBEDDER, ANALYZER)))["messages"] == 5
        # For another embedder, everything still has to be embedded, also old revisions, for `as_of`.
        assert (await store.read(SPACE, lambda r: r.maintenance.counts("another", ANALYZER)))["pending_vectors"] == 7

    @scenario
    async def test_what_has_a_vector_that_is_to_be_made_anew_is_told_from_what_has_none(self, store: Store) -> None:
        scribe = Scribe()
        await add(store, scribe.turn(ANA, "one", scribe.message("two", vectors=())))
        await store.write(EVERYTHING, lambda t: t.index.mark_stale())
        counts = await store.read(SPACE, lambda r: r.maintenance.counts(EMBEDDER, ANALYZER))
        assert (counts["pending_vectors"], counts["stale_vectors"]) == (2, 1)
        # For another embedder, a vector by this one does not count.
        counts = await store.read(SPACE, lambda r: r.maintenance.counts("another", ANALYZER))
        assert (counts["pending_vectors"], counts["stale_vectors"]) == (2, 0)
