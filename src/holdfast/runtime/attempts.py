"""One attempt at a background job: the effect that ends it, or its failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from holdfast.errors import HoldfastError
from holdfast.ports import Transaction

Effect = Callable[[Transaction], None]


class AttemptFailed(Exception):
    """Raised by a handler to add details to an error. If it is `final`, the job is not retried."""

    def __init__(self, error: HoldfastError, about: object = None, *, final: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.about = about
        self.final = final


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of an attempt. `code` is None if the job's workers died repeatedly."""

    code: str | None
    about: object
    last: bool
    at: datetime
