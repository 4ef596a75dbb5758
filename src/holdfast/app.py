"""The composition root: chooses implementations and wires them. Only this module may import everything.

Rarely needed modules are imported inside functions: every command and every worker pays for the imports at the top.
"""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from holdfast.control.bulkhead import IsolatedProviderRunner
from holdfast.control.subscribers import HookRegistry
from holdfast.documents.kernel import Barrier, available_barriers
from holdfast.documents.reader import DocumentReader
from holdfast.domain.access import LOCAL_OPERATOR, Action, storewide_grant
from holdfast.domain.backups import BackupResult, RestoreResult, Retention
from holdfast.domain.bindings import Binding
from holdfast.domain.custom_embedder import is_port
from holdfast.domain.ids import BindingId
from holdfast.domain.jobs import Job, JobKind
from holdfast.domain.location import redact_location
from holdfast.domain.model_endpoint import ModelEndpoint, ModelProtocol, choose_endpoint
from holdfast.domain.ranking import Weights
from holdfast.domain.results import Copied, StoreExamination
from holdfast.domain.scope import EVERYWHERE, Scope
from holdfast.domain.secret import Secret
from holdfast.domain.tokens import Tokenizer, token_counter
from holdfast.errors import CopyRefused, StoreUnusable
from holdfast.installation import install_command
from holdfast.ports import (
    Clock,
    Curator,
    Embedder,
    EmbedderLike,
    Extractor,
    IdGenerator,
    PromptModel,
    Store,
    Transaction,
)
from holdfast.ports.observer import MetricsObserver
from holdfast.ports.provider import Providers
from holdfast.private_files import WideFile, find_wide_files, restrict
from holdfast.providers.registry import ProviderRegistry
from holdfast.providers.secrets import SecretResolver
from holdfast.runtime.attempts import Effect, Failure
from holdfast.runtime.engine import Engine, Route, SystemClock, TimeOrderedIds
from holdfast.runtime.extract import LazyCurator, LazyExtractor
from holdfast.runtime.gate import Core
from holdfast.runtime.model_verbs import FLUSH, MAINTAIN, read_model_verbs
from holdfast.runtime.requests import FlushModel
from holdfast.runtime.worker import INDEXED_BY, Handler, queue_upkeep
from holdfast.runtime.worker_pool import WorkerPool
from holdfast.search.analyzer import TextAnalyzer
from holdfast.search.embedders.by_name import make_named_embedder
from holdfast.search.embedders.unnamed import UnnamedEmbedder
from holdfast.search.searcher import PartitionSearcher
from holdfast.search.view_cache import ViewCache
from holdfast.settings import Settings, read_variable
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.sqlite.schema import migrations

if TYPE_CHECKING:
    from holdfast.domain.control import ProviderCheck, ProviderInfo
    from holdfast.domain.manifest import StoreRepair
    from holdfast.providers.registry import BrokenProvider
    from holdfast.search.embedders.custom import CustomEmbedderAdapter
    from holdfast.stores.sessions import SqliteSessions
    from holdfast.stores.sql.copy_endpoint import SqlCopyEndpoint

__all__ = [
    "EMBEDDING",
    "Engine",
    "backup_store",
    "check_provider",
    "copy_store",
    "document_barriers",
    "examine_store",
    "find_wide_store_files",
    "installed_providers",
    "known_providers",
    "make_curator",
    "open_engine",
    "open_sessions",
    "repair_store",
    "restore_store",
    "store_model_verbs",
]

# Called with the rows done and in total.
Tell = Callable[[int, int], None]
# Jobs that need an embedder, or work on its vectors.
EMBEDDING = frozenset({JobKind.INDEX, JobKind.REEMBED, JobKind.NEAREST})


