"""Explains calls whose arguments do not fit: which name is wrong, and which one is right.

Nothing here runs on a call that fits. Python refuses the others before the method begins; only then is the call
compared with the method's signature, renamed if an alternate name was used, or refused in our words.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import update_wrapper
from inspect import Parameter
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from holdfast.domain.arguments import with_declared_names
from holdfast.errors import InvalidCall

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C", bound=type)
Parameters = Mapping[str, Parameter]

_SHOWN_CHARS = 60
_CLOSE = 0.7

# Names for one thing, in other products or on other surfaces, the most usual first.
_ARGUMENTS = tuple(
    tuple(group.split())
    for group in (
        "subject subject_id user_id user userid username user_name uid customer customer_id person owner_id",
        "conversation conversation_id session session_id session_key thread thread_id chat chat_id",
        "space company company_id tenant tenant_id org org_id organization organisation workspace account",
        "agent agent_id assistant assistant_id bot bot_id",
        "app app_id application application_id",
        "project project_id",
        "run run_id",
        "issue issue_id",
        "top_k limit k n topk top_n n_results num_results max_results count size page_size",
        "text messages content contents message memory data document body value fact",
        "query q question text prompt search_query query_text",
        "record_id record_ids memory_id memory_ids message_id id ids uuid",
        "sender sender_id author speaker from_user",
        "said_from from_ from_date start after begin",
        "said_to to_date end before",
        "since valid_from start from_date",
        "until valid_to valid_until end to_date",
        "as_of at when timestamp",
        "timestamp time date created created_at said_at sent_at",
        "min_score threshold score_threshold similarity_threshold min_relevance minimum_score cutoff",
        "radius distance max_distance min_similarity",
        "condition filter filters where metadata_filter",
        "kind type memory_type record_type",
        "planes plane layers",
        "cursor page_token next_cursor offset page after",
        "metadata meta tags attributes properties",
        "idempotency_key request_id dedupe_key",
        "external_uri uri url link",
        "media_type mime mime_type content_type",
        "location path file filename db db_path database store uri url dsn connection_string",
        "key api_key apikey token auth_token password",
        "embedder embedding embeddings embedding_model embedding_function encoder embed model",
        "timeout_seconds timeout timeout_s",
        "sending progress on_progress",
        "tell progress on_progress callback",
        "replace overwrite force",
        "work worker workers background",
        "binding_key binding binding_id provider",
    )
)
# These are repeated in errors, whoever sent them.
USUAL_NAMES = frozenset(name for group in _ARGUMENTS for name in group)
# The same of methods, and of the fields of results.
_ATTRIBUTES = tuple(
    tuple(group.split())
    for group in (
        "forget delete_resource delete remove erase drop delete_all remove_all reset clear wipe purge",
        "add capture commit_transcript store insert put append save push add_messages add_message add_texts log ingest",
        "remember upsert write add_memory add_fact save_fact create_memory learn memorize",
        "search query recall find similarity_search retrieve ask lookup search_memories",
        "recall hydrate project context get_context build_context relevant_memories",
        "list get_all all list_all find_all items scan memories list_memories",
        "correct update edit modify change replace update_memory",
        "get fetch read load get_by_id get_memory",
        "history versions revisions get_history",
        "revert undo rollback restore",
        "flush commit sync end_session finish",
        "add_resource add_document add_documents upload add_file",
        "create_user add_user new_user create_key register",
        "stats count size info",
        "close disconnect shutdown stop quit",
        "open connect create init load start client memoryclient store holdfast",
        "text content message memory body value page_content document",
        "message text prompt context content",
        "hits items results matches memories records documents messages",
        "items hits results records messages memories data",
        "score similarity distance relevance confidence",
        "said_at recorded_at created_at timestamp time date created",
        "recorded_at created_at stored_at timestamp",
        "id record_id memory_id message_id uuid",
        "sender author speaker name",
        "scope.subject subject user_id user",
        "scope.conversation conversation session_id session thread_id",
        "scope.space space tenant company",
    )
)


def call_again(method: Callable[..., R], args: Sequence[Any], kwargs: Mapping[str, Any], error: TypeError) -> R:
    """Repeat a call that raised a `TypeError`, under the names that the method declares, or explain what is wrong.

    The first of `args` is the object of a method. An error that the method itself raised is raised again.
    """
    signature = inspect.signature(method)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        pass
    else:
        raise error
    parameters = signature.parameters
    declared = with_declared_names(kwargs, parameters)
    if declared.keys() != kwargs.keys():
        return _call_declared(method, args, declared)
    name = method.__qualname__.removesuffix(".__init__").rpartition(".")[2]
    raise _explanation(name, parameters, args, kwargs) from None


def _call_declared(method: Callable[..., R], args: Sequence[Any], kwargs: Mapping[str, Any]) -> R:
    try:
        return method(*args, **kwargs)
    except TypeError as error:
        return call_again(method, args, kwargs, error)


def explain_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function explain calls whose arguments do not fit, and accept alternate names."""

    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            return call_again(function, args, kwargs, error)

    update_wrapper(call, function)
    return call


