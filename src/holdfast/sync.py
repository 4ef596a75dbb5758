"""The blocking facade of the library: every method of `AsyncMemory`, generated from it."""

from __future__ import annotations

from holdfast.domain.call_errors import explain_arguments
from holdfast.library import AsyncMemory
from holdfast.loops import blocking
from holdfast.memory_api.verb_methods import BlockingMemoryMethods


class Memory(BlockingMemoryMethods[AsyncMemory]):
    """A blocking memory, as `holdfast.open` returns it. Methods are those of `AsyncMemory`.

    Every method takes the parts of a scope as keywords: subject, conversation, app, project, …
    """

    _opened_by = 'holdfast.open("memory.db")'
    _opened_async_by = "async with holdfast.open_async(...) as memory"

    add_resource = blocking(AsyncMemory.add_resource)

    def __repr__(self) -> str:
        behind = vars(self).get("_behind")  # missing while it is being opened
        return f"{type(self).__name__}({'' if behind is None else behind._service.origin})"

    @explain_arguments
    def close(self) -> None:
        """Finish accepted calls, and close the store."""
        self._close_behind()