async def open_engine(
    location: str,
    settings: Settings,
    *,
    embedder: EmbedderLike | None = None,
    weights: Weights | None = None,
    clock: Clock | None = None,
    new_ids: IdGenerator | None = None,
    curator: Curator | None = None,
    work: bool = True,
    embeds: bool | None = None,
    jobs: int = 1,
    kinds: frozenset[JobKind] | None = None,
    providers: Providers | None = None,
    routed: bool = False,
    watcher: MetricsObserver | None = None,
    tokenizer: Tokenizer | None = None,
) -> Engine:
    """Open or create the store at `location`, update its indexes in the background, and return its engine.

    `jobs` is the number of concurrent background jobs, `kinds` which kinds (default: all), `providers` those that
    bindings can name (default: all installed). If `routed`, the library's verbs go to the provider that their space is
    bound to. `tokenizer` (default: the embedder's) counts tokens. With `embeds` (default: `work`), opening fails if an
    unnamed non-default embedder made the vectors.
    """
    store, chosen = await _store_and_embedder(location, settings, embedder, embeds=work if embeds is None else embeds)
    crew: WorkerPool | None = None

    async def drain() -> int:
        return 0 if crew is None else await crew.drain()

    installed = providers or _make_registry(settings)
    core = Core(
        store=store,
        embedder=chosen,
        analyzer=TextAnalyzer(),
        searcher=_make_searcher(settings, chosen, weights),
        extractor=LazyExtractor("rules", _load_rules),
        documents=DocumentReader(unconfined=settings.unconfined_documents),
        clock=clock or SystemClock(),
        ids=new_ids or TimeOrderedIds(),
        wake=lambda: None if crew is None else crew.wake(),
        drain=drain,
        approximate_from=settings.approximate_from,
        allow_confusable_ids=settings.allow_confusable_ids,
        curator=curator if settings.asked_verbs is None or MAINTAIN in settings.asked_verbs else None,
        providers=installed,
        outsiders=IsolatedProviderRunner(installed),
        subscribers=HookRegistry(),
        watcher=watcher,
        count_tokens=token_counter(tokenizer, chosen),
    )
    core = await _bring_up_to_date(core, settings, curator)
    crew = _make_worker_pool(core, settings, jobs, kinds)
    # A custom clock or id generator may not be thread-safe.
    sync_safe = clock is None and new_ids is None and all(getattr(part, "sync_safe", False) for part in (store, chosen))
    engine = Engine(core, crew, _newest_schema, sync_safe=sync_safe, route=_load_router() if routed else None)
    if work:
        engine.start_worker()
    return engine


def _make_searcher(settings: Settings, embedder: Embedder, weights: Weights | None) -> PartitionSearcher:
    cache = ViewCache(settings.cache_bytes)
    return PartitionSearcher(cache, embedder.fingerprint, weights, settings.approximate_from)


def _make_worker_pool(core: Core, settings: Settings, jobs: int, kinds: frozenset[JobKind] | None) -> WorkerPool:
    kinds = kinds or (frozenset(JobKind) - EMBEDDING if isinstance(core.embedder, UnnamedEmbedder) else None)
    handlers = {JobKind.DELIVER: Handler(_deliver, _record_failed_delivery)}
    return WorkerPool(core, handlers, jobs=jobs, lease=timedelta(seconds=settings.job_lease_seconds), kinds=kinds)


async def _bring_up_to_date(core: Core, settings: Settings, curator: Curator | None) -> Core:
    """Queue upkeep if it is needed, and choose the model of `flush`. Close the store if that fails."""
    try:
        await queue_upkeep(core)
        return replace(core, flush_model=await _choose_flush_model(core.store, settings, curator))
    except BaseException:
        await core.store.close()
        raise


def _newest_schema() -> int:
    return migrations()[-1][0]


def _load_rules() -> Extractor:
    from holdfast.extract.rule_extractor import RuleExtractor  # its patterns take long to compile

    return RuleExtractor()


def _load_router() -> Route:
    from holdfast.control.routing import route_verb  # only a service routes

    return route_verb


async def _deliver(core: Core, job: Job) -> Effect | None:
    from holdfast.control.delivery_worker import delivery_handler  # loaded lazily: most stores never have a delivery

    return await delivery_handler().do(core, job)


def _record_failed_delivery(transaction: Transaction, job: Job, failure: Failure) -> None:
    from holdfast.control.delivery_worker import delivery_handler

    delivery_handler().failed(transaction, job, failure)


