"""Forgetting while a space is bound to an external provider.

What our own store keeps goes as ever: records from before the binding, resources, and the payloads of hooks. The answer
names the space's external memories, because the provider API can forget records only by their ids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.control.binding_resolution import require_providers
from holdfast.domain.bindings import Binding
from holdfast.domain.forgetting import ForgetPreview, OutsideMemory
from holdfast.errors import PreviewOutdated, UnknownProvider
from holdfast.ports import Reader
from holdfast.runtime.forget import SHOWN_IDS, Forget, PreviewForget
from holdfast.runtime.gate import Call, Core
from holdfast.runtime.idempotency import digest_of
from holdfast.runtime.resources import DeleteResource

Forgetting = Forget | PreviewForget | DeleteResource


async def forget_here(core: Core, call: Call, binding: Binding, verb: Forgetting) -> Any:
    """Forget in our own store, or preview that. None if the provider of the binding has to forget what is named."""
    if isinstance(verb, DeleteResource):
        return await call.run(verb)
    if not verb.target.ids:
        outside = await call.read(lambda reader: _external_memories(reader, core))
        answer: Any = await call.run(verb)  # a preview or a receipt
        return replace(answer, remaining_outside=outside)
    if not _is_outside(core, binding.provider) or await call.read(lambda reader: _is_ours(reader, verb)):
        return await call.run(verb)
    if isinstance(verb, PreviewForget):
        return _preview_outside(verb)
    if verb.token not in (None, _token(verb.target.ids)):
        raise PreviewOutdated("the token is of another preview; look at a preview of these records first")
    return None


def _is_ours(reader: Reader, verb: Forget | PreviewForget) -> bool:
    """True if any of the ids is, or was, of a record of our own. If others are not, the verb refuses all."""
    planned, ids = reader.records.plan_forget(verb.target), verb.target.ids
    # A forgotten record stays ours, so that a repeated call is recognized.
    ours = {*planned.message_ids, *planned.memory_ids, *reader.records.tombstones(verb.scope.partition, ids)}
    return not ours.isdisjoint(ids)


def _external_memories(reader: Reader, core: Core) -> tuple[OutsideMemory, ...]:
    bindings = sorted(reader.bindings.find_all(), key=lambda each: each.key)
    return tuple(OutsideMemory(each.key, each.provider) for each in bindings if _is_outside(core, each.provider))


def _is_outside(core: Core, provider: str) -> bool:
    try:
        return require_providers(core).get(provider).outside
    except UnknownProvider:
        return True  # our own is always installed


def _preview_outside(verb: PreviewForget) -> ForgetPreview:
    """Preview a forget of a provider's records: exactly those named, as far as they exist there."""
    ids = verb.target.ids
    return ForgetPreview(_token(ids), 0, len(ids), 0, 0, 0, 0, ids=ids[:SHOWN_IDS], truncated=len(ids) > SHOWN_IDS)


def _token(ids: tuple[str, ...]) -> str:
    return f"outside-{digest_of(sorted(ids))}"