def explain_methods(kind: C) -> C:
    """Make the public methods of a class explain calls whose arguments do not fit."""
    for name, method in list(vars(kind).items()):
        if not name.startswith("_") and inspect.isfunction(method):
            setattr(kind, name, explain_arguments(method))
    return kind


def explain_constructor(kind: C) -> C:
    """Make a dataclass explain constructor arguments that do not fit."""
    setattr(kind, "__init__", explain_arguments(vars(kind)["__init__"]))  # noqa: B010 - mypy forbids the assignment
    return kind


def _explanation(name: str, parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]) -> InvalidCall:
    public = [each for each in parameters if each not in ("self", "cls")]
    for wrong in kwargs:
        if wrong not in parameters:
            return InvalidCall(wrong[:_SHOWN_CHARS], f"is not an argument of {name}; {hint_for(wrong, public)}")
    places = [each for each in parameters.values() if each.kind is not Parameter.KEYWORD_ONLY]
    for place in places[: len(args)]:
        if place.name in kwargs:
            return InvalidCall(place.name, f"is given to {name} twice, by its place and by its name; give it once")
    own = [each.name for each in places if each.name in public]
    if len(args) > len(places):
        return InvalidCall(name, _too_many(own, public))
    missing = [
        each.name
        for each in list(parameters.values())[len(args) :]
        if each.default is Parameter.empty and each.name not in kwargs
    ]
    return InvalidCall(missing[0], f"is missing; {name} takes {_join_names(own) or missing[0]}")


def _too_many(places: Sequence[str], public: Sequence[str]) -> str:
    keywords = [each for each in public if each not in places]
    shown = "subject" if "subject" in keywords else next(iter(keywords), None)
    if shown is None:
        return f"takes {_join_names(places) or 'no arguments'}"
    return f"takes {f'{_join_names(places)} and then keywords' if places else 'keywords only'}, such as {shown}="


def hint_for(wrong: str, known: Sequence[str]) -> str:
    """Say which name to use instead of a wrong one, or which there are."""
    found = likely_name(wrong, known)
    return f"use one of {', '.join(known)}" if found is None else f"did you mean {found}?"


def likely_name(wrong: str, known: Sequence[str], synonyms: Sequence[Sequence[str]] = _ARGUMENTS) -> str | None:
    """Return the known name that a wrong one probably means: its synonym, else the closest in spelling."""
    plain = wrong.lower()
    meant = [name for group in synonyms if plain in group for name in group if name.partition(".")[0] in known]
    return next(iter(meant or get_close_matches(plain, known, 1, _CLOSE)), None)


def likely_method(wrong: str, known: Sequence[str]) -> str | None:
    """Return the known method, tool or verb that a wrong name probably means."""
    return likely_name(wrong, known, _ATTRIBUTES)


class ExplainAttributes:
    """Adds the likely name to the error of an attribute that an object lacks."""

    __slots__ = ()

    if not TYPE_CHECKING:  # so that type checkers still see wrong names

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):  # a property raised AttributeError: raise it again
                return object.__getattribute__(self, name)
            known = [each for each in dir(type(self)) if not each.startswith("_")]
            raise AttributeError(missing_attribute(type(self).__name__, known, name))


def missing_attribute(owner: str, known: Sequence[str], name: str) -> str:
    """Return the message of an attribute that does not exist."""
    found = None if name.startswith("_") else likely_name(name, known, _ATTRIBUTES)
    return f"{owner} has no {name[:_SHOWN_CHARS]!r}{'' if found is None else f'; did you mean {found}?'}"


def _join_names(names: Sequence[str]) -> str:
    return " and ".join(", ".join(names).rsplit(", ", 1))
