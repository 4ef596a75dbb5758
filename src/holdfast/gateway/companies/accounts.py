"""What the routes of the trail answer: operations, metrics, jobs, deliveries and costs. Never a text."""

from __future__ import annotations

from holdfast.control.forms import Answer, HookTold, JobTold, ScopeTold, SnippetTold, SourceTold, UsageTold, iso
from holdfast.domain.costs import CostEvent, CostLine, FinanceEvent, FinanceKind, Price
from holdfast.domain.hooks import Delivery, DeliveryStatus, Emitted, Hydrated
from holdfast.domain.operations import TYPE_OF, Attribution, MemoryMetrics, Operation, OperationType, Outcome

# --- operations -----------------------------------------------------------------------------------------------------


class ActorTold(Answer):
    kind: str
    id: str


class OperationTold(Answer):
    """One call: who, what, where, through which binding, why, how it ended, how long, and what it took.

    `unknown`: something outside was asked, and nobody lived to write down what came of it; or it is under way.
    """

    operation_id: str
    type: OperationType | None
    action: str
    outcome: Outcome
    error_code: str | None
    actor: ActorTold
    scope: ScopeTold
    binding_key: str | None
    provider_key: str | None
    source: SourceTold | None
    hook: HookTold | None
    usage: list[UsageTold]
    attribution_mode: str | None
    cost_event_ids: list[str]
    record_ids: list[str]
    dropped: int
    touched: int
    started_at: str
    duration_ms: float

    @classmethod
    def of(cls, found: Operation) -> OperationTold:
        about = found.attribution or Attribution()
        return cls(
            operation_id=found.id,
            type=TYPE_OF.get(found.action),
            action=found.action,
            outcome=found.outcome,
            error_code=found.error_code,
            actor=ActorTold(kind=found.actor.kind, id=found.actor.id),
            scope=ScopeTold.of(found.scope),
            binding_key=about.binding,
            provider_key=about.provider,
            source=None if about.source is None else SourceTold.of(about.source),
            hook=None if about.hook is None else HookTold.of(about.hook),
            usage=[UsageTold.of(each) for each in about.usage],
            attribution_mode=about.mode,
            cost_event_ids=list(about.cost_events),
            record_ids=list(about.handles),
            dropped=about.dropped,
            touched=found.touched,
            started_at=found.started_at.isoformat(),
            duration_ms=found.duration_micros / 1_000,
        )


class OperationList(Answer):
    operations: list[OperationTold]
    next_cursor: str | None


class BindingCountsTold(Answer):
    """Without a key: what was done through no binding. `unknown` counts as neither success nor failure."""

    binding_key: str | None
    succeeded: int
    failed: int
    refused: int
    unknown: int


class MetricsTold(Answer):
    recalls: int
    recall_hits: int
    recall_hit_rate: float | None
    queries: int
    empty_queries: int
    empty_query_rate: float | None
    corrections: int
    extraction_failures: int
    bindings: list[BindingCountsTold]

    @classmethod
    def of(cls, found: MemoryMetrics) -> MetricsTold:
        return cls(
            recalls=found.recalls,
            recall_hits=found.recall_hits,
            recall_hit_rate=found.recall_hit_rate,
            queries=found.queries,
            empty_queries=found.empty_queries,
            empty_query_rate=found.empty_query_rate,
            corrections=found.corrections,
            extraction_failures=found.extraction_failures,
            bindings=[
                BindingCountsTold(
                    binding_key=each.binding,
                    succeeded=each.succeeded,
                    failed=each.failed,
                    refused=each.refused,
                    unknown=each.unknown,
                )
                for each in found.bindings
            ],
        )


# --- jobs, deliveries -----------------------------------------------------------------------------------------------


class JobList(Answer):
    jobs: list[JobTold]
    next_cursor: str | None


class DeliveryTold(Answer):
    """One hook on its way to one place: `binding:<key>`, or `subscriber:<name>`."""

    delivery_id: str
    to: str
    binding: str | None
    status: DeliveryStatus
    reason: str | None
    attempts: int
    hook: HookTold
    scope: ScopeTold
    source: SourceTold
    operation_id: str | None
    created_at: str
    updated_at: str | None

    @classmethod
    def of(cls, found: Delivery) -> DeliveryTold:
        return cls(
            delivery_id=found.id,
            to=found.to,
            binding=found.binding,
            status=found.status,
            reason=found.reason,
            attempts=found.attempts,
            hook=HookTold.of(found.hook),
            scope=ScopeTold.of(found.scope),
            source=SourceTold.of(found.source),
            operation_id=found.operation_id,
            created_at=found.created_at.isoformat(),
            updated_at=iso(found.updated_at),
        )


