"""Writes HTML. Text is escaped unless it is `Markup`, which only the functions here make."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib import resources
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

STYLE = resources.files(__package__).joinpath("page.css").read_text("utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode("ascii")
_HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src data:;"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Vary": "Accept",
}
# A browser that finds no icon in a page asks for one.
_ICON = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='16'"
    " rx='4' fill='%231f6f5c'/%3E%3Cpath d='M5 3v10M11 3v10M5 8h6' stroke='%23fff' stroke-width='2'/%3E%3C/svg%3E"
)
_EMPTY = frozenset({"input", "meta", "link"})
_CODE = re.compile(r"`([^`]+)`")


class Markup(NamedTuple):
    """HTML that needs no escaping."""

    html: str


Part = str | Markup | None


def element(name: str, /, *content: Part, **attributes: str | bool | None) -> Markup:
    """An element. `class_` is its class; an attribute that is None or False is left out."""
    written = "".join(_attribute(each.strip("_").replace("_", "-"), value) for each, value in attributes.items())
    start = f"<{name}{written}>"
    return Markup(start if name in _EMPTY else f"{start}{join(*content).html}</{name}>")


def join(*parts: Part) -> Markup:
    return Markup("".join(each.html if isinstance(each, Markup) else html.escape(each or "") for each in parts))


def prose(text: str) -> Markup:
    """Paragraphs of a docstring, with code in backticks."""
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n")]
    return join(*(element("p", inline(each)) for each in paragraphs if each))


def inline(text: str) -> Markup:
    """Text with code in backticks."""
    parts = _CODE.split(text)
    return join(*(element("code", part) if index % 2 else part for index, part in enumerate(parts)))


def accepts_page(request: Request) -> bool:
    """True for a browser that opens a link, and not for a program."""
    return "text/html" in request.headers.get("accept", "")


def page(title: str, *content: Part, status: int = 200) -> Response:
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href=_ICON),
        Markup(f"<style>{STYLE}</style>"),
    )
    body = element("html", head, element("body", *content), lang="en")
    return Response(f"<!doctype html>\n{body.html}\n", status, media_type="text/html", headers=_HEADERS)


def _attribute(name: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(value)}"'
