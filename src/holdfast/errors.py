"""Every error that Holdfast raises.

    HoldfastError
    ├── InvalidInput               what was given cannot be used; names the field
    │   ├── InvalidText            empty, too long, or not storable as Unicode
    │   ├── InvalidTimestamp
    │   ├── InvalidScope           also one that does not say whose conversation is to be forgotten
    │   ├── InvalidCursor          malformed, or of another query
    │   ├── InvalidDocument        not the file that it says, broken, or too large
    │   ├── InvalidSnapshot        damaged, of another kind, or too large; nothing was imported
    │   ├── UnknownProvider        no provider of memory has that name
    │   └── InvalidConfiguration   not what the provider's own schema asks for
    ├── AccessDenied               the actor may not do this here
    │   ├── Unauthenticated        no key, or one that is not known
    │   └── CapabilityUnavailable  not under this profile, configuration or privacy policy
    ├── NotFound                   no such thing in this scope
    │   └── BindingNotFound        no memory is bound here, or none by that key
    ├── Conflict
    │   ├── IdempotencyConflict    the key was used for something else
    │   ├── DuplicateId            the message id was used for another message
    │   ├── RevisionConflict       somebody changed it meanwhile
    │   ├── AliasNotTrusted        the chat id stands for more than one conversation
    │   ├── PreviewOutdated        what a forget would touch has changed since its preview
    │   ├── UserExists             there is such a user, and this is not its key
    │   ├── BindingExists          the company has a binding of that key
    │   └── BindingDisabled        the binding is switched off
    ├── StoreError
    │   ├── StoreBusy              another writer held the store for too long; safe to try again
    │   ├── StoreUnusable          not a store, a directory, unreadable
    │   ├── StoreUnavailable       the server does not answer; safe to try again
    │   ├── OutcomeUnknown         the connection was lost while a write was under way
    │   ├── StoreReadOnly
    │   ├── StoreFull              no space left; nothing was written
    │   ├── StoreCorrupt
    │   ├── StoreClosed
    │   ├── SchemaTooNew           written by a newer Holdfast
    │   └── CopyRefused            the target holds something, or the source has changed since
    ├── EmbedderError
    │   ├── EmbedderUnavailable    the model did not answer; safe to try again
    │   └── EmbedderMisconfigured
    │       └── EmbedderNotNamed
    ├── ModelError
    │   ├── ModelUnavailable       a model did not answer; safe to try again
    │   └── ModelMisconfigured
    ├── ProviderError
    │   ├── ProviderUnavailable    a provider of memory did not answer, or refused
    │   ├── ProviderTimeout        it did not answer in time
    │   ├── ProviderMalformed      what it answered cannot be understood
    │   └── ProviderMisconfigured  it cannot be used as it is bound
    ├── DocumentsBusy              too many documents are being read; safe to try again
    ├── LeaseLost                  a worker's job was taken over; its effects were not committed
    └── ConfigurationError
        ├── ManifestMismatch       the store was made for another profile or backend
        └── SecretUnavailable      a reference to a secret cannot be resolved

A message says what was wrong and what to do next. It never holds a key, a secret or a whole text. `code` is stable.
What is about one field of what was given names it as `field`.
"""

from __future__ import annotations

from typing import ClassVar


class HoldfastError(Exception):
    """The root of all of Holdfast's errors. `field` names what it is about, if that is one field of what was given.

    `operation_id` is of the call that it ended, if that came as far as the gate: the trail has its row. `public` is
    what whoever calls a service may be told of it, where the text itself is for whoever runs one.
    """

    code: ClassVar[str] = "holdfast_error"
    field: str | None = None
    operation_id: str | None = None
    public: str | None = None


class InvalidInput(HoldfastError):
    """What was given cannot be used. `field` names it."""

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
    """The time cannot be read as one moment."""

    code: ClassVar[str] = "invalid_timestamp"


class InvalidScope(InvalidInput):
    """A part of the scope is empty, too long, holds control characters, or is wanted: whose conversation is meant."""

    code: ClassVar[str] = "invalid_scope"


class InvalidCursor(InvalidInput):
    """The cursor is malformed, or belongs to another query."""

    code: ClassVar[str] = "invalid_cursor"


class InvalidDocument(InvalidInput):
    """The file cannot be read: it is not of its type, is broken, or is too large."""

    code: ClassVar[str] = "invalid_document"


class InvalidSnapshot(InvalidInput):
    """The snapshot is damaged, of another kind or version, or too large. Nothing was imported."""

    code: ClassVar[str] = "invalid_snapshot"


class UnknownProvider(InvalidInput):
    """There is no provider of memory by that name here."""

    code: ClassVar[str] = "unknown_provider"


class InvalidConfiguration(InvalidInput):
    """The configuration is not what its provider's schema asks for."""

    code: ClassVar[str] = "invalid_configuration"


class AccessDenied(HoldfastError):
    """The actor may not do this here."""

    code: ClassVar[str] = "access_denied"


class Unauthenticated(AccessDenied):
    """Who is calling is not known: there is no key, or not the right one."""

    code: ClassVar[str] = "unauthenticated"


