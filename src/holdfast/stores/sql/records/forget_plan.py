"""Plan a forget: targets and memories derived only from them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from holdfast.domain.forgetting import ForgetTarget
from holdfast.ports import ForgetPlan
from holdfast.stores.sql import rows
from holdfast.stores.sql.deliveries import SqlDeliveryReader
from holdfast.stores.sql.grant_scope import SqlRepository
from holdfast.stores.sql.proposals import proposals_of_subject, proposals_resting_on
from holdfast.stores.sql.resources import SqlResourceReader
from holdfast.stores.sql.tools import SqlToolReader

_RESTING_ON = (
    "SELECT DISTINCT r.number, r.id, r.superseded_at IS NULL FROM evidence e"
    " JOIN records r ON r.number = e.memory_number"
)


# A memory that replaced a message rests on it since its first revision, and was recorded when the message was
# superseded. Other memories may rest on the same message without replacing it.
TOOK_PLACE = (
    "evidence e JOIN records r ON r.number = e.memory_number AND r.revision = 1"
    " JOIN records said ON said.number = e.message_number AND said.superseded_at = r.recorded_at"
)


class ForgetPlanner(SqlRepository):
    def plan(self, target: ForgetTarget) -> ForgetPlan:
        named = self._find_named(target)
        messages = {number: record_id for number, record_id, kind in named if kind == rows.MESSAGE}
        memories = {record_id for _, record_id, kind in named if kind == rows.MEMORY}
        derived, baseless, weakened = self._find_derived(messages, memories)
        while replaced := self._find_replaced([*memories, *derived], messages):
            messages |= replaced
            derived, baseless, weakened = self._find_derived(messages, memories)
        count, first = self._revisions_of([*memories, *derived])
        revisions = count + len(baseless)
        conversations = {row[0] for row in self._conversations_of(list(messages)) if row[0] is not None}
        resources = SqlResourceReader(self._scope).plan_forget(target)
        proposals = self._find_proposals(target, [*messages.values(), *memories, *derived, *resources])
        tools, words = SqlToolReader(self._scope).plan_forget(target)
        numbers = [*messages, *baseless, *first, *proposals, *words]
        numbers += SqlResourceReader(self._scope).numbers_of(resources)
        deliveries = SqlDeliveryReader(self._scope).plan_forget(target)
        everything = sorted(
            [*messages.values(), *memories, *derived, *resources, *deliveries, *map(str, proposals), *tools]
        )
        return ForgetPlan(
            fingerprint=hashlib.sha256("\n".join([*everything, str(revisions)]).encode()).hexdigest()[:32],
            message_ids=tuple(sorted(messages.values())),
            memory_ids=tuple(sorted(memories)),
            revisions=revisions,
            derived_ids=tuple(sorted(derived)),
            weakened=weakened,
            conversations=len(conversations),
            baseless=tuple(sorted(baseless)),
            resource_ids=tuple(resources),
            delivery_ids=tuple(deliveries),
            proposals=tuple(proposals),
            tool_entries=tuple(tools),
            first_number=min(numbers, default=None),
        )

    def _find_proposals(self, target: ForgetTarget, record_ids: Sequence[str]) -> list[int]:
        resting = proposals_resting_on(self._scope, record_ids)
        subject = None if target.conversation is not None else target.subject
        of_subject = [] if subject is None else proposals_of_subject(self._scope, subject)
        return sorted({*resting, *of_subject})

    def _find_named(self, target: ForgetTarget) -> list[tuple[int, str, int]]:
        """Return (number, id, kind) of the records that the target names."""
        within, values = self._scope.within(keyed=bool(target.ids))
        select = f"SELECT r.number, r.id, r.kind FROM records r JOIN scopes s ON s.id = r.scope_id WHERE {within}"
        if target.ids:
            return self._scope.rows_among("r.id", target.ids, f"{select} AND {{}}", before=values)
        if target.conversation:
            return self._db.execute(f"{select} AND s.conversation = ?", [*values, target.conversation]).fetchall()
        if target.source:
            return self._db.execute(f"{select} AND r.source_key = ?", [*values, rows.key_of(target.source)]).fetchall()
        return self._db.execute(f"{select} AND s.subject = ?", [*values, target.subject]).fetchall()

    def _find_derived(self, messages: dict[int, str], memories: set[str]) -> tuple[set[str], set[int], int]:
        """Find what rests only on those messages: memories, by id, and older revisions of other memories, by number.

        Also count the memories that only lose a link or an older revision. A grant to forget a message covers what was
        learned from it, anywhere in the space.
        """
        space, values = self._scope.in_space()
        touched: dict[int, tuple[str, bool]] = {}
        statement = f"{_RESTING_ON} WHERE {{}} AND {space}"
        found = self._scope.rows_among("e.message_number", list(messages), statement, values)
        for number, record_id, current in found:
            if record_id not in memories:
                touched[number] = (record_id, bool(current))
        evidence = self._evidence_of(list(touched))
        baseless = {number for number in touched if evidence[number] <= messages.keys()}
        gone = {touched[number][0] for number in baseless if touched[number][1]}
        older = {number for number in baseless if touched[number][0] not in gone}
        return gone, older, len({record_id for record_id, _ in touched.values()} - gone)

    def _find_replaced(self, memory_ids: Sequence[str], known: dict[int, str]) -> dict[int, str]:
        """Return the messages that those memories replaced, except `known`.

        They are forgotten with the memory: corrected text must neither return to search nor stay hidden.
        """
        space, values = self._scope.in_space()
        statement = f"SELECT said.number, said.id FROM {TOOK_PLACE} WHERE {{}} AND {space}"
        found = self._scope.rows_among("r.id", memory_ids, statement, values)
        return {number: record_id for number, record_id in found if number not in known}

    def _evidence_of(self, revisions: Sequence[int]) -> dict[int, set[int]]:
        linked: dict[int, set[int]] = {number: set() for number in revisions}
        statement = "SELECT memory_number, message_number FROM evidence WHERE {}"
        for memory, message in self._scope.rows_among("memory_number", revisions, statement):
            linked[memory].add(message)
        return linked

    def _revisions_of(self, memory_ids: Sequence[str]) -> tuple[int, list[int]]:
        """Return how many revisions they have, and numbers of which one is the lowest."""
        found = self._scope.rows_among("id", memory_ids, "SELECT count(*), min(number) FROM records WHERE {}")
        return sum(int(count) for count, _ in found), [int(number) for _, number in found if number is not None]

    def _conversations_of(self, numbers: Sequence[int]) -> list[Any]:
        return self._scope.rows_among("number", numbers, "SELECT DISTINCT conversation_id FROM records WHERE {}")
