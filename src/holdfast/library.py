"""The library: every verb as a method, on the service port. `holdfast.sync` is its blocking facade."""

from __future__ import annotations

from os import PathLike
from types import TracebackType
from typing import Self

from holdfast.domain.resources import UNNAMED, ResourceAdded
from holdfast.errors import InvalidInput
from holdfast.inputs import content_from
from holdfast.loops import run_in_thread
from holdfast.memory_api.verb_methods import MemoryMethods
from holdfast.pending_call import pending_methods
from holdfast.runtime.resources import AddResource


@pending_methods("memory")
class AsyncMemory(MemoryMethods):
    """An asynchronous memory. Every method takes the parts of a scope as keywords: subject, conversation, app, project…

    A given part must match; an omitted one matches anything the caller may see. `add`, `flush` and `forget` of a
    conversation affect one: the named subject's or agent's, or without either the one that belongs to no one.
    """

    @property
    def _sync_safe(self) -> bool:
        """True if adding, remembering and reading need no event loop."""
        return self._service.sync_safe

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def add_resource(
        self,
        content: bytes | str | PathLike[str],
        *,
        name: str | None = None,
        media_type: str | None = None,
        external_uri: str | None = None,
        idempotency_key: str | None = None,
        agent: str | None = None,
        subject: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> ResourceAdded:
        """Add a document: a text, the bytes of a file, or its path. The same file in a scope is stored once.

        It reads text, markdown, HTML, PDF and DOCX. `external_uri` is the origin: an http(s) address or your own name.
        """
        document: tuple[bytes, str | None] | InvalidInput
        try:
            document = await run_in_thread(lambda: content_from(content))
        except InvalidInput as error:
            document = error  # raised inside the gate, so that the refusal leaves an operation row

        def make() -> AddResource:
            if isinstance(document, InvalidInput):
                raise document
            named = document[1] or UNNAMED if name is None else name
            scope = self._scope(space, app, project, agent, subject, channel, conversation, run, issue, namespace)
            return AddResource(scope, named, document[0], media_type, external_uri, idempotency_key)

        return await self._perform(AddResource.action, make)

    async def close(self) -> None:
        """Finish accepted calls, and close the store."""
        await self._service.close()
