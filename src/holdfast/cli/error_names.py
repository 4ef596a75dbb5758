"""Errors name invalid input as it was typed: by its option or argument, not by the library's parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from holdfast.cli.options import typed_names
from holdfast.errors import InvalidInput

# Library field names that differ from a command's parameter names.
_ALIASES: Mapping[str, tuple[str, ...]] = {
    "binding": ("binding", "key"),
    "binding_key": ("binding", "key"),
    "expected_revision": ("revision",),
    "external_invoice_id": ("invoice",),
    "kind": ("hook",),
    "kinds": ("kind",),
    "occurred_at": ("at",),
    "planes": ("plane",),
    "provider": ("name",),
    "source_kind": ("source",),
    "space": ("company",),
    "subjects": ("subject",),
    "target_id": ("agent",),
    "text": ("drafts",),
    "type": ("type_",),
    "user_id": ("name",),
}


@contextmanager
def errors_as_typed(parameters: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Make `InvalidInput` errors name the option or argument as typed on the command line.

    `parameters` are the names of the command's parameters by the names that errors use, where they differ.
    """
    try:
        yield
    except InvalidInput as error:
        names = typed_names.get()
        name = next(
            (
                names[each]
                for each in (error.field, parameters.get(error.field, ""), *_ALIASES.get(error.field, ()))
                if each in names
            ),
            None,
        )
        if name is None:
            raise
        typed_names.set({})  # an outer block leaves the error as it is
        renamed = type(error)(name, error.problem)
        renamed.field = error.field  # programs see the same field name on every surface
        raise renamed from error
