"""Every error that Holdfast raises.

    HoldfastError
    ├── InvalidInput               an argument is invalid; names the field
    │   ├── InvalidText            empty, too long, or not storable as Unicode
    │   ├── InvalidTimestamp
    │   ├── InvalidScope           also if a forget must name whose conversation it means
    │   ├── InvalidCursor          malformed, or of another query
    │   ├── InvalidDocument        not of its declared type, broken, or too large
    │   ├── InvalidSnapshot        damaged, of another kind, or too large; nothing was imported
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
    │   ├── PreviewOutdated        the forget's effect has changed since its preview
    │   ├── UserExists             the user exists, and this is not its key
    │   ├── BindingExists          the company already has a binding of that key
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

A message says what was wrong and what to do next. It never holds a key, a secret or a whole text. `code` is stable.
An error about a single argument or field names it in `field`.
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


class InvalidInput(HoldfastError):
    """An argument is invalid. `field` names it."""

    code: ClassVar[str] = "invalid_input"
    field: str

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem

    def __reduce__(self) -> tuple[type[InvalidInput], tuple[str, str]]:
        return type(self), (self.field, self.problem)


class InvalidText(InvalidInput):
    """The text is empty, too long, or cannot be stored as Unicode."""

    code: ClassVar[str] = "invalid_text"


class InvalidTimestamp(InvalidInput):
    """The time is not a valid, unambiguous timestamp."""

    code: ClassVar[str] = "invalid_timestamp"


class InvalidScope(InvalidInput):
    """A part of the scope is empty, too long, holds control characters, or is missing where a forget needs it."""

    code: ClassVar[str] = "invalid_scope"


class InvalidCursor(InvalidInput):
    """The cursor is malformed, or belongs to another query."""

    code: ClassVar[str] = "invalid_cursor"


class InvalidDocument(InvalidInput):
    """The file cannot be read: it is not of its declared type, is broken, or is too large."""

    code: ClassVar[str] = "invalid_document"


class InvalidSnapshot(InvalidInput):
    """The snapshot is damaged, of another kind or version, or too large. Nothing was imported."""

    code: ClassVar[str] = "invalid_snapshot"


class UnknownProvider(InvalidInput):
    """No memory provider of that name is installed here."""

    code: ClassVar[str] = "unknown_provider"


class InvalidConfiguration(InvalidInput):
    """The configuration does not match its provider's schema."""

    code: ClassVar[str] = "invalid_configuration"


class AccessDenied(HoldfastError):
    """The actor may not do this here."""

    code: ClassVar[str] = "access_denied"


class Unauthenticated(AccessDenied):
    """The caller could not be identified: the key is missing or wrong."""

    code: ClassVar[str] = "unauthenticated"


class CapabilityUnavailable(AccessDenied):
    """The runtime was opened without this capability; the message names the reason."""

    code: ClassVar[str] = "capability_unavailable"


class NotFound(HoldfastError):
    """There is no such thing in this scope."""

    code: ClassVar[str] = "not_found"


class BindingNotFound(NotFound):
    """No memory is bound here, or no binding has that key."""

    code: ClassVar[str] = "binding_not_found"
    field = "binding_key"


class Conflict(HoldfastError):
    """The call conflicts with the stored state."""

    code: ClassVar[str] = "conflict"


class IdempotencyConflict(Conflict):
    """The idempotency key was used for a different request."""

    code: ClassVar[str] = "idempotency_conflict"


class DuplicateId(Conflict):
    """The message id was used for a different message in this conversation."""

    code: ClassVar[str] = "duplicate_id"


class RevisionConflict(Conflict):
    """The record was changed concurrently."""

    code: ClassVar[str] = "revision_conflict"


class AliasNotTrusted(Conflict):
    """The chat id stands for more than one conversation; give the conversation id."""

    code: ClassVar[str] = "alias_not_trusted"


class PreviewOutdated(Conflict):
    """The forget would affect other records than its preview showed."""

    code: ClassVar[str] = "preview_outdated"


class UserExists(Conflict):
    """The user already exists, and the given key is not its current key."""

    code: ClassVar[str] = "user_exists"


class BindingExists(Conflict):
    """The company already has a binding of that key."""

    code: ClassVar[str] = "binding_exists"
    field = "key"


