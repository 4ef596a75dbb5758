"""Response schemas for operations, metrics, jobs, deliveries and costs. They contain no memory texts."""

from __future__ import annotations

from holdfast.control.schemas import Answer, HookTold, JobTold, ScopeTold, SnippetTold, SourceTold, UsageTold, to_iso
from holdfast.domain.costs import CostEvent, CostLine, FinanceEvent, FinanceKind, Price
from holdfast.domain.hooks import Delivery, EmittedHook, HookDeliveryStatus, Hydration
from holdfast.domain.operations import TYPE_OF, Attribution, MemoryMetrics, Operation, OperationType, Outcome

# --- operations -----------------------------------------------------------------------------------------------------


class ActorTold(Answer):
    kind: str
    id: str


class OperationTold(Answer):
    """One call: actor, action, scope, binding, source, outcome, duration and usage.

    Outcome `unknown`: an external call is running, or the process died before recording its outcome.
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
    def of(cls, operation: Operation) -> OperationTold:
        about = operation.attribution or Attribution()
        return cls(
            operation_id=operation.id,
            type=TYPE_OF.get(operation.action),
            action=operation.action,
            outcome=operation.outcome,
            error_code=operation.error_code,
            actor=ActorTold(kind=operation.actor.kind, id=operation.actor.id),
            scope=ScopeTold.of(operation.scope),
            binding_key=about.binding,
            provider_key=about.provider,
            source=None if about.source is None else SourceTold.of(about.source),
            hook=None if about.hook is None else HookTold.of(about.hook),
            usage=[UsageTold.of(each) for each in about.usage],
            attribution_mode=about.mode,
            cost_event_ids=list(about.cost_events),
            record_ids=list(about.handles),
            dropped=about.dropped,
            touched=operation.touched,
            started_at=operation.started_at.isoformat(),
            duration_ms=operation.duration_micros / 1_000,
        )


class OperationList(Answer):
    operations: list[OperationTold]
    next_cursor: str | None


class BindingCountsTold(Answer):
    """Outcomes by binding; a null key counts calls without a binding. `unknown` is neither success nor failure."""

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
    def of(cls, metrics: MemoryMetrics) -> MetricsTold:
        return cls(
            recalls=metrics.recalls,
            recall_hits=metrics.recall_hits,
            recall_hit_rate=metrics.recall_hit_rate,
            queries=metrics.queries,
            empty_queries=metrics.empty_queries,
            empty_query_rate=metrics.empty_query_rate,
            corrections=metrics.corrections,
            extraction_failures=metrics.extraction_failures,
            bindings=[
                BindingCountsTold(
                    binding_key=each.binding,
                    succeeded=each.succeeded,
                    failed=each.failed,
                    refused=each.refused,
                    unknown=each.unknown,
                )
                for each in metrics.bindings
            ],
        )


# --- jobs, deliveries -----------------------------------------------------------------------------------------------


class JobList(Answer):
    jobs: list[JobTold]
    next_cursor: str | None


class DeliveryTold(Answer):
    """The delivery of one hook to one target: `binding:<key>` or `subscriber:<name>`."""

    delivery_id: str
    to: str
    binding: str | None
    status: HookDeliveryStatus
    reason: str | None
    attempts: int
    hook: HookTold
    scope: ScopeTold
    source: SourceTold
    operation_id: str | None
    created_at: str
    updated_at: str | None

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryTold:
        return cls(
            delivery_id=delivery.id,
            to=delivery.to,
            binding=delivery.binding,
            status=delivery.status,
            reason=delivery.reason,
            attempts=delivery.attempts,
            hook=HookTold.of(delivery.hook),
            scope=ScopeTold.of(delivery.scope),
            source=SourceTold.of(delivery.source),
            operation_id=delivery.operation_id,
            created_at=delivery.created_at.isoformat(),
            updated_at=to_iso(delivery.updated_at),
        )


class EmittedTold(Answer):
    """The deliveries of a hook: to the binding of its scope and to each subscriber. `repeated`: emitted before."""

    operation_id: str
    repeated: bool
    deliveries: list[DeliveryTold]

    @classmethod
    def of(cls, emitted: EmittedHook) -> EmittedTold:
        return cls(
            operation_id=emitted.operation_id,
            repeated=emitted.repeated,
            deliveries=[DeliveryTold.of(each) for each in emitted.deliveries],
        )


class HydratedTold(Answer):
    """A text for a run's prompt; or an empty text and the reason. Quoted texts are data, not instructions."""

    operation_id: str
    binding_key: str | None
    preamble: str
    reason: str | None
    dropped: int
    snippets: list[SnippetTold]

    @classmethod
    def of(cls, hydrated: Hydration) -> HydratedTold:
        return cls(
            operation_id=hydrated.operation_id,
            binding_key=hydrated.binding,
            preamble=hydrated.preamble,
            reason=hydrated.reason,
            dropped=hydrated.dropped,
            snippets=[SnippetTold.of(each) for each in hydrated.snippets],
        )


class DeliveryList(Answer):
    deliveries: list[DeliveryTold]
    next_cursor: str | None


# --- costs ------------------------------------------------------------------------------------------------------------


class CostLineTold(Answer):
    """Amounts are in millionths of the currency unit. `estimated_micros` is the part estimated from our own prices."""

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
    def of(cls, line: CostLine) -> CostLineTold:
        return cls(**{name: getattr(line, name) for name in cls.model_fields})


class CostSummary(Answer):
    """Cost of calls by the requested group, highest first; and flat fees by provider."""

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
    def of(cls, event: CostEvent) -> CostEventTold:
        return cls(
            cost_event_id=event.id,
            operation_id=event.operation_id,
            binding_key=event.binding,
            scope=ScopeTold.of(event.scope),
            usage=UsageTold.of(event.usage),
            amount_micros=event.amount_micros,
            currency=event.currency,
            estimated=event.estimated,
            occurred_at=event.occurred_at.isoformat(),
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
    def of(cls, event: FinanceEvent) -> FinanceTold:
        return cls(
            finance_event_id=event.id,
            kind=event.kind,
            description=event.description,
            amount_micros=event.amount_micros,
            currency=event.currency,
            binding_key=event.binding,
            provider=event.provider,
            external_invoice_id=event.external_invoice_id,
            estimated=event.estimated,
            occurred_at=event.occurred_at.isoformat(),
        )


class FinanceList(Answer):
    events: list[FinanceTold]
    next_cursor: str | None


class PriceTold(Answer):
    """Price per million tokens of each kind, in millionths of the currency unit. `*` is any model of the provider."""

    provider: str
    model: str
    currency: str
    input_micros: int
    cached_input_micros: int
    output_micros: int
    embedding_micros: int

    @classmethod
    def of(cls, price: Price) -> PriceTold:
        return cls(**{name: getattr(price, name) for name in cls.model_fields})


class PriceList(Answer):
    prices: list[PriceTold]
