"""Commands that a message advises: whoever pastes one acts where the command acted that advised it."""

from __future__ import annotations

from holdfast.cli.options import StoreOptions
from holdfast.cli.safety import typed
from holdfast.domain.location import shown


def advised(
    chosen: StoreOptions,
    path: str,
    *arguments: str,
    company: str | None = None,
    space: str | None = None,
    kind: str | None = None,
) -> str:
    """`holdfast …`, quoted for a shell, with the store and the company or space that were given.

    A password in the place of a store is not shown, not even here: then it must be typed again.
    """
    store = None if chosen.store is None else shown(chosen.store)
    named = {"--kind": kind, "--company": company, "--space": space, "--store": store}
    options = [word for name, value in named.items() if value is not None for word in (name, typed(value))]
    words = [typed(each) for each in arguments]
    if any(each.startswith("-") for each in arguments):  # which would be taken for options
        return " ".join(["holdfast", path, *options, "--", *words])
    return " ".join(["holdfast", path, *words, *options])
