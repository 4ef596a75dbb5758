"""Every verb of `control/verbs.py` as a method. Written by `make generate`; do not edit."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.control.costs import (
    AddFinanceEvent,
    ListCostEvents,
    ListFinanceEvents,
    ListPrices,
    RemovePrice,
    SetPrice,
    SummarizeCosts,
)
from holdfast.control.deliveries import DropDelivery, GetDelivery, ListDeliveries, RetryDelivery
from holdfast.control.jobs import CancelJob, GetJob, ListControlJobs, RetryJob
from holdfast.control.operations import GetMetrics, GetOperation, ListOperations
from holdfast.control_api.base_calls import ControlCalls
from holdfast.domain.access import Action
from holdfast.domain.contract import HookKind, SourceKind
from holdfast.domain.costs import (
    CostEventPage,
    CostGroup,
    CostSummary,
    FinanceEvent,
    FinanceEventPage,
    FinanceKind,
    Price,
)
from holdfast.domain.hooks import Delivery, DeliveryFilter, DeliveryPage, HookDeliveryStatus
from holdfast.domain.jobs import ControlJob, ControlJobPage, JobFilter, JobKind, JobState
from holdfast.domain.operations import MemoryMetrics, Operation, OperationFilter, OperationPage, OperationType, Outcome
from holdfast.inputs import Moment, moment_from, optional_enums_from, optional_parse_enum, parse_enum


class VerbMethods(ControlCalls):
    """The verbs of a company's control plane."""

    async def operations(
        self,
        *,
        agent: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        binding_key: str | None = None,
        source_kind: SourceKind | str | None = None,
        type: OperationType | str | None = None,  # noqa: A002
        action: Action | str | None = None,
        outcome: Outcome | str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        of_memory: bool = False,
        cursor: str | None = None,
        limit: int = 50,
    ) -> OperationPage:
        """List operations, newest first. All given filters must match.

        agent: Of this agent.
        project: In this project.
        issue: In this issue.
        run: In this run.
        binding_key: Through this binding.
        source_kind: Of this kind of source, such as run.
        type: Of this type, such as query.
        action: The exact action, such as recall.
        outcome: Which ended so.
        since: From this time on.
        until: Before this time.
        of_memory: Leave out administration: reads of the log, and changes of the configuration.
        cursor: The `next_cursor` of the previous page.
        limit: At most so many.
        """
        return await self._perform(
            ListOperations.action,
            lambda: ListOperations(
                scope=self._company(),
                filter=OperationFilter(
                    agent=agent,
                    project=project,
                    issue=issue,
                    run=run,
                    binding=binding_key,
                    source_kind=optional_parse_enum(SourceKind, source_kind, "source_kind"),
                    type=optional_parse_enum(OperationType, type, "type"),
                    action=optional_parse_enum(Action, action, "action"),
                    outcome=optional_parse_enum(Outcome, outcome, "outcome"),
                    since=moment_from(since, "since"),
                    until=moment_from(until, "until"),
                    of_memory=of_memory,
                ),
                cursor=cursor,
                limit=limit,
            ),
        )

    async def operation(
        self,
        operation_id: str,
    ) -> Operation:
        """Get one operation, with its source, usage and costs."""
        return await self._perform(
            GetOperation.action, lambda: GetOperation(scope=self._company(), operation_id=operation_id)
        )

    async def metrics(
        self,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> MemoryMetrics:
        """Summarize how well memory served: recall hits, empty queries, corrections, failures, counts per binding.

        since: From this time on.
        until: Before this time.
        """
        return await self._perform(
            GetMetrics.action,
            lambda: GetMetrics(
                scope=self._company(), since=moment_from(since, "since"), until=moment_from(until, "until")
            ),
        )

    async def jobs(
        self,
        *,
        state: JobState | str | None = None,
        kinds: str | Iterable[str] | None = None,
        binding_key: str | None = None,
        agent: str | None = None,
        project: str | None = None,
        issue: str | None = None,
        run: str | None = None,
        hook: HookKind | str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        cursor: str | None = None,
        limit: int = 50,
        subject: str | None = None,
        conversation: str | None = None,
        namespace: str | None = None,
        app: str | None = None,
        channel: str | None = None,
        space: str | None = None,
    ) -> ControlJobPage:
        """List background jobs, one row per attempt, newest first. All given filters must match.

        state: In this state; stuck: still running, but its lease has expired.
        kinds: Of these kinds, such as extract or deliver.
        binding_key: Through this binding.
        agent: Of this agent.
        project: In this project.
        issue: In this issue.
        run: In this run.
        hook: Triggered by this hook.
        since: From this time on.
        until: Before this time.
        cursor: The `next_cursor` of the previous page.
        limit: At most so many.
        """
        return await self._perform(
            ListControlJobs.action,
            lambda: ListControlJobs(
                scope=self._visible_scope(
                    {
                        "agent": agent,
                        "subject": subject,
                        "project": project,
                        "issue": issue,
                        "run": run,
                        "conversation": conversation,
                        "namespace": namespace,
                        "app": app,
                        "channel": channel,
                        "space": space,
                    }
                ),
                filter=JobFilter(
                    state=optional_parse_enum(JobState, state, "state"),
                    kinds=optional_enums_from(JobKind, kinds, "kinds"),
                    binding=binding_key,
                    agent=agent,
                    project=project,
                    issue=issue,
                    run=run,
                    hook=optional_parse_enum(HookKind, hook, "hook"),
                    since=moment_from(since, "since"),
                    until=moment_from(until, "until"),
                ),
                cursor=cursor,
                limit=limit,
            ),
        )

    async def job(
        self,
        job_id: str,
        *,
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
    ) -> ControlJob:
        """Get one job attempt, with its cause and progress. `retry_of` is the previous attempt."""
        return await self._perform(
            GetJob.action,
            lambda: GetJob(
                scope=self._visible_scope(
                    {
                        "agent": agent,
                        "subject": subject,
                        "project": project,
                        "issue": issue,
                        "run": run,
                        "conversation": conversation,
                        "namespace": namespace,
                        "app": app,
                        "channel": channel,
                        "space": space,
                    }
                ),
                job_id=job_id,
            ),
        )

    async def retry_job(
        self,
        job_id: str,
    ) -> ControlJob:
        """Queue a new attempt of a failed or cancelled job, due at once. Its delivery, if any, is pending again."""
        return await self._perform(RetryJob.action, lambda: RetryJob(scope=self._company(), job_id=job_id))

    async def cancel_job(
        self,
        job_id: str,
    ) -> ControlJob:
        """Cancel a job; a running worker can no longer commit it. Its delivery, if any, is dead and can be retried."""
        return await self._perform(CancelJob.action, lambda: CancelJob(scope=self._company(), job_id=job_id))

    async def deliveries(
        self,
        *,
        status: HookDeliveryStatus | str | None = None,
        kind: HookKind | str | None = None,
        to: str | None = None,
        source_kind: SourceKind | str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> DeliveryPage:
        """List hook deliveries, newest first, one per destination. Retry or drop the dead ones.

        status: In this status.
        kind: Of this kind of hook.
        to: To binding:KEY or subscriber:NAME.
        source_kind: From this kind of source.
        cursor: The `next_cursor` of the previous page.
        limit: At most so many.
        """
        return await self._perform(
            ListDeliveries.action,
            lambda: ListDeliveries(
                scope=self._company(),
                filter=DeliveryFilter(
                    status=optional_parse_enum(HookDeliveryStatus, status, "status"),
                    kind=optional_parse_enum(HookKind, kind, "kind"),
                    to=to,
                    source_kind=optional_parse_enum(SourceKind, source_kind, "source_kind"),
                ),
                cursor=cursor,
                limit=limit,
            ),
        )

    async def delivery(
        self,
        delivery_id: str,
    ) -> Delivery:
        """Get one delivery: its hook, destination and last result."""
        return await self._perform(
            GetDelivery.action, lambda: GetDelivery(scope=self._company(), delivery_id=delivery_id)
        )

    async def retry_delivery(
        self,
        delivery_id: str,
    ) -> Delivery:
        """Retry a dead delivery with a new job, which has all its attempts again."""
        return await self._perform(
            RetryDelivery.action, lambda: RetryDelivery(scope=self._company(), delivery_id=delivery_id)
        )

    async def drop_delivery(
        self,
        delivery_id: str,
    ) -> Delivery:
        """Drop a dead or pending delivery. Its payload is deleted at once, and its job is cancelled."""
        return await self._perform(
            DropDelivery.action, lambda: DropDelivery(scope=self._company(), delivery_id=delivery_id)
        )

    async def cost_summary(
        self,
        by: CostGroup | str = CostGroup.BINDING,
        *,
        since: Moment | None = None,
        until: Moment | None = None,
    ) -> CostSummary:
        """Summarize the costs of calls by binding, agent, provider, model or UTC day; and flat fees by provider.

        by: Sum by this.
        since: From this time on.
        until: Before this time.
        """
        return await self._perform(
            SummarizeCosts.action,
            lambda: SummarizeCosts(
                scope=self._company(),
                group=parse_enum(CostGroup, by, "group"),
                since=moment_from(since, "since"),
                until=moment_from(until, "until"),
            ),
        )

    async def cost_events(
        self,
        *,
        cursor: str | None = None,
        limit: int = 50,
    ) -> CostEventPage:
        """List metered calls, newest first, each with its operation.

        cursor: The `next_cursor` of the previous page.
        limit: At most so many.
        """
        return await self._perform(
            ListCostEvents.action, lambda: ListCostEvents(scope=self._company(), cursor=cursor, limit=limit)
        )

    async def add_fee(
        self,
        kind: FinanceKind | str,
        description: str,
        amount_micros: int,
        *,
        currency: str = "USD",
        occurred_at: Moment | None = None,
        binding_key: str | None = None,
        provider: str | None = None,
        external_invoice_id: str | None = None,
        estimated: bool = False,
        idempotency_key: str | None = None,
    ) -> FinanceEvent:
        """Record a flat fee or an invoice, which belongs to no single call. A credit is negative.

        kind: The kind of fee.
        description: What it is for.
        amount_micros: Millionths of the currency's unit.
        currency: The currency.
        occurred_at: When it is due; now by default.
        binding_key: For this binding.
        provider: Of this provider.
        external_invoice_id: The invoice's id.
        estimated: Not billed yet.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        """
        return await self._perform(
            AddFinanceEvent.action,
            lambda: AddFinanceEvent(
                scope=self._company(),
                kind=parse_enum(FinanceKind, kind, "kind"),
                description=description,
                amount_micros=amount_micros,
                currency=currency,
                occurred_at=moment_from(occurred_at, "occurred_at"),
                binding=binding_key,
                provider=provider,
                external_invoice_id=external_invoice_id,
                estimated=estimated,
                idempotency_key=idempotency_key,
            ),
        )

    async def finance_events(
        self,
        *,
        cursor: str | None = None,
        limit: int = 50,
    ) -> FinanceEventPage:
        """List flat fees and invoices, newest first by when they were recorded, not by when they were due.

        cursor: The `next_cursor` of the previous page.
        limit: At most so many.
        """
        return await self._perform(
            ListFinanceEvents.action, lambda: ListFinanceEvents(scope=self._company(), cursor=cursor, limit=limit)
        )

    async def prices(
        self,
    ) -> tuple[Price, ...]:
        """List the prices per million tokens, by provider and model; `*` is any model of the provider."""
        return await self._perform(
            ListPrices.action,
            lambda: ListPrices(
                scope=self._company(),
            ),
        )

    async def set_price(
        self,
        provider: str,
        model: str = "*",
        *,
        currency: str = "USD",
        input_micros: int = 0,
        cached_input_micros: int = 0,
        output_micros: int = 0,
        embedding_micros: int = 0,
        idempotency_key: str | None = None,
    ) -> Price:
        """Set the price of a model's tokens for calls from now on, in millionths of the currency's unit.

        provider: The provider.
        model: The model; * is any model of the provider.
        currency: The currency.
        input_micros: The price of a million input tokens.
        cached_input_micros: The price of a million cached input tokens.
        output_micros: The price of a million output tokens.
        embedding_micros: The price of a million embedded tokens.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        """
        return await self._perform(
            SetPrice.action,
            lambda: SetPrice(
                scope=self._company(),
                price=Price(
                    provider=provider,
                    model=model,
                    currency=currency,
                    input_micros=input_micros,
                    cached_input_micros=cached_input_micros,
                    output_micros=output_micros,
                    embedding_micros=embedding_micros,
                ),
                idempotency_key=idempotency_key,
            ),
        )

    async def remove_price(
        self,
        provider: str,
        model: str = "*",
        *,
        idempotency_key: str | None = None,
    ) -> None:
        """Delete the price of a provider's model; past estimates stay. `NotFound` if there was none.

        provider: The provider.
        model: The model; * is any model of the provider.
        idempotency_key: Makes a retry safe: a second call with the same key returns the first one's result.
        """
        return await self._perform(
            RemovePrice.action,
            lambda: RemovePrice(scope=self._company(), provider=provider, model=model, idempotency_key=idempotency_key),
        )
