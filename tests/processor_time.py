"""A limit on the processor time of one input, which holds on a busy machine too."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

MOST_SECONDS = 0.05
# A collection of garbage falls on one attempt, not on each.
_ATTEMPTS = 4


async def within_limit(handle: Callable[[], Awaitable[object]]) -> bool:
    """Handle an input, again if it took too much; True if one attempt kept within the limit."""
    for _ in range(_ATTEMPTS):
        before = time.process_time()
        await handle()
        if time.process_time() - before <= MOST_SECONDS:
            return True
    return False
