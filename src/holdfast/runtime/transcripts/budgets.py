"""Refuse a runtime's writes beyond its profile's budgets of records and blobs. Nothing stored is removed for them."""

from __future__ import annotations

from holdfast.domain.governance import Governance
from holdfast.domain.profile_usage import BudgetUsage, HostedRecords
from holdfast.errors import BudgetExceeded
from holdfast.ports import Reader, Transaction

# Records beyond the counted ones are counted by each write; more of them than this are then added to the counted.
_MAX_UNCOUNTED = 2_000


def measure_usage(reader: Reader, governance: Governance) -> BudgetUsage:
    """Count exactly: this reads the texts of the space."""
    return BudgetUsage.of(reader.maintenance.hosted_records(governance.identity.space, 0), governance.budget)


def require_budget(transaction: Transaction, governance: Governance) -> None:
    """Raise `BudgetExceeded` if what the transaction wrote exceeds a budget; then nothing of it is committed.

    Counts from where the last call stopped. What was forgotten since is noticed when the budget seems to be exceeded.
    """
    counted, space = governance.counted, governance.identity.space
    if counted.found.last_number:
        new = transaction.maintenance.hosted_records(space, counted.found.last_number)
        total = HostedRecords(
            counted.found.records + new.records,
            counted.found.text_bytes + new.text_bytes,
            max(counted.found.last_number, new.last_number),
        )
        if not BudgetUsage.of(total, governance.budget).excess:
            if new.records > _MAX_UNCOUNTED:
                counted.found = total
            return
    exact = transaction.maintenance.hosted_records(space, 0)
    usage = BudgetUsage.of(exact, governance.budget)
    if not usage.excess:
        counted.found = exact
        return
    name = usage.excess[0]
    used, most = (usage.records, usage.max_records) if name == "records" else (usage.blob_bytes, usage.max_blob_bytes)
    raise BudgetExceeded(
        f"{name}: with this write the memory would hold {used:,}, and {governance.profile.name} allows {most:,};"
        " forget something, or raise the budget when you open the runtime"
    )
