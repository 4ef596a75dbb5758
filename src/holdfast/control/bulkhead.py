"""A bulkhead around third-party code: provider adapters and hook subscribers, here called plugins.

Each plugin runs on an event loop in its own thread. It may block, hang, raise or exit without affecting anything but
its own callers, who get a response or a `ProviderError` in time. A thread that hangs is abandoned, and the next call
starts a new one. A plugin that has lost too many threads is refused at once until some of them return (a circuit
breaker). No thread here keeps the process from ending.

An exception of a plugin may hold a key in its message, cause or frames. Of a foreign exception only the class name is
reported; of our own, the message, which a service does not show to callers if third-party code raised it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

from holdfast import errors
from holdfast.domain.bindings import Binding
from holdfast.errors import (
    CapabilityUnavailable,
    Conflict,
    HoldfastError,
    InvalidInput,
    NotFound,
    ProviderError,
    ProviderMalformed,
    ProviderTimeout,
    ProviderUnavailable,
    SecretUnavailable,
)
from holdfast.loops import running_loop
from holdfast.ports.provider import Adapter, Providers

T = TypeVar("T")
G = TypeVar("G", bound="Plugin")
log = logging.getLogger("holdfast")

MAX_LOST = 4  # hung threads of one plugin
MAX_UNDER_WAY = 64  # concurrent calls of one plugin
MAX_DEAF = 8  # calls of one plugin that ignored cancellation
MAX_OPEN = 128  # plugins
CLOSE_SECONDS = 2.0
RETIRE_SECONDS = 60.0  # calls under way when a binding changes may still finish
HEARS_WITHIN_SECONDS = 1.0  # generous: a busy machine may schedule the thread late
# Errors that a plugin may raise to its caller.
_PASSED_ON = (ProviderError, SecretUnavailable, CapabilityUnavailable, NotFound, Conflict, InvalidInput)


@dataclass(frozen=True, slots=True)
class _PluginFailure:
    """The sanitized error of a failed call."""

    error: HoldfastError


class Plugin(Protocol):
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class PluginSpec(Generic[G]):
    """A plugin's factory, called in its thread, again for each new `revision`. `named` is its name in errors."""

    key: tuple[str, str]
    revision: object
    named: str
    make: Callable[[], G]


