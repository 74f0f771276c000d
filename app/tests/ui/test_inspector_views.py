"""Each view of the inspector in a real Chromium: no finding of axe, no sideways scroll, a picture.

With `PICTURES=docs/images` the pictures are of the packaged sample, and go there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from browsing import open_page
from inspected import NAME, THREAD, open_folder, open_sample
from langchain_core.messages import HumanMessage
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from topicloom import Fact, FactChanges, Memory, ReflectionStore, TurnOptions
from topicloom.hosting import CompiledSessionGraph

pytestmark = pytest.mark.slow
AXE = Path(__file__).parents[3] / "ui" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = os.environ.get("PICTURES")


@pytest.fixture(scope="module")
def shown(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompiledSessionGraph]:
    """The session, or the sample if pictures of it are wanted; with two facts."""
    paid = {"prices": {"responder": (1, 1, 1)}}
    if PICTURES:
        opened = open_sample(tmp_path_factory.mktemp("shown"))
    else:
        opened = open_folder(filled, settings=paid)
    with opened as graph:
        assert graph.store is not None
        if not PICTURES:  # a message that scrolls, in a topic
            long = "The kitchen worktop of oak costs 140 euros. " * 200
            for text in (long, "And the ferry?"):
                options = TurnOptions(answer=False, keep_messages=0)
                graph.invoke({"messages": [HumanMessage(text)]}, THREAD, context=options)
            Memory.of(graph, THREAD).move("m29", "t1")
        said = {53: "Mum has gout: no offal, no seafood", 221: "Nell speaks at school on 9 May"}
        facts = tuple(Fact(text, (f"m{n}",), "2026-04-23") for n, text in said.items())
        ReflectionStore(graph.store).change_facts(NAME, FactChanges(facts))
        yield graph


def walk(page: Page) -> Iterator[str]:
    """Go through the views, in any language; yields the name of each."""
    page.locator(".edit").click()
    page.locator("#say").fill("When is the half marathon?")
    page.locator(".composer .main").click()
    expect(page.locator("#why .window").first).to_be_visible()
    expect(page.locator("#why [aria-busy]")).to_have_count(0)
    yield "ui"
    page.keyboard.press("Escape")
    page.locator(".widen").click()
    expect(page.locator(".spoken")).to_be_visible()
    yield "ui-turn"
    page.keyboard.press("Escape")
    page.locator(".developer").click()
    page.locator("#missed").fill("m5")
    expect(page.locator(".why-not a")).to_be_visible()
    page.locator(".whole summary").click()
    page.locator(".fold summary").last.click()
    expect(page.locator(".whole p").first).to_be_visible()
    page.locator(".why-not").evaluate("e => e.scrollIntoView()")
    yield "ui-why"
    page.locator("[data-topic]" if PICTURES else "[data-topic=t1]").first.click()
    page.locator("[data-line] input").first.check()
    page.locator("[data-line] input").nth(1).check()
    yield "ui-topic"
    page.locator(".selection button").first.click()
    expect(page.locator(".naming input")).to_be_focused()
    yield "split"
    page.keyboard.press("Escape")
    page.locator(".opened + .scroll .tools button").first.click()
    expect(page.locator(".opened .naming input")).to_be_focused()
    yield "rename"
    page.keyboard.press("Escape")
    page.locator(".opened + .scroll .danger").first.click()
    yield from open_dialog(page, "forget")
    page.locator(".back").click()
    page.locator(".tabs [role=tab]").nth(1).click()
    expect(page.locator("[data-fact]")).to_have_count(2)
    yield "ui-facts"
    page.locator("[data-fact] .acts button").nth(1).click()
    expect(page.locator("[data-fact] input")).to_be_focused()
    yield "correct a fact"
    page.keyboard.press("Escape")
    page.locator(".tabs [role=tab]").nth(2).click()
    yield "changes"
    page.locator(".tabs [role=tab]").nth(3).click()
    page.locator(".what-if input").first.fill("0.6")
    yield "ui-what-if"
    page.locator(".bar .exchange").click()
    yield from open_dialog(page, "in and out")
    page.locator(".bar .keys").click()
    yield from open_dialog(page, "keys")
    page.locator(".moments input").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".moments.past")).to_be_visible()
    page.locator(".moments button").last.click()
    expect(page.locator(".beside .line").first).to_be_visible()
    yield from open_dialog(page, "ui-beside")
    page.locator(".moments button").first.click()
    expect(page.locator(".moments.past")).to_have_count(0)
    page.locator("[type=search]").fill("marathon")
    expect(page.locator(".found mark").first).to_be_visible()
    yield "ui-search"


def open_dialog(page: Page, view: str) -> Iterator[str]:
    expect(page.locator("dialog")).to_be_visible()
    yield view
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


SET = """([theme, language]) => {
  document.documentElement.dataset.theme = theme;
  const button = document.querySelector(".bar [lang]");
  if (document.documentElement.lang !== language) button.click();
}"""
FINDINGS = """async () => {
  const place = document.querySelector("dialog") ?? document;
  return (await axe.run(place)).violations.map((v) =>
    [v.id, v.nodes.slice(0, 3).map((node) => node.html.slice(0, 120))]);
}"""


def check(page: Page, view: str) -> Iterator[tuple[str, str]]:
    """No finding of axe, whatever its weight, in each theme and language, and nothing is wider than
    the page; yields these, English in light the last."""
    for theme, language in product(("dark", "light"), ("zh", "en")):
        page.evaluate(SET, [theme, language])
        expect(page.locator("html")).to_have_attribute("lang", language)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        if AXE.exists():
            found: list[Any] = page.evaluate(FINDINGS)
            assert not found, (view, theme, language)
        yield theme, language


def shoot(page: Page, folder: Path, name: str) -> None:
    """A picture in few colours, so that it is small."""
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    file = folder / f"{name}.png"
    picture.quantize(256, dither=Image.Dither.NONE).save(file, optimize=True)
    assert file.stat().st_size < 120_000, name


def test_each_view_of_the_inspector_is_whole_and_accessible(
    browser: Browser, shown: CompiledSessionGraph, tmp_path: Path
) -> None:
    folder = Path(PICTURES) if PICTURES else tmp_path
    with open_page(browser, shown) as page:
        if AXE.exists():
            page.evaluate(AXE.read_text("utf-8"))
        for view in walk(page):
            for _ in check(page, view):
                pass
            if view == "ui-why" and not PICTURES:
                expect(page.locator("#why .calls")).to_contain_text("cost")
            if view.startswith("ui"):
                shoot(page, folder, view)
        page.set_viewport_size({"width": 390, "height": 800})
        for number, column in enumerate(("topics", "chat", "why", "time")):
            page.locator(".switch [role=tab]").nth(number).click()
            expect(page.locator(f"#{column}")).to_be_visible()
            for shown_in in check(page, column):
                if column == "chat" and shown_in == ("dark", "zh"):
                    shoot(page, folder, "ui-phone")


def test_findings_are_looked_for() -> None:
    if not AXE.exists():
        pytest.skip("no ui/node_modules (npm ci): WHETHER ALL CAN USE THE PAGE IS NOT TESTED")