async def _store_and_embedder(
    location: str, settings: Settings, embedder: EmbedderLike | None, *, embeds: bool
) -> tuple[Store, Embedder]:
    """Open both. Never replace vectors of an embedder that someone chose, and perhaps paid for, by the default's."""
    named = embedder is not None or "embedder" in settings.model_fields_set
    custom = await _open_custom_embedder(embedder)
    chosen = custom or (_make_embedder(embedder, settings) if named else None)
    store = await asyncio.to_thread(_open_store, location, settings)
    if chosen is not None and custom is None:
        return store, chosen
    try:
        made_by = await store.read(storewide_grant(), lambda reader: reader.maintenance.fact(INDEXED_BY))
        if custom is not None:
            custom.adopt((made_by or "").rpartition("/")[0])
            return store, custom
        if made_by is None or made_by.partition(":")[0] == settings.embedder:
            return store, _make_embedder(None, settings)
        unnamed = UnnamedEmbedder(made_by.rpartition("/")[0], redact_location(location))
        if embeds:
            raise unnamed.missing_error()
    except BaseException:
        await store.close()
        raise
    return store, unnamed


async def _open_custom_embedder(embedder: EmbedderLike | None) -> CustomEmbedderAdapter | None:
    """Return an adapter for a caller's function or object, which it calls; None if there is none."""
    if embedder is None or isinstance(embedder, str) or is_port(embedder):
        return None
    from holdfast.search.embedders.custom import open_custom

    return await open_custom(embedder)


def _make_embedder(given: EmbedderLike | None, settings: Settings) -> Embedder:
    if given is not None and not isinstance(given, str):
        return cast(Embedder, given)
    key = settings.embedder_key.get_secret_value() if settings.embedder_key else None
    return make_named_embedder(given or settings.embedder, url=settings.embedder_url, key=key)


def installed_providers(settings: Settings) -> tuple[tuple[ProviderInfo, ...], tuple[BrokenProvider, ...]]:
    """List the usable providers, and the installed ones that cannot be used, with their problem."""
    from holdfast.control.bindings import provider_info

    found = _make_registry(settings)
    return tuple(map(provider_info, found.list_providers())), tuple(found.broken_providers())


def known_providers(settings: Settings) -> tuple[ProviderInfo, ...]:
    """List the usable providers without opening a store."""
    from holdfast.control.bindings import provider_info

    return tuple(map(provider_info, _make_registry(settings).list_providers()))


async def check_provider(
    name: str, config: Mapping[str, Any], settings: Settings, *, connect: bool = False
) -> ProviderCheck:
    """Check a provider's configuration; with `connect`, also send it a query. Nothing is stored."""
    from holdfast.control.bindings import validate_config
    from holdfast.control.dispatch import timeout_of
    from holdfast.domain.contract import QueryRequest
    from holdfast.domain.control import ProviderCheck

    providers = _make_registry(settings)
    provider = providers.get(name)
    checked = validate_config(providers, provider, config)
    if not (connect and provider.outside):
        return ProviderCheck(name, provider.outside, checked)
    binding = Binding(BindingId("bnd_check"), settings.space, "check", name, checked)
    seconds = timeout_of(binding)
    request = QueryRequest(binding.key, Scope(settings.space), "holdfast", top_k=1)
    outsiders, started = IsolatedProviderRunner(providers), time.perf_counter()
    try:
        found = await outsiders.run(binding, lambda adapter: adapter.query(request), seconds)
    finally:
        await outsiders.close()
    return ProviderCheck(name, True, checked, time.perf_counter() - started, len(found.snippets))


def copy_store(source: str, target: str, settings: Settings, *, replace: bool, tell: Tell) -> Copied:
    """Copy a whole store. Like a migration, it bypasses the gate and leaves no operation."""
    from holdfast.stores.copying import copy

    with closing(_open_archive(source, settings, create=False)) as origin:
        with closing(_open_archive(target, settings, create=True)) as destination:
            if origin.identity == destination.identity:
                raise CopyRefused(f"{origin.location} cannot be copied onto itself; name another target")
            destination.lock_exclusively()
            origin.snapshot()
            origin.refuse_damage()
            return copy(origin, destination, replace=replace, tell=tell)


