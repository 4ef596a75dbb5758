"""The verbs for which a model is asked, unless a setting names them: a fact of the store, recorded when it is created.

A store from before `flush` asked a model has no such fact: there only `maintain` asks one, so that an upgrade sends no
texts anywhere that stayed here before.
"""

from __future__ import annotations

from holdfast.domain.access import storewide_grant
from holdfast.ports import Store, Transaction

FLUSH, MAINTAIN = "flush", "maintain"
_FACT = "model_verbs"
_OF_NEW_STORES = f"{FLUSH},{MAINTAIN}"


def record_model_verbs(transaction: Transaction) -> None:
    """Record the fact in a new store."""
    transaction.maintenance.put_fact(_FACT, _OF_NEW_STORES)


async def read_model_verbs(store: Store) -> frozenset[str]:
    found = await store.read(storewide_grant(), lambda reader: reader.maintenance.fact(_FACT))
    return frozenset((found or MAINTAIN).split(","))