class _PluginThread:
    """One plugin and its thread. The first call creates the plugin there, since creating it may block too."""

    def __init__(self, spec: PluginSpec[Any]) -> None:
        self.revision = spec.revision
        self.under_way = 0
        self._named = spec.named
        self._make = spec.make
        self._plugin: Plugin | None = None
        self._called: tuple[threading.Event, float] | None = None
        self._deaf: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._log_task_failure)
        self._thread = threading.Thread(target=self._run_loop, name=f"holdfast-{spec.key[1]:.40}", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def is_lost(self) -> bool:
        """True if the thread has ended, or does not react to a wake-up: something blocks its loop."""
        if self._called is None:
            return not self.is_alive
        heard, called = self._called
        return not self.is_alive or (not heard.is_set() and time.monotonic() - called > HEARS_WITHIN_SECONDS)

    @property
    def ignores_cancel(self) -> bool:
        """True if too many of its calls ignored cancellation."""
        return len(self._deaf) >= MAX_DEAF

    def _run_loop(self) -> None:
        try:
            self._loop.run_forever()
        except BaseException as error:  # noqa: BLE001 - a plugin that ends its thread ends nothing else
            log.warning("%s ended its own thread: %s", self._named, type(error).__name__)
        finally:
            # Nothing waits for the tasks that are left on it.
            with contextlib.suppress(RuntimeError):
                self._loop.close()

    def _log_task_failure(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a failed background task of the plugin. asyncio's own message would include its contents."""
        failed = type(context.get("exception")).__name__
        log.warning("a background task of %s failed: %s", self._named, failed)

    def begin(self, work: Callable[[Any], Awaitable[Any]]) -> _PluginCall:
        """Start a call; return a handle to wait on."""
        call = _PluginCall()
        self._loop.call_soon_threadsafe(self._start, call, work)
        return call

    def _start(self, call: _PluginCall, work: Callable[[Any], Awaitable[Any]]) -> None:
        call.task = self._loop.create_task(self._do(call, work))
        call.task.add_done_callback(self._deaf.discard)

    async def _do(self, call: _PluginCall, work: Callable[[Any], Awaitable[Any]]) -> None:
        """Run a call and report only through its future: an exception on the loop itself would end the thread."""
        try:
            if self._plugin is None:
                self._plugin = self._make()
            waited = work(self._plugin)
            if not inspect.isawaitable(waited):
                raise ProviderMalformed(
                    f"the provider's method returned {type(waited).__name__:.60}, not an awaitable; make it async"
                )
            outcome: Any = await waited
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - handed to the caller
            outcome = _PluginFailure(_sanitize_error(error))
        call.answer(outcome)

    def give_up(self, call: _PluginCall) -> None:
        """Cancel a call, and probe whether the loop still reacts."""
        heard = threading.Event()
        self._called = heard, time.monotonic()

        def stop() -> None:
            heard.set()
            if call.task is not None and not call.task.done():
                self._deaf.add(call.task)
                call.task.cancel()

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(stop)

    def retire(self, patience_seconds: float) -> concurrent.futures.Future[Any]:
        """Close the plugin and end the thread once its calls are done, or after `patience_seconds`."""
        call = _PluginCall()

        async def close() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            try:
                if others and patience_seconds:
                    await asyncio.wait(others, timeout=patience_seconds)
                for other in others:
                    other.cancel()
                if self._plugin is not None:
                    waited: Any = self._plugin.close()
                    if inspect.isawaitable(waited):
                        await asyncio.wait_for(waited, CLOSE_SECONDS)
            except BaseException as error:  # noqa: BLE001 - third-party code; it can only be logged
                log.warning("%s did not close: %s", self._named, type(error).__name__)
            finally:
                call.answer(None)
                self._loop.stop()

        try:
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(close()))
        except RuntimeError:  # the loop has ended
            call.answer(None)
        return call.future


class _PluginCall:
    """One call of a plugin: its task, and the future to wait on."""

    def __init__(self) -> None:
        self.future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self.task: asyncio.Task[None] | None = None

    def answer(self, outcome: object) -> None:
        # The caller may have timed out.
        with contextlib.suppress(concurrent.futures.InvalidStateError):
            self.future.set_result(outcome)


@dataclass(slots=True)
class _PluginSlot:
    """A plugin's current thread, and its hung ones."""

    thread: _PluginThread | None = None
    lost: list[_PluginThread] = field(default_factory=list)


class Bulkhead:
    """All plugins, each isolated in its own thread."""

    def __init__(self) -> None:
        self._places: OrderedDict[tuple[str, str], _PluginSlot] = OrderedDict()
        self._lock = threading.Lock()
        self._closed = False

    async def ask(self, spec: PluginSpec[G], work: Callable[[G], Awaitable[T]], timeout_seconds: float) -> T:
        """Run `work` on the plugin; return its response or raise a `ProviderError` within the timeout."""
        thread = self._reserve_thread(spec)
        try:
            call = thread.begin(work)
        except RuntimeError:  # its loop ended concurrently
            with self._lock:
                thread.under_way -= 1
            raise ProviderUnavailable(f"{spec.named} is being closed; try again") from None
        try:
            outcome = await _wait_for(call.future, timeout_seconds)
        except (TimeoutError, concurrent.futures.TimeoutError):
            outcome = _PluginFailure(
                ProviderTimeout(
                    f"{spec.named} did not answer within {timeout_seconds:g} s; it may or may not have carried out"
                    " the request"
                )
            )
        finally:
            with self._lock:
                thread.under_way -= 1
            if not call.future.done() or call.future.cancelled():
                thread.give_up(call)
        if isinstance(outcome, _PluginFailure):
            # Raised outside the except block, so that the original exception is not chained.
            raise outcome.error
        return outcome  # type: ignore[no-any-return]

    def _reserve_thread(self, spec: PluginSpec[G]) -> _PluginThread:
        """Reserve a call on the plugin's thread; start a new thread if its revision changed or the thread hangs."""
        key = spec.key
        with self._lock:
            if self._closed:
                raise ProviderUnavailable("the store is closed; open it again")
            slot = self._places.setdefault(key, _PluginSlot())
            self._places.move_to_end(key)
            slot.lost = [thread for thread in slot.lost if thread.is_alive]
            if slot.thread is not None and (slot.thread.is_lost or slot.thread.ignores_cancel):
                slot.thread.retire(0)
                slot.lost.append(slot.thread)
                slot.thread = None
            elif slot.thread is not None and slot.thread.revision != spec.revision:
                slot.thread.retire(RETIRE_SECONDS)
                slot.thread = None
            if slot.thread is None:
                if len(slot.lost) >= MAX_LOST:
                    raise ProviderUnavailable(
                        f"{spec.named} has {len(slot.lost)} calls that hang, and is not called again until some of"
                        " them return; check the provider"
                    )
                slot.thread = _PluginThread(spec)
                self._evict_idle(key)
            if slot.thread.under_way >= MAX_UNDER_WAY:
                raise ProviderUnavailable(f"{spec.named} already has {MAX_UNDER_WAY} calls running; try again later")
            slot.thread.under_way += 1
            return slot.thread

    def _evict_idle(self, beside: tuple[str, str]) -> None:
        """Evict the least recently used idle plugins if too many are open."""
        idle = [
            key
            for key, slot in self._places.items()
            if key != beside and not slot.lost and (slot.thread is None or not slot.thread.under_way)
        ]
        for key in idle[: max(0, len(self._places) - MAX_OPEN)]:
            slot = self._places.pop(key)
            if slot.thread is not None:
                slot.thread.retire(0)

    async def close(self) -> None:
        """Close every plugin. One that hangs is abandoned, and does not keep the process from ending."""
        with self._lock:
            self._closed = True
            threads = [slot.thread for slot in self._places.values() if slot.thread is not None]
            self._places.clear()
        ends = [thread.retire(0) for thread in threads]
        if not ends:
            return
        if running_loop() is None:
            concurrent.futures.wait(ends, CLOSE_SECONDS)
        else:
            await asyncio.wait([asyncio.wrap_future(end) for end in ends], timeout=CLOSE_SECONDS)


class IsolatedProviderRunner:
    """Implements `ports.provider.ExternalRunner`."""

    def __init__(self, providers: Providers) -> None:
        self._providers = providers
        self._rooms = Bulkhead()

    async def run(self, binding: Binding, work: Callable[[Adapter], Awaitable[T]], timeout_seconds: float) -> T:
        spec = PluginSpec(
            key=(binding.space, binding.key),
            revision=(binding.id, binding.revision),
            named=f"the binding {binding.key!r} ({binding.provider:.80})",
            make=lambda: self._providers.adapter(binding),
        )
        return await self._rooms.ask(spec, work, timeout_seconds)

    async def close(self) -> None:
        await self._rooms.close()


async def _wait_for(future: concurrent.futures.Future[Any], seconds: float) -> Any:
    if running_loop() is None:
        return future.result(seconds)
    return await asyncio.wait_for(asyncio.wrap_future(future), seconds)


def describe_provider_error(error: ProviderError | SecretUnavailable, binding: Binding) -> HoldfastError:
    """Add the binding's name and a next step to an adapter's error; an adapter does not know its binding."""
    whose = f"the binding {binding.key!r} ({binding.provider:.80})"
    what_next = ""
    if not isinstance(error, SecretUnavailable):  # that message names the next step itself
        tries = f"`holdfast provider check {binding.provider:.80} --config … --connect` tests it"
        what_next = f"; check the provider and the binding's configuration: {tries}"
    message = str(error)
    prefix = "" if message.startswith(whose) else f"{whose} cannot be used: "  # the bulkhead's own errors name it
    found = type(error)(f"{prefix}{message}{what_next}")
    found.public = f"{prefix}{error.public or message}{what_next}"
    return found


def _sanitize_error(error: BaseException) -> HoldfastError:
    """Sanitize an exception for the caller: copy our own without its chain; of others keep only the class name."""
    if isinstance(error, _PASSED_ON) and type(error).__module__ == errors.__name__:
        if isinstance(error, InvalidInput):
            return type(error)(error.field, error.problem)
        found = type(error)(str(error))
        if not _raised_by_holdfast(error.__traceback__):
            # Third-party text may quote secrets.
            found.public = (type(error).__doc__ or "").strip().rstrip(".")
        return found
    if isinstance(error, asyncio.CancelledError):
        return ProviderTimeout("the call to the provider was cancelled")
    return ProviderError(f"the provider failed ({type(error).__name__:.80}); its message is withheld")


def _raised_by_holdfast(raised: TracebackType | None) -> bool:
    """True if Holdfast's own code raised it, whoever called that code."""
    while raised is not None and raised.tb_next is not None:
        raised = raised.tb_next
    return raised is not None and str(raised.tb_frame.f_globals.get("__name__")).startswith("holdfast.")
