"""The control plane over HTTP: `/companies/{company_id}/memory/…`, a module per group of routes."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.control import bindings, costs, credentials, hooks, jobs, operations, records, tools


def routers(auth: Authenticator) -> tuple[APIRouter, ...]:
    return tuple(
        module.router(auth) for module in (bindings, records, hooks, operations, jobs, costs, credentials, tools)
    )