def backup_store(location: str, folder: Path, settings: Settings, retention: Retention, tell: Tell) -> BackupResult:
    """Back up a whole store into a folder. Like a copy, it bypasses the gate and leaves no operation."""
    from holdfast import __version__
    from holdfast.stores.backups import check_folder, make_backup

    check_folder(folder, location)
    return make_backup(
        lambda: _open_archive(location, settings, create=False),
        folder,
        retention,
        version=__version__,
        busy_seconds=settings.busy_seconds,
        tell=tell,
    )


def restore_store(backup: str, location: str, settings: Settings, *, replace: bool, tell: Tell) -> RestoreResult:
    """Restore a backup into a store. Like a copy, it bypasses the gate and leaves no operation."""
    from holdfast.stores.backups import restore_backup

    postgres = _is_postgres(location)
    opened = (lambda: _open_archive(location, settings, create=True)) if postgres else None
    return restore_backup(backup, location, opened, replace=replace, busy_seconds=settings.busy_seconds, tell=tell)


async def repair_store(
    location: str, settings: Settings, *, embedder: str | None = None, apply: bool = False
) -> StoreRepair:
    """Inspect a whole store and the modes of its files; with `apply`, also make the repairs that lose no data."""
    from holdfast.domain.manifest import RepairAction

    wide = find_wide_store_files(location)
    # Before the store is opened: the files that SQLite creates then take the mode of the store.
    own = [file for file in wide if (restrict(file) if apply else file.own)]
    found = await _repair_contents(location, settings, embedder, apply=apply)
    return replace(
        found,
        mends={**found.mends, RepairAction.RESTRICT_FILES: len(own)},
        foreign_files=tuple(str(file) for file in wide if file not in own),
    )


async def _repair_contents(location: str, settings: Settings, embedder: str | None, *, apply: bool) -> StoreRepair:
    from holdfast.runtime.transcripts.store_repair import ExamineStore, RepairStore

    engine = await open_engine(location, settings, embedder=embedder, work=False)
    try:
        scope = Scope(space=EVERYWHERE)
        if apply:
            return await engine.perform(LOCAL_OPERATOR, Action.REBUILD, lambda: RepairStore(scope), space=EVERYWHERE)
        return await engine.perform(LOCAL_OPERATOR, Action.VERIFY, lambda: ExamineStore(scope), space=EVERYWHERE)
    finally:
        await engine.close()


def find_wide_store_files(location: str) -> list[WideFile]:
    """Find the store's files that others may read or write. A server's files are its own concern."""
    from holdfast.stores.sqlite.files import store_files

    return [] if _is_postgres(location) else find_wide_files(store_files(location))


def examine_store(location: str, settings: Settings) -> StoreExamination | None:
    """Examine a store without opening it for use; None if there is none."""
    if _is_postgres(location):
        from holdfast.stores.postgres.examine import examine as examine_server

        return examine_server(location, settings.busy_seconds)
    from holdfast.stores.sqlite.examine import examine

    return examine(location, settings.busy_seconds)


def document_barriers() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the kernel's barriers that documents are read behind, and of those that are missing here."""
    present = available_barriers()
    names = {barrier: str(barrier.name).lower() for barrier in Barrier.ALL}
    return (
        tuple(name for barrier, name in names.items() if barrier in present),
        tuple(name for barrier, name in names.items() if barrier not in present),
    )


def open_sessions(path: Path, settings: Settings) -> SqliteSessions:
    """Open an agent's session file, creating it if needed."""
    from holdfast.search.word_lists import STOP_WORDS
    from holdfast.stores.sessions import SqliteSessions

    return SqliteSessions(str(path), busy_seconds=settings.busy_seconds, stop_words=tuple(STOP_WORDS.values()))


def _open_archive(location: str, settings: Settings, *, create: bool) -> SqlCopyEndpoint:
    if _is_postgres(location):
        from holdfast.stores.postgres.copy_endpoint import PostgresCopyEndpoint

        return PostgresCopyEndpoint(location, settings.busy_seconds, create=create)
    from holdfast.stores.sqlite.copy_endpoint import SqliteCopyEndpoint

    return SqliteCopyEndpoint(location, settings.busy_seconds, create=create)


