"""Every error that Holdfast raises.

    HoldfastError
    ├── InvalidInput               an argument is invalid; names the field
    │   ├── InvalidCall            also a TypeError: a method has no such argument, or lacks one
    │   │   └── MissingAwait       also an AttributeError: a call was used as its result
    │   ├── InvalidText            empty, too long, or not storable as Unicode
    │   ├── InvalidTimestamp
    │   ├── InvalidScope           also if a forget must name whose conversation it means
    │   ├── InvalidCursor          malformed, or of another query
    │   ├── InvalidDocument        not of its declared type, broken, or too large
    │   ├── InvalidSnapshot        damaged, of another kind, or too large; nothing was imported
    │   ├── InvalidFixture         damaged, of another kind or version; nothing was run
    │   ├── UnknownProvider        no memory provider has that name
    │   └── InvalidConfiguration   does not match the provider's schema
    ├── AccessDenied               the actor may not do this here
    │   ├── Unauthenticated        no key, or an unknown one
    │   └── CapabilityUnavailable  not under this profile, configuration or privacy policy
    ├── NotFound                   no such thing in this scope
    │   └── BindingNotFound        no memory is bound here, or none by that key
    ├── Conflict
    │   ├── IdempotencyConflict    the key was used for another request
    │   ├── DuplicateId            the message id was used for another message
    │   ├── RevisionConflict       it was changed concurrently
    │   ├── AliasNotTrusted        the chat id stands for more than one conversation
    │   ├── PreviewOutdated        the token is of no preview of what would be deleted now
    │   ├── UserExists             the user exists, and this is not its key
    │   ├── BudgetExceeded         the profile allows no more records or bytes
    │   ├── BindingExists          the space already has a binding of that key
    │   └── BindingDisabled        the binding is disabled
    ├── StoreError
    │   ├── StoreBusy              another writer held the store for too long; safe to retry
    │   ├── StoreUnusable          not a store, a directory, unreadable
    │   ├── StoreUnavailable       the server does not answer; safe to retry
    │   ├── OutcomeUnknown         the connection was lost during a write
    │   ├── StoreReadOnly
    │   ├── StoreFull              no space left; nothing was written
    │   ├── StoreCorrupt
    │   ├── StoreClosed
    │   ├── SchemaTooNew           written by a newer Holdfast
    │   └── CopyRefused            the target is not empty, or the source has changed since
    ├── EmbedderError
    │   ├── EmbedderUnavailable    the model did not answer; safe to retry
    │   └── EmbedderMisconfigured
    │       └── EmbedderNotNamed
    ├── ModelError
    │   ├── ModelUnavailable       a model did not answer; safe to retry
    │   └── ModelMisconfigured
    ├── ProviderError
    │   ├── ProviderUnavailable    a memory provider did not answer, or refused
    │   ├── ProviderTimeout        it did not answer in time
    │   ├── ProviderMalformed      its response is invalid
    │   └── ProviderMisconfigured  it cannot be used as it is bound
    ├── DocumentsBusy              too many documents are being read; safe to retry
    ├── LeaseLost                  another worker took the job over; its effects were not committed
    └── ConfigurationError
        ├── ManifestMismatch       the store was made for another profile or backend
        └── SecretUnavailable      a reference to a secret cannot be resolved

A message says what was wrong and what to do next. It never holds a key, a secret or a whole text. `code` is stable,
and follows from the name: a class that is renamed declares its old one. An error about a single argument or field
names it in `field`.
"""

from __future__ import annotations

from typing import ClassVar


class HoldfastError(Exception):
    """The base class of Holdfast's errors. `field` names the argument or field at fault, if there is one.

    `operation_id` is the operation row of the failed call, if the call reached the gate. `public` is the message for
    callers of a service, if the full message is only for its operator.
    """

    code: ClassVar[str] = "holdfast_error"
    field: str | None = None
    operation_id: str | None = None
    public: str | None = None

    def __init_subclass__(cls) -> None:
        """Derive the code from the name: `store_busy` of `StoreBusy`. A class of another module inherits its code."""
        if cls.__module__ == __name__ and "code" not in vars(cls):
            cls.code = "".join(f"_{char.lower()}" if char.isupper() else char for char in cls.__name__)[1:]


class InvalidInput(HoldfastError):
    """An argument is invalid. `field` names it."""

    field: str

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, str]]:
        return type(self), (self.field, self.problem)


class InvalidCall(InvalidInput, TypeError):
    """The arguments do not fit the method: a wrong name, a missing one, or too many. Nothing was called."""


class MissingAwait(InvalidCall, AttributeError):
    """The call of an asynchronous method was used without `await`."""


class InvalidText(InvalidInput):
    """The text is empty, too long, or cannot be stored as Unicode."""


