"""The blocking facade of the library: every method of `AsyncMemory`, generated from it."""

from __future__ import annotations

from holdfast.library import AsyncMemory
from holdfast.loops import blocking
from holdfast.memory_api.verb_methods import BlockingMemoryMethods


class Memory(BlockingMemoryMethods[AsyncMemory]):
    """A blocking memory, as `holdfast.open` returns it. Methods are those of `AsyncMemory`.

    Every method takes the parts of a scope as keywords: subject, conversation, app, project, …
    """

    add_resource = blocking(AsyncMemory.add_resource)

    def close(self) -> None:
        """Finish accepted calls, and close the store."""
        self._close_behind()
