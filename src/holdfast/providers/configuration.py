"""Base classes of providers: a configuration validated by a pydantic model, with secrets as references.

A configuration is validated when a binding is created. Errors name the field's path and never its value, since someone
may have written a key in place of its reference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from holdfast.domain.contract import Capabilities
from holdfast.domain.secret import Secret
from holdfast.domain.secret_references import MARK, NO_REFERENCE, is_reference
from holdfast.errors import InvalidConfiguration
from holdfast.ports.provider import Adapter, NestedCall


def _reference(value: str) -> str:
    if not is_reference(value):
        raise ValueError(NO_REFERENCE)
    return value


SecretReference = Annotated[str, AfterValidator(_reference), Field(json_schema_extra={MARK: True})]
"""A field that holds `env://NAME` or `file://PATH`; the adapter is opened with the secret itself."""


class Configuration(BaseModel):
    """The schema of a binding's configuration. Unknown fields are refused, and types are not coerced."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class OutsideConfiguration(Configuration):
    """The configuration of an external provider, whose calls have a timeout."""

    timeout_seconds: Annotated[float, Field(ge=0.1, le=60)] = Field(
        default=10.0, description="The timeout of a whole call, in seconds."
    )


C = TypeVar("C", bound=Configuration)


class ConfiguredProvider(ABC, Generic[C]):
    """Implements `ports.Provider` except `opened`. Subclasses set the class variables."""

    key: ClassVar[str]
    description: ClassVar[str]
    capabilities: ClassVar[Capabilities] = Capabilities()
    outside: ClassVar[bool] = True
    configuration: type[C]

    def schema(self) -> Mapping[str, Any]:
        return self.configuration.model_json_schema()

    def check(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._read(config).model_dump(mode="json")

    def open(self, config: Mapping[str, Any], secrets: Mapping[str, Secret], beneath: NestedCall | None) -> Adapter:
        return self.opened(self._read(config), secrets, beneath)

    @abstractmethod
    def opened(self, config: C, secrets: Mapping[str, Secret], beneath: NestedCall | None) -> Adapter:
        """Return an adapter for a configuration. `secrets` are its resolved secrets by path: `key`, `server.key`."""

    def _read(self, config: Mapping[str, Any]) -> C:
        if not isinstance(config, Mapping):
            raise InvalidConfiguration("config", f"expected an object, got {type(config).__name__}")
        try:
            return self.configuration.model_validate(dict(config))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        # Raised outside the except block, because the original error may quote values.
        unknown = first["loc"][-1] if first["type"] == "extra_forbidden" else None
        raise InvalidConfiguration(_path(first["loc"], unknown), _problem(first["type"], first["msg"]))


def _path(location: tuple[int | str, ...], unknown: int | str | None) -> str:
    """Format a path as `config.messages[1].text`. An unknown name is quoted, and cut: it may be a value."""
    found = "config"
    for part in location:
        found += f"[{part!r:.64}]" if isinstance(part, int) or part == unknown else f".{part:.64}"
    return found


def _problem(kind: str, message: str) -> str:
    known = {"extra_forbidden": "is not known to this provider; leave it out", "missing": "is required"}
    plain = message.removeprefix("Value error, ")
    return known.get(kind) or f"{plain[:1].lower()}{plain[1:]}"