class BindingDisabled(Conflict):
    """The binding is disabled."""

    code: ClassVar[str] = "binding_disabled"
    field = "binding_key"


class StoreError(HoldfastError):
    """The store failed."""

    code: ClassVar[str] = "store_error"


class StoreBusy(StoreError):
    """Another writer held the store for too long. Nothing was written; it is safe to retry."""

    code: ClassVar[str] = "store_busy"


class StoreUnusable(StoreError):
    """There is no usable store at this location."""

    code: ClassVar[str] = "store_unusable"


class StoreUnavailable(StoreError):
    """The server does not answer. Nothing was written; it is safe to retry."""

    code: ClassVar[str] = "store_unavailable"


class OutcomeUnknown(StoreError):
    """The connection was lost during a write, and its outcome cannot be determined."""

    code: ClassVar[str] = "outcome_unknown"


class StoreReadOnly(StoreError):
    """The store cannot be written to."""

    code: ClassVar[str] = "store_read_only"


class StoreFull(StoreError):
    """No space is left on the disk. Nothing was written."""

    code: ClassVar[str] = "store_full"


class StoreCorrupt(StoreError):
    """The store's file is damaged."""

    code: ClassVar[str] = "store_corrupt"


class StoreClosed(StoreError):
    """The memory was closed."""

    code: ClassVar[str] = "store_closed"


class SchemaTooNew(StoreError):
    """The store was written by a newer Holdfast."""

    code: ClassVar[str] = "schema_too_new"


class CopyRefused(StoreError):
    """The copy would destroy data, or could not be complete. Nothing was changed."""

    code: ClassVar[str] = "copy_refused"


class EmbedderError(HoldfastError):
    """The embedder failed."""

    code: ClassVar[str] = "embedder_error"


class EmbedderUnavailable(EmbedderError):
    """The embedding model did not answer. It is safe to retry."""

    code: ClassVar[str] = "embedder_unavailable"


class EmbedderMisconfigured(EmbedderError):
    """The embedder's configuration is invalid."""

    code: ClassVar[str] = "embedder_misconfigured"


class EmbedderNotNamed(EmbedderMisconfigured):
    """The store's vectors were made by a non-default embedder, and none was named."""

    code: ClassVar[str] = "embedder_not_named"


class ModelError(HoldfastError):
    """A model failed."""

    code: ClassVar[str] = "model_error"


class ModelUnavailable(ModelError):
    """A model did not answer. It is safe to retry."""

    code: ClassVar[str] = "model_unavailable"


class ModelMisconfigured(ModelError):
    """A model's configuration is invalid."""

    code: ClassVar[str] = "model_misconfigured"


class ProviderError(HoldfastError):
    """A memory provider failed."""

    code: ClassVar[str] = "provider_error"


class ProviderUnavailable(ProviderError):
    """A memory provider did not answer, or refused."""

    code: ClassVar[str] = "provider_unavailable"


class ProviderTimeout(ProviderError):
    """A memory provider did not answer in time. The outcome of the request is unknown."""

    code: ClassVar[str] = "provider_timeout"


class ProviderMalformed(ProviderError):
    """A memory provider returned an invalid response."""

    code: ClassVar[str] = "provider_malformed"


class ProviderMisconfigured(ProviderError):
    """A memory provider cannot be used as it is bound."""

    code: ClassVar[str] = "provider_misconfigured"


class DocumentsBusy(HoldfastError):
    """Too many documents are being read. Nothing was written; it is safe to retry."""

    code: ClassVar[str] = "documents_busy"


class LeaseLost(HoldfastError):
    """The job's lease expired and another worker took it over. Nothing was committed."""

    code: ClassVar[str] = "lease_lost"


class ConfigurationError(HoldfastError):
    """A setting is missing or wrong."""

    code: ClassVar[str] = "configuration_error"


class ManifestMismatch(ConfigurationError):
    """The store was made for another profile, backend or kind, according to its manifest."""

    code: ClassVar[str] = "manifest_mismatch"


class SecretUnavailable(ConfigurationError):
    """A reference to a secret cannot be resolved; the call that needs it is refused."""

    code: ClassVar[str] = "secret_unavailable"