class InvalidTimestamp(InvalidInput):
    """The time is not a valid, unambiguous timestamp."""


class InvalidScope(InvalidInput):
    """A part of the scope is empty, too long, holds control characters, or is missing where a forget needs it."""


class InvalidCursor(InvalidInput):
    """The cursor is malformed, or belongs to another query."""


class InvalidDocument(InvalidInput):
    """The file cannot be read: it is not of its declared type, is broken, or is too large."""


class InvalidSnapshot(InvalidInput):
    """The snapshot is damaged, of another kind or version, or too large. Nothing was imported."""


class InvalidFixture(InvalidInput):
    """The replay fixture or benchmark is damaged, or of another kind or version. Nothing was run."""


class UnknownProvider(InvalidInput):
    """No memory provider of that name is installed here."""


class InvalidConfiguration(InvalidInput):
    """The configuration does not match its provider's schema."""


class AccessDenied(HoldfastError):
    """The actor may not do this here."""


class Unauthenticated(AccessDenied):
    """The caller could not be identified: the key is missing or wrong."""


class CapabilityUnavailable(AccessDenied):
    """The runtime was opened without this capability; the message names the reason."""


class NotFound(HoldfastError):
    """There is no such thing in this scope."""


class BindingNotFound(NotFound):
    """No memory is bound here, or no binding has that key."""

    field = "binding_key"


class Conflict(HoldfastError):
    """The call conflicts with the stored state."""


class IdempotencyConflict(Conflict):
    """The idempotency key was used for a different request."""


class BudgetExceeded(Conflict):
    """The runtime's profile allows no more records, or no more bytes of text. Nothing was written."""


class DuplicateId(Conflict):
    """The message id was used for a different message in this conversation."""


class RevisionConflict(Conflict):
    """The record was changed concurrently."""


class AliasNotTrusted(Conflict):
    """The chat id stands for more than one conversation; give the conversation id."""


class PreviewOutdated(Conflict):
    """The token is of no preview of what the forget would delete now."""


class UserExists(Conflict):
    """The user already exists, and the given key is not its current key."""


class BindingExists(Conflict):
    """The space already has a binding of that key."""

    field = "key"


class BindingDisabled(Conflict):
    """The binding is disabled."""

    field = "binding_key"


class StoreError(HoldfastError):
    """The store failed."""


class StoreBusy(StoreError):
    """Another writer held the store for too long. Nothing was written; it is safe to retry."""


class StoreUnusable(StoreError):
    """There is no usable store at this location."""


class StoreUnavailable(StoreError):
    """The server does not answer. Nothing was written; it is safe to retry."""


class OutcomeUnknown(StoreError):
    """The connection was lost during a write, and its outcome cannot be determined."""


class StoreReadOnly(StoreError):
    """The store cannot be written to."""


class StoreFull(StoreError):
    """No space is left on the disk. Nothing was written."""


class StoreCorrupt(StoreError):
    """The store's file is damaged."""


class StoreClosed(StoreError):
    """The memory was closed."""


class SchemaTooNew(StoreError):
    """The store was written by a newer Holdfast."""


class CopyRefused(StoreError):
    """The copy would destroy data, or could not be complete. Nothing was changed."""


class EmbedderError(HoldfastError):
    """The embedder failed."""


class EmbedderUnavailable(EmbedderError):
    """The embedding model did not answer. It is safe to retry."""


class EmbedderMisconfigured(EmbedderError):
    """The embedder's configuration is invalid."""


class EmbedderNotNamed(EmbedderMisconfigured):
    """The store's vectors were made by a non-default embedder, and none was named."""


class ModelError(HoldfastError):
    """A model failed."""


class ModelUnavailable(ModelError):
    """A model did not answer. It is safe to retry."""


class ModelMisconfigured(ModelError):
    """A model's configuration is invalid."""


class ProviderError(HoldfastError):
    """A memory provider failed."""


class ProviderUnavailable(ProviderError):
    """A memory provider did not answer, or refused."""


class ProviderTimeout(ProviderError):
    """A memory provider did not answer in time. The outcome of the request is unknown."""


class ProviderMalformed(ProviderError):
    """A memory provider returned an invalid response."""


class ProviderMisconfigured(ProviderError):
    """A memory provider cannot be used as it is bound."""


class DocumentsBusy(HoldfastError):
    """Too many documents are being read. Nothing was written; it is safe to retry."""


class LeaseLost(HoldfastError):
    """The job's lease expired and another worker took it over. Nothing was committed."""


class ConfigurationError(HoldfastError):
    """A setting is missing or wrong."""


class ManifestMismatch(ConfigurationError):
    """The store was made for another profile, backend or kind, according to its manifest."""


class SecretUnavailable(ConfigurationError):
    """A reference to a secret cannot be resolved; the call that needs it is refused."""
