"""The inspector's page in a Chromium of the system."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from endpoints import listening
from inspected import inspect
from playwright.sync_api import Browser, Page, expect, sync_playwright

from topicloom.hosting import CompiledSessionGraph

OPTIONS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync"
).split()


@contextmanager
def launch() -> Iterator[Browser]:
    """The browser; tests of the page are skipped without one."""
    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium here: THE PAGE IS NOT TESTED")
    expect.set_options(timeout=30_000)  # a loaded machine takes its time
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@contextmanager
def open_page(browser: Browser, graph: CompiledSessionGraph, **options: Any) -> Iterator[Page]:
    """The page, opened with the key; nothing may be said on its console."""
    given = {"viewport": {"width": 1280, "height": 800}, "locale": "en", **options}
    with listening(inspect(graph)) as base:
        context = browser.new_context(**given)
        page, said = context.new_page(), list[str]()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(base.removesuffix("v1") + "?key=secret")
        expect(page.locator("[data-id]").last).to_be_visible()
        assert "key" not in page.url
        yield page
        assert not said, said
        context.close()
