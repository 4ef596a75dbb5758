"""The public pages: `/` and `/docs`. They show nothing of the store, load nothing, and their examples work."""

from __future__ import annotations

import html
import re
import shlex
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from served import Gateway, Visitor

import holdfast
from holdfast.gateway.pages.reference import FIRST

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
PAGES = ("/", "/docs", "/docs?q=forget")


def test_a_program_gets_json_and_a_browser_a_page(gateway: Gateway) -> None:
    told = gateway.http.get("/")
    assert told.json()["name"] == "Holdfast"
    assert told.json()["version"] == holdfast.__version__
    for link in told.json()["links"].values():
        assert gateway.http.get(link).status_code == 200
    page = gateway.http.get("/", headers=BROWSER)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["vary"] == told.headers["vary"] == "Accept"


def test_a_wrong_address_is_a_page_for_a_browser_and_a_problem_for_a_program(gateway: Gateway) -> None:
    for path in ("/nowhere", "/memories/add/more", "/api/v2/memory/none"):
        page = gateway.http.get(path, headers=BROWSER)
        assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert path not in page.text
        for link in re.findall(r' href="(/[^"]*)"', page.text):
            assert gateway.http.get(link, headers=BROWSER).status_code == 200
        problem = gateway.http.get(path, headers={"Accept": "*/*"})
        assert (problem.status_code, problem.headers["vary"]) == (404, "Accept")
        assert "json" in problem.headers["content-type"]
    # A route that exists is a program's: its refusals stay problems.
    assert "json" in gateway.http.get("/memories", headers=BROWSER).headers["content-type"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_the_same_for_everybody_and_shows_nothing_of_the_store(
    gateway: Gateway, visitor: Visitor, path: str
) -> None:
    before = gateway.http.get(path, headers=BROWSER)
    visitor.add("A heron canary stands in the store.")
    for headers in ({}, visitor.headers, gateway.operator):
        after = gateway.http.get(path, headers={**BROWSER, **headers})
        assert (after.status_code, after.text) == (200, before.text)
    assert visitor.key not in before.text
    assert gateway.token not in before.text


@pytest.mark.parametrize("path", PAGES)
def test_a_page_has_no_script_and_loads_nothing(gateway: Gateway, path: str) -> None:
    page = gateway.http.get(path, headers=BROWSER)
    policy = page.headers["content-security-policy"].split("; ")
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"<script|<img|<iframe|@import|url\(| on\w+=| style=", page.text)
    places = re.findall(r' (?:src|href|action)="([^"]*)"', page.text)
    assert places
    own = r"#.*|\./|docs|openapi\.json|healthz|readyz|data:image/svg\+xml,.*"
    assert [place for place in places if not re.fullmatch(own, place)] == []


def test_the_reference_has_every_operation_and_schema_once_with_the_main_routes_first(gateway: Gateway) -> None:
    document: dict[str, Any] = gateway.http.get("/openapi.json").json()
    page = gateway.http.get("/docs", headers=BROWSER).text
    anchors = re.findall(r' id="([^"]+)"', page)
    assert max(Counter(anchors).values()) == 1
    ids = [operation["operationId"] for found in document["paths"].values() for operation in found.values()]
    wanted = {*ids, *(f"schema-{name}" for name in document["components"]["schemas"])}
    assert wanted <= set(anchors)
    assert [each for each in anchors if each in ids][: len(FIRST)] == list(FIRST)
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(anchors)


def test_a_search_shows_what_contains_all_words(gateway: Gateway) -> None:
    def found(query: str) -> set[str]:
        page = gateway.http.get("/docs", params={"q": query}, headers=BROWSER)
        return {each for each in re.findall(r'<div id="(\w+)"', page.text) if not each.startswith("schema")}

    assert {"searchMemories", "recallMemories"} <= found("min_score memories")
    assert found("GET /memories/{record_id}/history") == {"getMemoryHistory"}
    assert found("no such thing") == set()
    assert gateway.http.get("/docs", params={"q": "x" * 101}).status_code == 422


def test_what_is_searched_is_text_on_the_page(gateway: Gateway) -> None:
    query = '"><script>alert(1)</script>'
    page = gateway.http.get("/docs", params={"q": query}, headers=BROWSER).text
    assert "<script" not in page
    assert f'value="{html.escape(query)}"' in page


def examples(page: str) -> list[tuple[str, str, dict[str, str], bytes | None]]:
    """The method, URL, headers and body of each command for curl on a page."""
    found = []
    for command in map(html.unescape, re.findall(r"<pre>(curl [^<]+)</pre>", page)):
        words = shlex.split(command.replace("\\\n", " "))
        values = {
            option: [value for name, value in pairwise(words) if name == option] for option in ("-H", "-d", "-F", "-sX")
        }
        headers = dict(each.split(": ", 1) for each in values["-H"])
        body = values["-d"][0].encode() if values["-d"] else None
        if values["-F"]:
            headers["Content-Type"] = "multipart/form-data; boundary=b"
            head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="notes.md"\r\n\r\n'
            body = head + b"# Notes\r\n--b--\r\n"
        method = values["-sX"][0] if values["-sX"] else "GET" if body is None else "POST"
        url = next(word for word in words if word.startswith("http"))
        found.append((method, url, headers, body))
    return found


def test_the_start_page_exports_what_its_python_reads(gateway: Gateway) -> None:
    page = html.unescape(gateway.http.get("/", headers=BROWSER).text)
    read = re.findall(r'os\.environ\["(\w+)"\]', page)
    assert read
    assert all(f"export {name}=" in page for name in read)


# Operations of a runtime that need a model, another profile, or a snapshot.
LACKING = {"maintain": (405,), "replay": (405,), "import": (422,)}


def test_the_examples_work(gateway: Gateway) -> None:
    """Those of the first routes succeed one after the other. Others may lack their record, but are understood."""
    tried = examples(gateway.http.get("/docs", headers=BROWSER).text)
    assert len(tried) > 140
    keys = {"$TOKEN": gateway.token}
    for number, (method, url, headers, body) in enumerate(tried):
        assert url.startswith(gateway.url)
        sent = {name: re.sub(r"\$\w+", lambda match: keys[match.group()], value) for name, value in headers.items()}
        answer = gateway.http.request(method, url, headers=sent, content=body)
        if method == "DELETE" and url.endswith("/users/ana"):
            answer = gateway.http.post("/users", json={"user_id": "ana"}, headers=gateway.operator)
        if "/users" in url:
            keys["$KEY"] = answer.json().get("user_key", keys.get("$KEY"))
        lacking = LACKING.get(url.removeprefix(f"{gateway.url}/memory/"), ())
        understood = (200, 201) if number < len(FIRST) else (200, 201, 204, 404, 409, *lacking)
        assert answer.status_code in understood, f"{method} {url} {body!r}: {answer.text}"
        assert "this route" not in answer.text, f"{method} {url}: {answer.text}"
