"""The control plane over HTTP: `/companies/{company_id}/memory/…`, a module per group of routes."""

from __future__ import annotations

from fastapi import APIRouter

from holdfast.gateway.authentication import Authenticator
from holdfast.gateway.control import bindings, tools
from holdfast.gateway.control.dependencies import router_of
from holdfast.gateway.control.routes import ROUTES
from holdfast.gateway.control.verb_routes import add_routes


def routers(auth: Authenticator) -> tuple[APIRouter, ...]:
    plain = {tag: router_of(tag) for tag in ROUTES}
    for tag, table in ROUTES.items():
        add_routes(plain[tag], auth, table)
    return (*plain.values(), bindings.router(auth), tools.router(auth))
