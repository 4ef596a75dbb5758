"""The blocking face of the library: every method of `AsyncMemory`. Nothing is written twice."""

from __future__ import annotations

from holdfast.library import AsyncMemory
from holdfast.portal import Face, at_once, blocking


class Memory(Face[AsyncMemory]):
    """One memory, for code that is not asynchronous. See `AsyncMemory` for what each method does."""

    add = at_once(AsyncMemory.add)
    flush = blocking(AsyncMemory.flush)
    search = at_once(AsyncMemory.search)
    explain = at_once(AsyncMemory.explain)
    recall = at_once(AsyncMemory.recall)
    get = at_once(AsyncMemory.get)
    list = at_once(AsyncMemory.list)
    browse = at_once(AsyncMemory.browse)
    history = at_once(AsyncMemory.history)
    remember = at_once(AsyncMemory.remember)
    correct = at_once(AsyncMemory.correct)
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
        """Finish what was accepted, and let go of the store."""
        self._end()
