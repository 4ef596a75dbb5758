"""Earlier names of public types and fields. They work for one more version, with a `DeprecationWarning`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar

C = TypeVar("C", bound=type)


def renamed_fields(**renamed: str) -> Callable[[C], C]:
    """Decorate a dataclass whose fields had these names: they can still be read, and given by keyword."""

    def decorate(kind: C) -> C:
        build: Callable[..., None] = vars(kind)["__init__"]

        @wraps(build)
        def build_by_any_name(self: object, *args: Any, **kwargs: Any) -> None:
            for old, new in renamed.items():
                if old in kwargs and new not in kwargs:
                    _warn(f"{kind.__name__}.{old}", new)
                    kwargs[new] = kwargs.pop(old)
            build(self, *args, **kwargs)

        setattr(kind, "__init__", build_by_any_name)  # noqa: B010 - mypy forbids the assignment
        for old, new in renamed.items():
            setattr(kind, old, _renamed_property(kind.__name__, old, new))
        return kind

    return decorate


def renamed_types(module: str, types: Mapping[str, type]) -> Callable[[str], type]:
    """Return the `__getattr__` of a module whose types had these names."""

    def find(name: str) -> type:
        if name not in types:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        _warn(f"{module}.{name}", types[name].__name__)
        return types[name]

    return find


def _renamed_property(owner: str, old: str, new: str) -> property:
    def read(self: object) -> Any:
        _warn(f"{owner}.{old}", new)
        return getattr(self, new)

    return property(read)


def _warn(old: str, new: str) -> None:
    warnings.warn(f"{old} is now {new}", DeprecationWarning, stacklevel=3)
