"""The control plane over HTTP: `/companies/{company_id}/memory/…`, a module per group of routes."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast.gateway.access import Door
from holdfast.gateway.companies import bindings, costs, credentials, hooks, jobs, records, tools, trail


def routers(auth: Door) -> tuple[APIRouter, ...]:
    return tuple(module.router(auth) for module in (bindings, records, hooks, trail, jobs, costs, credentials, tools))
