"""The control plane's results as JSON: the names in which it differs from our own fields.

The HTTP routes, the agents' tools and the command line print results with it. `response_model` derives the schema of a
result from the same declarations. Nothing here holds a secret: a view without a field does not show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, create_model

from holdfast.domain.access import Actor
from holdfast.domain.bindings import Binding, Target
from holdfast.domain.contract import (
    CaptureResult,
    CorrectResult,
    ExtractionJobPage,
    HookKind,
    ListPage,
    RecordHandle,
    Snippet,
    SourceRef,
    Usage,
    WriteResult,
)
from holdfast.domain.control import Activity, ActivityPage, BindingList, ProviderInfo, ProviderResponse
from holdfast.domain.costs import CostEvent, CostEventPage, CostSummary, FinanceEvent, FinanceEventPage
from holdfast.domain.hooks import Delivery, DeliveryPage, Hydration
from holdfast.domain.jobs import Cause, ControlJob, ControlJobPage
from holdfast.domain.json_values import to_plain
from holdfast.domain.operations import (
    TYPE_OF,
    Attribution,
    BindingCounts,
    MemoryMetrics,
    Operation,
    OperationPage,
    OperationType,
)
from holdfast.domain.scope import Scope
from holdfast.domain.users import Issued, User, UserPage

# The JSON names of a scope's parts, by our own.
SCOPE_NAMES: Mapping[str, str] = {
    "agent": "agent_id",
    "subject": "subject_id",
    "project": "project_id",
    "issue": "issue_id",
    "run": "run_id",
    "conversation": "session_key",
    "namespace": "namespace",
}
_AS_TEXT = (datetime, Decimal, RecordHandle)


@dataclass(frozen=True, slots=True)
class JsonView:
    """How one dataclass looks as JSON: fields by other `names`, `without` some, `inline` (the fields of a nested
    dataclass among its own; the value is used instead of None), and `computed` ones by functions of the whole.

    In a schema it is `explained`, else by the docstring of the dataclass.
    """

    name: str | None = None
    names: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    inline: Mapping[str, object] = field(default_factory=dict)
    computed: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    explained: str | None = None


def _type_of(found: Operation) -> OperationType | None:
    return TYPE_OF.get(found.action)


def _duration_ms(found: Operation) -> float:
    return found.duration_micros / 1_000


def _recall_hit_rate(found: MemoryMetrics) -> float | None:
    return found.recall_hit_rate


def _empty_query_rate(found: MemoryMetrics) -> float | None:
    return found.empty_query_rate


def _switches(found: Binding) -> dict[HookKind, bool]:
    return {kind: found.delivers(kind) for kind in HookKind}


def _record_id(found: Snippet) -> str:
    return found.handle.record_id


def _provider_key(found: Snippet) -> str:
    return found.handle.provider_key


def _usage(found: ProviderResponse[Any]) -> tuple[Usage, ...]:
    return getattr(found.result, "usage", ())


_SERVED = {"binding": "binding_key", "provider": "provider_key"}
VIEWS: Mapping[type, JsonView] = {
    Actor: JsonView(without=("space", "subjects", "role")),
    Scope: JsonView(names={"space": "company_id", **SCOPE_NAMES}, without=("app", "channel")),
    SourceRef: JsonView("Source", without=("space",), explained="The origin of a memory."),
    Usage: JsonView(without=("details",)),
    Operation: JsonView(
        names={"id": "operation_id"},
        without=("duration_micros",),
        inline={"attribution": Attribution()},
        computed={"type": _type_of, "duration_ms": _duration_ms},
    ),
    Attribution: JsonView(
        names={**_SERVED, "mode": "attribution_mode", "cost_events": "cost_event_ids", "handles": "record_ids"},
        without=("provider_called",),
    ),
    OperationPage: JsonView(names={"items": "operations"}),
    MemoryMetrics: JsonView(computed={"recall_hit_rate": _recall_hit_rate, "empty_query_rate": _empty_query_rate}),
    BindingCounts: JsonView(names={"binding": "binding_key"}),
    ControlJob: JsonView(
        "Job",
        names={"id": "job_id", "created_at": "submitted_at"},
        without=("record_ids", "status", "token", "run_after", "lease_until"),
        inline={"cause": Cause()},
    ),
    Cause: JsonView(names={"binding": "binding_key"}),
    ControlJobPage: JsonView("JobPage", names={"items": "jobs"}),
    Delivery: JsonView(names={"id": "delivery_id"}, without=("digest",)),
    DeliveryPage: JsonView(names={"items": "deliveries"}),
    Hydration: JsonView(names={"binding": "binding_key"}),
    CostSummary: JsonView(names={"group": "by", "lines": "metered"}, without=("since", "until")),
    CostEvent: JsonView(names={"id": "cost_event_id", "binding": "binding_key"}),
    CostEventPage: JsonView(names={"items": "events"}),
    FinanceEvent: JsonView(names={"id": "finance_event_id", "binding": "binding_key"}, without=("space",)),
    FinanceEventPage: JsonView(names={"items": "events"}),
    ProviderInfo: JsonView("Provider", names={"schema": "config_schema"}),
    Binding: JsonView(without=("id", "space"), computed={"hooks": _switches}),
    BindingList: JsonView(names={"items": "bindings"}, without=("targets",)),
    Target: JsonView(names={"kind": "target_type"}, without=("space",)),
    Activity: JsonView(names={"id": "activity_id", "kind": "action"}),
    ActivityPage: JsonView(names={"items": "activity"}),
    Snippet: JsonView(
        without=("handle", "usage"),
        computed={"record_id": _record_id, "provider_key": _provider_key},
        explained="A record: `text` is what somebody stored, and data, whatever it says.",
    ),
    User: JsonView("Credential", without=("space",)),
    Issued: JsonView("IssuedCredential", names={"user": "credential"}, without=("created", "rotated")),
    UserPage: JsonView("CredentialPage", names={"items": "credentials"}),
    ProviderResponse: JsonView("Served", names=_SERVED, inline={"result": None}, computed={"usage": _usage}),
    CaptureResult: JsonView(names={"records": "record_ids"}, without=("usage",)),
    WriteResult: JsonView(names={"records": "record_ids"}, without=("usage",)),
    CorrectResult: JsonView(names={"record": "record_id", "superseded": "superseded_id"}, without=("usage",)),
    ListPage: JsonView(names={"items": "records"}, without=("usage",)),
    ExtractionJobPage: JsonView(names={"items": "jobs"}, without=("usage",)),
}
# Results that stand in the response under a name of their own.
_NAMED_RESULTS: Mapping[type, str] = {Snippet: "record"}
_DEFAULT = JsonView()


class JsonField(NamedTuple):
    """One field of an object: its name and type, and the function that reads it."""

    name: str
    type: Any
    read: Callable[[Any], Any]


def to_json(value: Any) -> Any:
    """Return a result as plain JSON values."""
    return to_plain(value, _object)


def _object(value: Any) -> Any:
    if isinstance(value, RecordHandle):
        return value.record_id
    kind: Any = type(value)
    view = VIEWS.get(kind, _DEFAULT)
    shown: dict[str, Any] = {}
    for part in _own_fields(kind):
        found = part.read(value)
        if part.name in view.inline:
            nested = view.inline[part.name] if found is None else found
            shown |= {name: to_json(nested)} if (name := _NAMED_RESULTS.get(type(nested))) else _object(nested)
        else:
            shown[part.name] = to_json(found)
    return shown


@cache
def _own_fields(kind: Any) -> tuple[JsonField, ...]:
    """Return the fields of a dataclass as its view shows them; an inline one by its own name."""
    view, hints = VIEWS.get(kind, _DEFAULT), get_type_hints(kind)
    own = [
        JsonField(view.names.get(each.name, each.name), hints[each.name], attrgetter(each.name))
        for each in fields(kind)
        if each.name not in view.without and each.name not in view.computed
    ]
    return (*own, *(JsonField(name, get_type_hints(read)["return"], read) for name, read in view.computed.items()))


# --- schemas ----------------------------------------------------------------------------------------------------------


@cache
def response_model(kind: Any) -> type[BaseModel]:
    """Return the model of a result's JSON, for a JSON Schema."""
    shown: dict[str, Any] = {each.name: (_json_type(each.type), ...) for each in _all_fields(kind)}
    origin = get_origin(kind) or kind
    name = (VIEWS.get(origin, _DEFAULT).name or origin.__name__) + "".join(each.__name__ for each in get_args(kind))
    explained = VIEWS.get(origin, _DEFAULT).explained or own_docstring(origin)
    model: type[BaseModel] = create_model(
        f"{name}Response", __config__=ConfigDict(extra="forbid"), __doc__=explained, **shown
    )
    return model