class EmittedTold(Answer):
    """Where a hook went: to what serves its scope, and to each subscriber. `repeated`: it had been emitted before."""

    operation_id: str
    repeated: bool
    deliveries: list[DeliveryTold]

    @classmethod
    def of(cls, found: Emitted) -> EmittedTold:
        return cls(
            operation_id=found.operation_id,
            repeated=found.repeated,
            deliveries=[DeliveryTold.of(each) for each in found.deliveries],
        )


class HydratedTold(Answer):
    """A text for a run's prompt; or an empty one, and the reason. What it quotes is data."""

    operation_id: str
    binding_key: str | None
    preamble: str
    reason: str | None
    dropped: int
    snippets: list[SnippetTold]

    @classmethod
    def of(cls, found: Hydrated) -> HydratedTold:
        return cls(
            operation_id=found.operation_id,
            binding_key=found.binding,
            preamble=found.preamble,
            reason=found.reason,
            dropped=found.dropped,
            snippets=[SnippetTold.of(each) for each in found.snippets],
        )


class DeliveryList(Answer):
    deliveries: list[DeliveryTold]
    next_cursor: str | None


# --- costs ------------------------------------------------------------------------------------------------------------


class CostLineTold(Answer):
    """Money is in millionths of the currency's unit. `estimated_micros` is what our own prices say of it."""

    name: str | None
    currency: str
    amount_micros: int
    estimated_micros: int
    events: int
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    embedding_tokens: int

    @classmethod
    def of(cls, found: CostLine) -> CostLineTold:
        return cls(**{name: getattr(found, name) for name in cls.model_fields})


class CostSummary(Answer):
    """What calls cost, by what was asked for, dearest first; and flat fees, by provider."""

    by: str
    metered: list[CostLineTold]
    fees: list[CostLineTold]


class CostEventTold(Answer):
    cost_event_id: str
    operation_id: str | None
    binding_key: str | None
    scope: ScopeTold
    usage: UsageTold
    amount_micros: int
    currency: str
    estimated: bool
    occurred_at: str

    @classmethod
    def of(cls, found: CostEvent) -> CostEventTold:
        return cls(
            cost_event_id=found.id,
            operation_id=found.operation_id,
            binding_key=found.binding,
            scope=ScopeTold.of(found.scope),
            usage=UsageTold.of(found.usage),
            amount_micros=found.amount_micros,
            currency=found.currency,
            estimated=found.estimated,
            occurred_at=found.occurred_at.isoformat(),
        )


class CostEventList(Answer):
    events: list[CostEventTold]
    next_cursor: str | None


class FinanceTold(Answer):
    finance_event_id: str
    kind: FinanceKind
    description: str
    amount_micros: int
    currency: str
    binding_key: str | None
    provider: str | None
    external_invoice_id: str | None
    estimated: bool
    occurred_at: str

    @classmethod
    def of(cls, found: FinanceEvent) -> FinanceTold:
        return cls(
            finance_event_id=found.id,
            kind=found.kind,
            description=found.description,
            amount_micros=found.amount_micros,
            currency=found.currency,
            binding_key=found.binding,
            provider=found.provider,
            external_invoice_id=found.external_invoice_id,
            estimated=found.estimated,
            occurred_at=found.occurred_at.isoformat(),
        )


class FinanceList(Answer):
    events: list[FinanceTold]
    next_cursor: str | None


class PriceTold(Answer):
    """Of a million tokens of each kind, in millionths of the currency's unit. `*` is any model of the provider."""

    provider: str
    model: str
    currency: str
    input_micros: int
    cached_input_micros: int
    output_micros: int
    embedding_micros: int

    @classmethod
    def of(cls, found: Price) -> PriceTold:
        return cls(**{name: getattr(found, name) for name in cls.model_fields})


class PriceList(Answer):
    prices: list[PriceTold]
