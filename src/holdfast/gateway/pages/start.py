"""The page at `/`, and the one at addresses without a page."""

from __future__ import annotations

import holdfast
from holdfast.gateway.pages.html import Markup, element, inline, join, prose

_LEAD = "One memory for AI agents. It keeps what was said, learns memories from it, and finds what bears on a question."
_LINKS = (
    ("docs", "API reference", "Every route with its parameters, its responses and an example."),
    ("openapi.json", "OpenAPI document", "The same for programs. Clients in other languages are generated from it."),
    ("healthz", "Health", "Whether the process responds."),
    ("readyz", "Readiness", "Whether the store responds, too."),
)
# Exported, because the example in Python reads it.
_CREATE = "export KEY=$(holdfast user create ana)"
_PUBLIC = "This page is public and shows nothing of the store. Every other route but those linked here needs a key."


def content(base: str) -> Markup:
    """The page of a service at this URL."""
    return element(
        "main",
        element("h1", "Holdfast", " ", element("span", holdfast.__version__, class_="version")),
        element("p", _LEAD, class_="lead"),
        element("ul", *(_card(*link) for link in _LINKS), class_="cards"),
        element("h2", "Three requests"),
        _step("Create a user, in the folder of the store. The key is printed once.", _CREATE),
        _step("Add a message.", _request(base, "add", '{"messages": "I moved to Lisbon last week."}')),
        _step("Ask for it.", _request(base, "search", '{"query": "Where does Ana live?"}')),
        element("h2", "In Python"),
        element("pre", _python(base)),
        element("p", inline("The tutorial and all guides are in the folder `docs/` of the source."), class_="quiet"),
        element("p", _PUBLIC, class_="quiet"),
        class_="start",
    )


def not_found(prefix: str) -> Markup:
    """The page of an address at which there is none."""
    return element(
        "main",
        element("h1", "There is no page here"),
        element("p", "The address is wrong, or it is a route for programs that a browser cannot open.", class_="lead"),
        element("ul", _card(f"{prefix}/", "Start", _LEAD), _card(f"{prefix}/docs", *_LINKS[0][1:]), class_="cards"),
        class_="start",
    )


def _card(target: str, name: str, does: str) -> Markup:
    return element("li", element("a", element("strong", name), element("span", does), href=target))


def _step(does: str, command: str) -> Markup:
    return join(prose(does), element("pre", command))


def _request(base: str, route: str, body: str) -> str:
    return (
        f'curl -s {base}/memories/{route} \\\n  -H "Authorization: Bearer $KEY" \\\n'
        f"  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    )


def _python(base: str) -> str:
    return (
        "import os\nimport holdfast\n\n"
        f'with holdfast.open("{base}", key=os.environ["KEY"]) as memory:\n'
        '    memory.add("I moved to Lisbon last week.", subject="ana")\n'
        '    print(memory.recall("Where does Ana live?", subject="ana").message)'
    )
