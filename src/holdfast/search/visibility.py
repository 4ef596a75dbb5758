"""Visibility: the rows of a partition that a search may see, their senders, and statistics over exactly those rows.

All of it depends on the view, the scope, the time and the condition, not on the query: it is computed once and cached
with the view, for the next search of the same scope.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from holdfast.domain.conditions import Condition
from holdfast.domain.memory import GUARDED_PLANES, OPEN_PLANES, Plane, Status
from holdfast.domain.ranking import BoolArray, FloatArray, IntArray, context_unlikeness
from holdfast.domain.results import HitKind
from holdfast.domain.scope import Scope
from holdfast.domain.times import to_micros
from holdfast.domain.transcript import Role
from holdfast.ports import SearchOptions
from holdfast.search.condition_masks import condition_mask
from holdfast.search.partition_index import SmallArray, cosines_of
from holdfast.search.partition_view import MESSAGE, NEVER, Links, PartitionView

# Approximate number of sampled rows, which estimate the similarity of any two.
_SAMPLE = 1_000


@dataclass(frozen=True, slots=True, eq=False)
class VisibilityStats:
    """Query-independent statistics of the visible rows of one view. Holds no reference to the view, which caches it.

    `lengths` has one value per row, 0 for invisible rows, and one extra 0 for a missing neighbour. In `sessions`, rows
    outside any conversation get the number after the last conversation. `span` is the first and last time of saying.
    `apart` is each row's dissimilarity to its neighbours; `sample` are rows that estimate the similarity of any two.
    """

    visible: BoolArray
    links: Links
    sample: IntArray
    apart: FloatArray
    documents: int
    terms: int
    lengths: FloatArray
    mean_length: float
    window_lengths: FloatArray
    mean_window_length: float
    sessions: SmallArray
    session_lengths: FloatArray
    session_count: int
    mean_session_length: float
    participants: tuple[str, ...]
    has_assistant: bool
    span: tuple[int, int]


class VisibleView(NamedTuple):
    """A partition's view, and the part of it that a search may see."""

    view: PartitionView
    sight: VisibilityStats

    @property
    def visible(self) -> BoolArray:
        return self.sight.visible

    @property
    def links(self) -> Links:
        return self.sight.links


def visible_view(view: PartitionView, scope: Scope, wanted: SearchOptions) -> VisibleView | None:
    """The visible rows, from which statistics and windows are computed; None if there are none."""
    key = (scope, wanted.as_of, wanted.quarantined, _hidden_planes(wanted), _condition_key(wanted.condition))
    sight = view.sights.get(key)
    if sight is None:
        visible = _visible_mask(view, scope, wanted)
        if not visible.any():
            return None
        sight = _compute_stats(view, visible)
        view.sights.put(key, sight)
    return VisibleView(view, sight)


def _condition_key(condition: Condition | None) -> bytes | None:
    """A short cache key for a condition, which itself may be large. The `repr` of a scope would shorten its names."""
    if condition is None:
        return None
    from holdfast.domain.json_values import to_plain  # conditions are rare

    return sha256(json.dumps(to_plain(condition)).encode()).digest()


def _compute_stats(view: PartitionView, visible: BoolArray) -> VisibilityStats:
    columns, names, links = view.columns, view.names, view.links_among(visible)
    sample = _sample(view, visible, links)
    documents = int(np.count_nonzero(visible))
    lengths = np.zeros(view.size + 1, np.float32)
    lengths[:-1] = np.where(visible, columns.length, 0)
    windows = lengths[:-1] + lengths[links.previous] + lengths[links.following]
    outside = np.int32(names.conversations)
    sessions = np.where(columns.conversation < 0, outside, columns.conversation)
    session_lengths = np.bincount(sessions, lengths[:-1], outside + 1)[:outside].astype(np.float32)
    session_count = int(np.count_nonzero(session_lengths))
    senders = np.bincount(columns.sender[visible] + 1, minlength=1)[1:]
    assistant = names.roles.find(Role.ASSISTANT)
    moments = columns.said_at[visible]
    return VisibilityStats(
        visible=visible,
        links=links,
        sample=sample,
        apart=_apart(view, visible, links, sample),
        documents=documents,
        terms=int(columns.length[visible].sum()),
        lengths=lengths,
        mean_length=float(lengths.sum(dtype=np.float64)) / documents,
        window_lengths=windows,
        mean_window_length=float(windows[visible].sum(dtype=np.float64)) / documents,
        sessions=sessions,
        session_lengths=session_lengths,
        session_count=session_count,
        mean_session_length=float(session_lengths.sum(dtype=np.float64)) / max(session_count, 1),
        participants=tuple(names.senders.values[code] for code in np.flatnonzero(senders).tolist()),
        has_assistant=assistant >= 0 and bool((columns.role[visible] == assistant).any()),
        span=(int(moments.min()), int(moments.max())),
    )