class CapabilityUnavailable(AccessDenied):
    """The runtime cannot do this as it was opened; the message names what keeps it from it."""

    code: ClassVar[str] = "capability_unavailable"


class NotFound(HoldfastError):
    """There is no such thing in this scope."""

    code: ClassVar[str] = "not_found"


class BindingNotFound(NotFound):
    """No memory is bound here, or there is no binding of that key."""

    code: ClassVar[str] = "binding_not_found"
    field = "binding_key"


class Conflict(HoldfastError):
    """The call contradicts what is already stored."""

    code: ClassVar[str] = "conflict"


class IdempotencyConflict(Conflict):
    """The idempotency key was used for a different request."""

    code: ClassVar[str] = "idempotency_conflict"


class DuplicateId(Conflict):
    """The message id was used for a different message of this conversation."""

    code: ClassVar[str] = "duplicate_id"


class RevisionConflict(Conflict):
    """The memory was changed meanwhile."""

    code: ClassVar[str] = "revision_conflict"


class AliasNotTrusted(Conflict):
    """The chat id has stood for more than one conversation; say which one by its conversation id."""

    code: ClassVar[str] = "alias_not_trusted"


class PreviewOutdated(Conflict):
    """What the forget would touch has changed since its preview."""

    code: ClassVar[str] = "preview_outdated"


class UserExists(Conflict):
    """There is a user of this id, and the key that was given is not its current one."""

    code: ClassVar[str] = "user_exists"


class BindingExists(Conflict):
    """The company has a binding of that key already."""

    code: ClassVar[str] = "binding_exists"
    field = "key"


class BindingDisabled(Conflict):
    """The binding is switched off."""

    code: ClassVar[str] = "binding_disabled"
    field = "binding_key"


class StoreError(HoldfastError):
    """The store could not do its work."""

    code: ClassVar[str] = "store_error"


class StoreBusy(StoreError):
    """Another writer held the store for too long. Nothing was written; trying again is safe."""

    code: ClassVar[str] = "store_busy"


class StoreUnusable(StoreError):
    """There is no usable store at this place."""

    code: ClassVar[str] = "store_unusable"


class StoreUnavailable(StoreError):
    """The server does not answer. Nothing was written; trying again is safe."""

    code: ClassVar[str] = "store_unavailable"


class OutcomeUnknown(StoreError):
    """The connection was lost while a write was under way, and whether it was done cannot be found out."""

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
    """The copy would destroy something, or could not be whole. Nothing was changed."""

    code: ClassVar[str] = "copy_refused"


class EmbedderError(HoldfastError):
    """The embedder could not do its work."""

    code: ClassVar[str] = "embedder_error"


class EmbedderUnavailable(EmbedderError):
    """The embedding model did not answer. Trying again is safe."""

    code: ClassVar[str] = "embedder_unavailable"


class EmbedderMisconfigured(EmbedderError):
    """The embedder cannot work as it is configured."""

    code: ClassVar[str] = "embedder_misconfigured"


class EmbedderNotNamed(EmbedderMisconfigured):
    """The vectors of the store were made by an embedder that somebody chose, and nobody chose one now."""

    code: ClassVar[str] = "embedder_not_named"


class ModelError(HoldfastError):
    """A model could not do its work."""

    code: ClassVar[str] = "model_error"


class ModelUnavailable(ModelError):
    """A model did not answer. Trying again is safe."""

    code: ClassVar[str] = "model_unavailable"


class ModelMisconfigured(ModelError):
    """A model cannot be used as it is configured."""

    code: ClassVar[str] = "model_misconfigured"


class ProviderError(HoldfastError):
    """A provider of memory could not do its work."""

    code: ClassVar[str] = "provider_error"


class ProviderUnavailable(ProviderError):
    """A provider of memory did not answer, or refused."""

    code: ClassVar[str] = "provider_unavailable"


class ProviderTimeout(ProviderError):
    """A provider of memory did not answer in time. Whether it did what was asked is not known."""

    code: ClassVar[str] = "provider_timeout"


class ProviderMalformed(ProviderError):
    """What a provider of memory answered cannot be understood."""

    code: ClassVar[str] = "provider_malformed"


class ProviderMisconfigured(ProviderError):
    """A provider of memory cannot be used as it is bound."""

    code: ClassVar[str] = "provider_misconfigured"


class DocumentsBusy(HoldfastError):
    """Too many documents are being read. Nothing was written; trying again is safe."""

    code: ClassVar[str] = "documents_busy"


class LeaseLost(HoldfastError):
    """The job's lease ran out and another worker took it over. Nothing was committed."""

    code: ClassVar[str] = "lease_lost"


class ConfigurationError(HoldfastError):
    """A setting is missing or wrong."""

    code: ClassVar[str] = "configuration_error"


class ManifestMismatch(ConfigurationError):
    """The store's manifest says that it was made for another profile, backend or kind."""

    code: ClassVar[str] = "manifest_mismatch"


class SecretUnavailable(ConfigurationError):
    """A reference to a secret cannot be resolved; what needs it is refused."""

    code: ClassVar[str] = "secret_unavailable"
