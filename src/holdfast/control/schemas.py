"""JSON schemas of the control plane, shared by the tools and the HTTP routes.

Scopes are written with the names of their ids (`agent_id`, `session_key`, …). Requests refuse
unknown fields and coerce no types; responses hold no secret and no configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, get_args, get_origin

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, create_model, model_validator

from holdfast.control.json_views import SCOPE_NAMES
from holdfast.control.validation import Scalar
from holdfast.domain.arguments import Argument, Rule, alternate_names
from holdfast.domain.bindings import KEY_PATTERN, MAX_KEY_CHARS
from holdfast.domain.contract import (
    MAX_CONTENT_CHARS,
    MAX_FIELDS,
    MAX_METADATA,
    MAX_NAME_CHARS,
    MAX_OBJECT_FIELDS,
    MAX_SUMMARY_CHARS,
    MAX_TYPE_CHARS,
    HookKind,
    NewRecord,
    RecordHandle,
    SourceKind,
    SourcePayload,
    SourceRef,
)
from holdfast.domain.scope import MAX_PART_CHARS
from holdfast.runtime.verb_entry import Reach, VerbEntry

# The JSON names of our fields, for errors.
_NAMES: Mapping[str, str] = {
    **SCOPE_NAMES,
    "space": "company_id",
    "binding": "binding_key",
    "target_id": "agent_id",
    "handle.record_id": "record_id",
}
_OF_SEVERAL = re.compile(r"handles\[(\d+)\]\.record_id")

Part = Annotated[str, StringConstraints(min_length=1, max_length=MAX_PART_CHARS)]
Key = Annotated[str, StringConstraints(min_length=1, max_length=MAX_KEY_CHARS, pattern=KEY_PATTERN)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME_CHARS)]
RecordId = Name
Filter = Annotated[dict[Name, Scalar], Field(max_length=MAX_METADATA)]
Metadata = Annotated[dict[Name, Any], Field(max_length=MAX_METADATA)]
Config = Annotated[dict[Name, Any], Field(max_length=MAX_FIELDS)]
Hooks = Annotated[dict[Annotated[HookKind, Field(strict=False)], bool], Field(max_length=len(HookKind))]
Content = Annotated[str, StringConstraints(min_length=1, max_length=MAX_CONTENT_CHARS)]


class RequestModel(BaseModel):
    """A request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, data: Any) -> Any:
        """Limit the number of fields: pydantic reports each unknown one, which takes seconds for a hundred thousand."""
        if isinstance(data, dict) and len(data) > MAX_FIELDS:
            raise ValueError(f"has {len(data):,} fields; no request has more than {MAX_FIELDS}")
        return data


def field_names(model: type[BaseModel]) -> set[str]:
    """Return the names of the fields of all requests derived from a model: the names that an error may repeat."""
    return set(model.model_fields).union(*map(field_names, model.__subclasses__()))


class ResponseModel(BaseModel):
    """A response."""

    model_config = ConfigDict(extra="forbid")


class ScopedRequest(RequestModel):
    """A request with a scope in a space's memory, and optionally the binding to use."""

    agent_id: Part | None = Field(default=None, description="The agent whose memory it is.")
    subject_id: Part | None = Field(default=None, description="Whom it is about: a user, a customer, a person.")
    project_id: Part | None = Field(default=None, description="The project it belongs to.")
    issue_id: Part | None = Field(default=None, description="The issue it belongs to.")
    run_id: Part | None = Field(default=None, description="The run it belongs to.")
    session_key: Part | None = Field(default=None, description="The conversation it belongs to.")
    namespace: Part | None = Field(default=None, description="A partition of your own.")
    binding_key: Key | None = Field(
        default=None, description="Use this binding; without it, the agent's, else the space's."
    )

    def where(self) -> dict[str, Any]:
        """Return the parts of the scope as keyword arguments of our calls."""
        return {part: value for part, name in SCOPE_NAMES.items() if (value := getattr(self, name)) is not None}


def json_name(field: str) -> str:
    """Return the JSON name of a field of ours."""
    if found := _OF_SEVERAL.fullmatch(field):
        return f"record_ids[{found.group(1)}]"
    return "record_ids" if field == "handles" else _NAMES.get(field, field)


class SourceRequest(RequestModel):
    """The source of a memory."""

    kind: SourceKind = Field(strict=False)
    issue_id: RecordId | None = None
    comment_id: RecordId | None = None
    document_key: RecordId | None = None
    run_id: RecordId | None = None
    activity_id: RecordId | None = None
    external_ref: RecordId | None = None


class PayloadRequest(RequestModel):
    """The content of an event: a text, a structured object, or both."""

    text: Content | None = None
    mime_type: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TYPE_CHARS)] | None = None
    metadata: Metadata = Field(default_factory=dict)
    object: Annotated[dict[Name, Any], Field(max_length=MAX_OBJECT_FIELDS)] | None = None


class RecordRequest(RequestModel):
    """A fact, preference or decision to store as it is."""

    text: Content
    summary: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SUMMARY_CHARS)] | None = None
    metadata: Metadata = Field(default_factory=dict)


# --- derived requests -------------------------------------------------------------------------------------------------

# Types that are written otherwise in JSON; and dictionaries, by the name of their argument.
_JSON_TYPES: Mapping[Any, Any] = {
    datetime: Annotated[str, StringConstraints(max_length=64)],
    RecordHandle: RecordId,
    SourceRef: SourceRequest,
    SourcePayload: PayloadRequest,
    NewRecord: RecordRequest,
}
_JSON_OBJECTS: Mapping[str, Any] = {
    "metadata": Metadata,
    "metadata_filter": Filter | None,
    "config": Config,
    "hooks": Hooks,
}


def request_model(
    name: str, entry: VerbEntry | None, shown: Mapping[str, tuple[Any, Any]], explained: str | None = None
) -> type[RequestModel]:
    """Return the model of a verb's request with these fields, and those of its scope if it is called in one."""
    base = RequestModel if entry is None or entry.reach is Reach.COMPANY else ScopedRequest
    own: dict[str, Any] = {field: kind for field, kind in shown.items() if field not in base.model_fields}
    return create_model(name, __base__=base, __doc__=explained, **own)


def request_field(argument: Argument, explained: str | None = None) -> tuple[Any, Any]:
    """Return an argument as a field of a model: its type in JSON, and its default, limits and help."""
    kind = json_type_of(argument)
    about: dict[str, Any] = {"description": explained or argument.help or None}
    if isinstance(argument.type, type) and issubclass(argument.type, Enum):
        about["strict"] = False
    if others := alternate_names(argument.name):
        about["validation_alias"] = AliasChoices(argument.name, *others)
    if argument.name == "metadata_filter":
        about["default"] = None
    elif not argument.required:
        about |= {"default_factory": dict} if isinstance(argument.default, dict) else {"default": argument.default}
    return kind | None if argument.optional else kind, Field(**about)


def json_type_of(argument: Argument) -> Any:
    """Return the type of an argument in JSON, with its limits."""
    return _JSON_OBJECTS.get(argument.name) or _with_limits(argument.type, argument.rule, argument.item_rule)


def _with_limits(kind: Any, rule: Rule | None, item_rule: Rule | None = None) -> Any:
    if kind in _JSON_TYPES:
        return _JSON_TYPES[kind]
    limits = {} if rule is None else rule.limits
    if get_origin(kind) in (tuple, frozenset):
        return Annotated[list[_with_limits(get_args(kind)[0], item_rule)], Field(**limits)]  # type: ignore[misc]
    if not limits:
        return kind
    return Annotated[kind, StringConstraints(**limits) if kind is str else Field(**limits)]