def _sample(view: PartitionView, visible: BoolArray, links: Links) -> IntArray:
    """Sample rows with neighbours, ordered by record number: the same rows, however the view grew."""
    rows = np.flatnonzero(visible & ((links.previous >= 0) | (links.following >= 0)))
    return rows[np.argsort(view.columns.number[rows], kind="stable")][:: len(rows) // _SAMPLE + 1]


def _apart(view: PartitionView, visible: BoolArray, links: Links, sample: IntArray) -> FloatArray:
    """Per row, its dissimilarity to its neighbours; 0 if unknown."""
    vectors, size = view.vectors, view.size
    some = vectors.whole[sample]
    some = some[some >= 0]
    if not len(some):
        return np.zeros(size, np.float32)
    there = visible & (vectors.whole >= 0)
    mean = vectors.rows[some].mean(axis=0)
    usual, present, to_following = (np.zeros(size + 1, np.float32) for _ in range(3))
    usual[:size], _ = cosines_of(vectors, mean, there)
    present[:size] = there
    to_following[:size] = links.to_following
    before, after = present[links.previous], present[links.following]
    products = to_following[links.previous] * before + links.to_following * after
    around = usual[links.previous] + usual[links.following]
    return context_unlikeness(products, before + after, usual[:size], around, float(mean @ mean)) * there


def _visible_mask(view: PartitionView, scope: Scope, wanted: SearchOptions) -> BoolArray:
    rows = view.alive & time_mask(view, wanted) & scope_mask(view, scope)
    if not wanted.quarantined:
        rows &= ~quarantine_mask(view)
    hidden = [code for plane in _hidden_planes(wanted) if (code := view.names.planes.find(plane)) >= 0]
    if hidden:
        rows &= ~np.isin(view.columns.plane, hidden)
    if wanted.condition is not None:
        rows &= condition_mask(view, wanted.condition)
    return rows


def _hidden_planes(wanted: SearchOptions) -> frozenset[Plane]:
    """The hidden planes: their rows are not found, not counted, and are no neighbours."""
    return GUARDED_PLANES - (wanted.planes or frozenset())


def time_mask(view: PartitionView, wanted: SearchOptions) -> BoolArray:
    if wanted.as_of is None:
        return np.equal(view.columns.superseded_at, NEVER)
    moment = to_micros(wanted.as_of)
    return (view.columns.recorded_at <= moment) & (moment < view.columns.superseded_at)


def scope_mask(view: PartitionView, scope: Scope) -> BoolArray:
    mask: BoolArray = view.names.covered_by(scope)[view.columns.scope]
    return mask


def quarantine_mask(view: PartitionView) -> BoolArray:
    return np.equal(view.columns.status, view.names.statuses.find(Status.QUARANTINED))


def filter_masks(view: PartitionView, wanted: SearchOptions) -> dict[str, BoolArray]:
    """The mask of passing rows for each filter of the search, by filter name."""
    columns, names = view.columns, view.names
    message = columns.kind == MESSAGE
    masks: dict[str, BoolArray] = {}
    if wanted.kind is not None:
        masks["kind"] = message if wanted.kind is HitKind.MESSAGE else ~message
    planes = [names.planes.find(plane) for plane in wanted.planes or OPEN_PLANES]
    # Messages have no plane, except those derived from private records.
    if len(names.planes.values):
        masks["planes"] = (columns.plane < 0) | np.isin(columns.plane, planes)
    if wanted.sender is not None:
        masks["sender"] = columns.sender == names.senders.find(wanted.sender)
    if wanted.role is not None:
        masks["role"] = columns.role == names.roles.find(wanted.role)
    if wanted.source is not None:
        masks["source"] = columns.source == names.sources.find(wanted.source)
    if wanted.said_from is not None:
        masks["said_from"] = columns.said_at >= to_micros(wanted.said_from)
    if wanted.said_to is not None:
        masks["said_to"] = columns.said_at < to_micros(wanted.said_to)
    if wanted.valid_at is not None:
        moment = to_micros(wanted.valid_at)
        masks["valid_at"] = (columns.valid_from <= moment) & (moment < columns.valid_to)
    return masks


def candidate_rows(seen: VisibleView, wanted: SearchOptions) -> IntArray:
    """The visible rows that pass the search's filters: its candidates."""
    rows = seen.visible
    for passed in filter_masks(seen.view, wanted).values():
        rows = rows & passed
    return np.flatnonzero(rows)
