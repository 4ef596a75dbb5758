"""A wrapper for keys that never shows them by accident: not in a repr, a log, an error or a pickle."""

from __future__ import annotations

from typing import NoReturn

from holdfast.errors import InvalidInput


class Secret:
    """A key. Only `reveal` returns it, for the code that sends it."""

    __slots__ = ("_value",)

    def __init__(self, value: object, field: str = "key") -> None:
        if not isinstance(value, str):
            raise InvalidInput(field, f"expected text, got {type(value).__name__}")
        if not value.strip():
            raise InvalidInput(field, "is empty; leave it out or give it a value")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise InvalidInput(field, "may hold printable ASCII characters only, and no spaces; check it for typos")
        self._value = value

    def revealed(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key cannot be pickled; pass it to the other process by other means")
