"""The blocking facade of the library: every method of `AsyncMemory`, generated from it."""

from __future__ import annotations

from holdfast.library import AsyncMemory
from holdfast.loops import BlockingFacade, blocking, inline


class Memory(BlockingFacade[AsyncMemory]):
    """A blocking memory, as `holdfast.open` returns it. Methods are those of `AsyncMemory`.

    Every method takes the parts of a scope as keywords: subject, conversation, app, project, …
    """

    add = inline(AsyncMemory.add)
    flush = blocking(AsyncMemory.flush)
    search = inline(AsyncMemory.search)
    explain = inline(AsyncMemory.explain)
    recall = inline(AsyncMemory.recall)
    get = inline(AsyncMemory.get)
    list = inline(AsyncMemory.list)
    browse = inline(AsyncMemory.browse)
    history = inline(AsyncMemory.history)
    remember = inline(AsyncMemory.remember)
    correct = inline(AsyncMemory.correct)
    forget_preview = blocking(AsyncMemory.forget_preview)
    forget = blocking(AsyncMemory.forget)
    add_resource = blocking(AsyncMemory.add_resource)
    resources = blocking(AsyncMemory.resources)
    resource = blocking(AsyncMemory.resource)
    delete_resource = blocking(AsyncMemory.delete_resource)
    create_user = blocking(AsyncMemory.create_user)
    rotate_user = blocking(AsyncMemory.rotate_user)
    revoke_user = blocking(AsyncMemory.revoke_user)
    users = blocking(AsyncMemory.users)
    jobs = blocking(AsyncMemory.jobs)
    stats = blocking(AsyncMemory.stats)
    verify = blocking(AsyncMemory.verify)
    rebuild = blocking(AsyncMemory.rebuild)
    drain = blocking(AsyncMemory.drain)

    def close(self) -> None:
        """Finish accepted calls, and close the store."""
        self._close_behind()
