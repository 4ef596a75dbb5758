"""The public pages in Chromium, in both themes: readable, without errors, and without a request to another host."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from playwright.sync_api import Browser, expect
from served import Gateway

from browser import THEMES, Tab, Theme, chromium, tab

READABLE = 4.5  # of WCAG 2, level AA


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def light(browser: Browser, gateway: Gateway) -> Iterator[Tab]:
    with tab(browser, gateway.url) as opened:
        yield opened


@pytest.mark.parametrize(("theme", "width"), list(product(THEMES, (1280, 390))))
def test_pages_are_readable_in_both_themes_and_on_a_telephone(
    browser: Browser, gateway: Gateway, theme: Theme, width: int
) -> None:
    with tab(browser, gateway.url, theme, width) as opened:
        for name, path in (("start", "/"), ("docs", "/docs"), ("operation", "/docs#searchMemories")):
            opened.open(path)
            opened.picture(f"{name}-{theme}-{width}")
            assert opened.overflow() <= 0, path
            contrast = opened.contrast()
            assert len(contrast) > 5
            assert {each: ratio for each, ratio in contrast.items() if ratio < READABLE} == {}, path


def test_the_themes_differ(browser: Browser, gateway: Gateway) -> None:
    grounds = set()
    for theme in THEMES:
        with tab(browser, gateway.url, theme) as opened:
            opened.open("/")
            grounds.add(opened.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


def test_a_reader_gets_from_the_start_to_a_route(light: Tab) -> None:
    light.open("/")
    light.page.get_by_role("link", name="API reference").click()
    details = light.page.locator("#addMemories")
    expect(details).to_be_hidden()
    light.page.locator("summary", has_text="/memories/add").first.click()
    expect(details).to_be_visible()
    expect(details.locator("pre")).to_contain_text("curl")
    details.get_by_role("link", name="AddMessagesRequest").click()
    expect(light.page.locator("#schema-AddMessagesRequest")).to_be_in_viewport()


def test_a_wrong_address_leads_on(light: Tab) -> None:
    light.open("/nowhere")
    light.picture("missing")
    assert light.overflow() <= 0
    assert min(light.contrast().values()) >= READABLE
    assert [each for each in light.complaints if "404" not in each] == []
    light.complaints.clear()
    light.page.get_by_role("link", name="API reference").click()
    expect(light.page.get_by_role("heading", name="API reference")).to_be_visible()


def test_a_link_to_a_route_opens_it(light: Tab) -> None:
    light.open("/docs#searchMemories")
    expect(light.page.locator("#searchMemories")).to_be_in_viewport()


def test_a_reader_searches_the_reference(light: Tab) -> None:
    light.open("/docs")
    light.page.get_by_role("searchbox").fill("GET /memories/{record_id}/history")
    light.page.keyboard.press("Enter")
    expect(light.page.locator("#getMemoryHistory")).to_be_visible()
    assert light.page.locator("details").count() <= 3
    light.page.get_by_role("link", name="Show everything").click()
    expect(light.page.locator("summary", has_text="/memories/add").first).to_be_visible()
    light.picture("search")