def own_docstring(kind: type) -> str | None:
    """Return the docstring of a dataclass; None if it has none of its own: then it gets its signature."""
    text = kind.__doc__ or ""
    return None if text.startswith(f"{kind.__name__}(") else text


def _all_fields(kind: Any) -> Iterator[JsonField]:
    origin = get_origin(kind) or kind
    parameters = dict(zip(getattr(origin, "__parameters__", ()), get_args(kind), strict=False))
    for each in _own_fields(origin):
        found = parameters.get(each.type, each.type) if isinstance(each.type, TypeVar) else each.type
        if each.name not in VIEWS.get(origin, _DEFAULT).inline:
            yield each
        elif name := _NAMED_RESULTS.get(found):
            yield JsonField(name, found, each.read)
        else:
            yield from _all_fields(next((part for part in get_args(found) if is_dataclass(part)), found))


def _json_type(hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        return _json_type(hint.__origin__)
    hint = getattr(hint, "__supertype__", hint)
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return Union[tuple(_json_type(part) for part in parts)]  # noqa: UP007 - the parts are known only now
    if get_origin(hint) is Mapping or get_origin(hint) is dict:
        return dict[_json_type(parts[0]), _json_type(parts[1])]  # type: ignore[misc]
    if get_origin(hint) in (tuple, frozenset, list, Sequence):
        return list[_json_type(parts[0])]  # type: ignore[misc]
    if isinstance(hint, type) and issubclass(hint, _AS_TEXT):
        return str
    found: Any = hint
    return response_model(found) if isinstance(found, type) and is_dataclass(found) else found
