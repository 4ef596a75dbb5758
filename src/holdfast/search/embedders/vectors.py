"""Vectors as other code returns them: lists, arrays and tensors of any library. Unusable ones are explained."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Iterable, Mapping, Set, Sized
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.domain.ranking import FloatArray

MAX_DIMENSIONS = 16_000  # of PostgreSQL's half-precision vectors
ONE_TEXT = "if it takes a single text, pass `lambda texts: [function(text) for text in texts]`"
_NUMBERS = "fiu"  # kinds of NumPy's types
_NO_VECTORS = (Real, str, bytes, Mapping, Set)  # a set has no order


class BadVectors(Exception):
    """The value is not one vector per text. The message says what it is instead, as in "returned None"."""


def read_vectors(made: object, count: int) -> FloatArray:
    """Return `count` unit vectors as rows; raise `BadVectors` if there are others, or none."""
    rows = [_read_row(row, number, count) for number, row in enumerate(_split_rows(made, count), 1)]
    if len(rows) != count:
        raise BadVectors(f"returned {_plural(len(rows), 'vector')} for {_plural(count, 'text')}")
    lengths = sorted({len(row) for row in rows})
    if len(lengths) > 1:
        raise BadVectors(f"returned vectors of different lengths, {lengths[0]} and {lengths[-1]}")
    return _scale_to_unit(np.stack(rows))


def _split_rows(made: Any, count: int) -> list[Any]:
    made = _to_array(made)
    if isinstance(made, np.ndarray):
        if made.ndim == 1 and made.dtype != object:
            raise BadVectors(_single_vector(len(made), count))
        if made.ndim == 0 or made.ndim > 2:
            raise BadVectors(f"returned an array of shape {made.shape}")
        if len(made) > count:
            raise BadVectors(f"returned {len(made)} vectors for {_plural(count, 'text')}")
        return list(made)
    if made is None or isinstance(made, _NO_VECTORS) or not isinstance(made, Iterable):
        raise BadVectors(f"returned {_describe(made)}")
    # A generator may have no end.
    rows = list(islice(made, count + 1))
    if rows and all(isinstance(row, Real) for row in rows):
        raise BadVectors(_single_vector(len(made) if isinstance(made, Sized) else None, count))
    if len(rows) > count:
        raise BadVectors(f"returned more than {_plural(count, 'vector')} for {_plural(count, 'text')}")
    if any(inspect.isawaitable(row) for row in rows):
        for row in rows:
            if inspect.iscoroutine(row):
                row.close()
        raise BadVectors("returned coroutines instead of vectors (await them first, as with asyncio.gather)")
    return rows


def _read_row(row: Any, number: int, count: int) -> NDArray[np.float64]:
    where = f"vector {number} of {count}"
    row = _to_array(row)
    if not isinstance(row, np.ndarray):
        if isinstance(row, _NO_VECTORS) or not isinstance(row, Iterable):
            raise BadVectors(f"returned {_describe(row)} as {where}")
        numbers = list(islice(row, MAX_DIMENSIONS + 1))
        try:
            row = np.array(numbers)
        except (ValueError, TypeError, OverflowError):  # nested lists of different lengths
            raise BadVectors(f"returned something other than numbers in {where}") from None
    if row.ndim == 2 and 1 in row.shape:
        raise BadVectors(f"returned an array of shape {row.shape} as {where}; flatten it")
    if row.ndim != 1:
        raise BadVectors(f"returned an array of shape {row.shape} as {where}")
    if not 0 < len(row) <= MAX_DIMENSIONS:
        raise BadVectors(f"returned {len(row) or 'no'} numbers as {where}; 1 to {MAX_DIMENSIONS:,} are possible")
    if row.dtype.kind not in _NUMBERS and not (row.dtype == object and all(isinstance(each, Real) for each in row)):
        raise BadVectors(f"returned something other than numbers in {where}")
    try:
        found: NDArray[np.float64] = row.astype(np.float64)
    except OverflowError:
        raise BadVectors(f"returned a number beyond all limits in {where}") from None
    if not np.isfinite(found).all():
        raise BadVectors(f"returned NaN or infinity in {where}")
    if not found.any():
        raise BadVectors(f"returned only zeros as {where}; a vector needs a direction")
    return found


def _scale_to_unit(rows: NDArray[np.float64]) -> FloatArray:
    # First by the largest number: the squares of very large or small ones are infinite or zero.
    rows = rows / np.abs(rows).max(axis=1, keepdims=True)
    unit: FloatArray = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _to_array(value: Any) -> Any:
    """Convert the arrays and tensors of any library; return other values as they are."""
    if hasattr(value, "toarray"):  # a sparse matrix of SciPy
        value = value.toarray()
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor of torch may have a gradient, or be on a GPU
        value = value.detach().cpu()
    if not (hasattr(value, "__array__") or hasattr(value, "__array_interface__")):
        return value
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):  # NumPy has no bfloat16
        return np.asarray(value.tolist())


def _single_vector(length: int | None, count: int) -> str:
    numbers = "numbers" if length is None else _plural(length, "number")
    hint = f" ({ONE_TEXT})" if count > 1 else ""
    return f"returned a single vector of {numbers} for {_plural(count, 'text')}{hint}"


def _describe(value: object) -> str:
    if isinstance(value, AsyncIterable):
        return "an async generator"
    kind = type(value).__name__
    return {"NoneType": "None", "str": "a text", "dict": "a dictionary"}.get(kind, f"{_article(kind)} {kind}")


def _article(noun: str) -> str:
    return "an" if noun[:1].lower() in "aeiou" else "a"


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
