"""The control plane over HTTP: `/companies/{company_id}/memory/…`, a module per group of routes."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.control import bindings, credentials, tools
from holdfast.gateway.control.routes import ROUTES
from holdfast.gateway.control.verb_routes import add_routes


def routers(auth: Authenticator) -> tuple[APIRouter, ...]:
    plain = (add_routes(auth, tag, table) for tag, table in ROUTES.items())
    return (*plain, *(module.router(auth) for module in (bindings, credentials, tools)))