def _open_store(location: str, settings: Settings) -> Store:
    if _is_postgres(location):
        from holdfast.stores.postgres import PostgresStore

        return PostgresStore(location, busy_seconds=settings.busy_seconds, connections=settings.postgres_connections)
    return SqliteStore(location, busy_seconds=settings.busy_seconds)


def _is_postgres(location: str) -> bool:
    """True if the location is a PostgreSQL URL. Raises for other URLs, or if psycopg is missing."""
    if "://" not in location:
        return False
    scheme = location.partition("://")[0]
    if scheme not in ("postgresql", "postgres"):
        raise StoreUnusable(f"{scheme}:// is not a store; give a file path, or a postgresql:// URL")
    if importlib.util.find_spec("psycopg") is None:
        raise StoreUnusable(
            f"{redact_location(location)} needs psycopg; install it with: {install_command('postgres')}"
        )
    return True


def make_curator(
    settings: Settings,
    model: str | PromptModel | None = None,
    url: str | None = None,
    key: Secret | None = None,
    *,
    max_chars: int | None = None,
) -> Curator | None:
    """Return the model that learns from conversations: the given one, else the one in the settings, else None.

    `max_chars` limits how much of a conversation one request shows.
    """
    name = model or settings.model
    if not name or settings.asked_verbs == frozenset():
        return None
    # Imported here because it loads the HTTP client.
    from holdfast.extract.model_curator import DEFAULT_MAX_CHARS, ModelCurator

    if isinstance(name, str):
        endpoint = choose_endpoint(name, url or settings.named_model_url)
        if key is None and url is None and settings.model_key is not None and _takes_key(endpoint, settings):
            key = Secret(settings.model_key.get_secret_value(), "HOLDFAST_MODEL_KEY")
        name = _make_prompt_model(endpoint, key)
    return ModelCurator(name, max_chars=max_chars or DEFAULT_MAX_CHARS)


def _takes_key(endpoint: ModelEndpoint, settings: Settings) -> bool:
    """True if the key in the settings may be sent there: only to the URL in the settings, else to their model's own."""
    if (url := settings.named_model_url) is not None:
        return endpoint.url == url
    needs_key = endpoint.protocol is not ModelProtocol.OLLAMA
    return needs_key and endpoint.url == choose_endpoint(settings.model, None).url


def _make_prompt_model(endpoint: ModelEndpoint, key: Secret | None) -> PromptModel:
    if endpoint.protocol is ModelProtocol.ANTHROPIC:
        from holdfast.agent.providers.prompted import prompt_anthropic

        return prompt_anthropic(endpoint.model, endpoint.url, key)
    from holdfast.extract.chat_completions import ChatCompletions

    return ChatCompletions(endpoint.model, base_url=endpoint.url, api_key=key)


async def _choose_flush_model(store: Store, settings: Settings, curator: Curator | None) -> FlushModel | None:
    """Return the model that `flush` asks: the one of `maintain`, else the one in the settings; None if it asks none."""
    if curator is None and not settings.model:
        return None
    verbs = await read_model_verbs(store) if settings.asked_verbs is None else settings.asked_verbs
    if FLUSH not in verbs:
        return None
    chosen = curator or LazyCurator(settings.model, lambda: make_curator(settings))
    return FlushModel(chosen, settings.model_messages, settings.model_seconds)


async def store_model_verbs(location: str, settings: Settings) -> frozenset[str]:
    """Return the verbs for which a model is asked in this store if no setting names them."""
    store = await asyncio.to_thread(_open_store, location, settings)
    try:
        return await read_model_verbs(store)
    finally:
        await store.close()


def _make_registry(settings: Settings) -> ProviderRegistry:
    """Return the registry of built-in and installed providers."""
    resolver = SecretResolver(read_variable, settings.secret_env_prefix, settings.secrets_dir)
    return ProviderRegistry(resolver)
