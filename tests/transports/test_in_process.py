"""The adapter in this process passes the contract of transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from holdfast.app import Engine
from holdfast.domain.operations import Operation
from holdfast.sdk.runtime import AsyncMemoryRuntime
from holdfast.testing.transport_contract import Answer, TransportContract, TransportFactory, TransportUnderTest
from holdfast.transports.adapter import AdapterCaller, TransportAdapter
from holdfast.transports.decoder import read_envelope
from holdfast.transports.envelope import AdapterEnvelope, EnvelopeAuth, TransportKind, TransportMode
from holdfast.wire import JsonCodec
from over_http import rows_of

LOCAL = EnvelopeAuth(True, "local", "operator:local")


class TestInProcess(TransportContract):
    """Each envelope is written as JSON and read again, as by a transport that sends whole envelopes."""

    @pytest.fixture
    def served(self) -> TransportFactory:
        @asynccontextmanager
        async def opened() -> AsyncIterator[TransportUnderTest]:
            builder = AsyncMemoryRuntime.builder().store(":memory:").embedder("fake").without_worker()
            async with builder.identity(subject_id="ana").open() as runtime:
                adapter, caller = TransportAdapter(runtime.governance), AdapterCaller.of(runtime)

                async def send(envelope: AdapterEnvelope) -> Answer:
                    sent = JsonCodec(AdapterEnvelope, closed=True).encode(envelope)
                    received = read_envelope(sent, TransportKind.SDK, TransportMode.IN_PROCESS, LOCAL)
                    return (await adapter.handle(caller, received)).to_dict()

                engine = runtime.service
                assert isinstance(engine, Engine)
                first = len(await rows_of(engine))

                async def read_rows() -> Sequence[Operation]:
                    return (await rows_of(engine))[first:]

                yield TransportUnderTest(send, engine, read_rows, runtime.actor, runtime.governance)

        return opened
