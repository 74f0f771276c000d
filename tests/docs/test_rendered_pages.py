"""The site as a reader sees it at 1,280 pixels: nothing scrolls sideways, no name is broken.

With `PICTURES=FOLDER` the pictures of ten pages go there, to be looked at.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import copy, copytree

import pytest
from browsing import launch
from playwright.sync_api import Page

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
WIDTH = 1_280
PAGES = [
    "",
    "start/when-to-use/",
    "start/quickstart/",
    "concepts/overview/",
    "concepts/glossary/",
    "guides/agents/",
    "guides/serve/",
    "guides/cost/",
    "guides/import/",
    "guides/storage/",
    "reference/settings/",
    "reference/cli/",
    "reference/api/",
    "reference/api/graph/",
    "research/comparison/",
    "research/real-models/",
    "research/persons/",
    "research/recall/",
    "zh/concepts/",
    "zh/cost/",
    "zh/recipes/",
    "zh/other-systems/",
]
"""What people read first, and the pages with the widest code and tables."""
WIDER = """() => [...document.querySelectorAll("pre > code, .md-typeset__scrollwrap")]
    .filter(box => box.scrollWidth > box.clientWidth + 1).map(box => box.innerText.slice(0, 80))"""
BROKEN = """() => [...document.querySelectorAll("td:first-child code")]
    .filter(name => name.getClientRects().length > 1).map(name => name.innerText)"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    copy(ROOT / "mkdocs.yml", folder)
    copytree(ROOT / "docs", folder / "docs")
    zensical = Path(sys.executable).with_name("zensical")
    command = [str(zensical), "build", "--config-file", str(folder / "mkdocs.yml")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page of a laptop's width."""
    with launch() as browser:
        yield browser.new_page(viewport={"width": WIDTH, "height": 900})


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits(site: Path, page: Page, name: str) -> None:
    page.goto((site / name / "index.html").as_uri())
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
    assert page.evaluate(WIDER) == []
    assert page.evaluate(BROKEN) == []
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=Path(folder) / f"{name.strip('/').replace('/', '-') or 'home'}.png")


@pytest.mark.parametrize("name", ["guides/cost/", "zh/cost/"])
def test_the_cost_form_gives_what_the_example_of_the_page_does(
    site: Path, page: Page, name: str
) -> None:
    assert "**$0.33**" in (ROOT / "docs" / "guides" / "cost.md").read_text("utf-8")
    page.goto((site / name / "index.html").as_uri())
    page.fill("[name=turns]", "185")
    assert page.locator("[name=cheap-cost]").inner_text() == "$0.33"
    page.fill("[name=turns]", "370")
    assert page.locator("[name=cheap-cost]").inner_text() == "$0.65"


@pytest.mark.parametrize(
    ("name", "language", "search", "tabs"),
    [
        ("zh/quickstart/", "zh", "查找", ["首页", "入门", "概念", "指南", "参考", "研究"]),
        ("start/quickstart/", "en", "Search", ["Home", "Start", "Concepts", "Guides"]),
    ],
)
def test_the_words_around_a_page_are_in_its_language(
    site: Path, page: Page, name: str, language: str, search: str, tabs: list[str]
) -> None:
    page.goto((site / name / "index.html").as_uri())
    assert page.locator("html").get_attribute("lang") == language
    assert page.locator(".md-search").get_attribute("aria-label") == search
    shown = page.locator(".md-tabs__link").all_inner_texts()
    assert shown[: len(tabs)] == tabs
    drawer = page.locator(".md-nav--primary > ul > li > label, .md-nav--primary > ul > li > a")
    assert [text.strip() for text in drawer.all_text_contents()][: len(tabs)] == tabs
    for other in ("en", "zh"):
        link = page.locator(f"a.md-select__link[hreflang={other}]").get_attribute("href")
        assert link is not None
        assert (site / name / link / "index.html").is_file()
