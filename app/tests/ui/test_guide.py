"""The introduction on the sample: three steps, each of which does something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import inspected
import pytest
from browsing import open_page
from playwright.sync_api import Browser, Route, expect

from topicloom.hosting import CompiledSessionGraph
from topicloom_app import Conversation, find_sample
from topicloom_app.cli.replay import WINDOW
from topicloom_app.recordings.replay import load_first_conversation

GUIDE = Path(__file__).parents[3] / "ui" / "src" / "guide.tsx"
SAID, FORGOTTEN, NEXT = 53, 293, 371


@pytest.fixture(scope="module")
def sample() -> Conversation:
    return load_first_conversation(find_sample(), None)


def test_the_guide_names_messages_of_the_sample(sample: Conversation) -> None:
    text = GUIDE.read_text("utf-8")
    known = re.search(r'SAMPLE = "(\w+)", SAID = "m(\d+)", FORGOTTEN = "m(\d+)"', text)
    assert known
    assert known.groups() == (find_sample().stem, str(SAID), str(FORGOTTEN))
    assert "痛风" in sample.messages[SAID - 1].text
    assert sample.messages[FORGOTTEN - 1].text.startswith("你忘了吗")


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CompiledSessionGraph]:
    """The session that ships, as `topicloom ui` opens it."""
    monkeypatch.setattr(inspected, "NAME", find_sample().stem)
    with ZipFile(find_sample().with_suffix(".zip")) as packed:
        packed.extractall(tmp_path)
    with inspected.open_folder(tmp_path, settings={"window": WINDOW}) as graph:
        yield graph


@pytest.mark.slow
def test_each_step_does_something(browser: Browser, graph: CompiledSessionGraph) -> None:
    with open_page(browser, graph) as page:
        guide = page.locator(".guide")
        expect(page.locator(".model")).to_contain_text("and OPENAI_API_KEY, and start again.")
        expect(guide).to_contain_text("This page shows what topicloom remembers")
        page.locator(".edit").click()
        expect(guide.locator(".main")).to_have_text("1 Ask which illness Mum has")
        held: list[Route] = []
        page.route("**/turns?*", lambda route: held.append(route))
        guide.locator(".main").click()
        expect(guide).to_contain_text("The reply comes in a moment.")
        expect(guide.locator(".main")).to_be_disabled()
        held.pop().continue_()
        expect(page.locator("#why .head")).to_contain_text(f"m{NEXT}")
        expect(page.locator("[data-id]").last).to_be_in_viewport()
        expect(page.locator("#why .ground").first).to_be_visible()
        expect(guide).to_contain_text("The answer was said on 9 March.")
        asked = page.locator(f"[data-id=m{NEXT}] header b")
        expect(asked).to_have_text("You")
        page.get_by_role("button", name="中文").click()
        expect(asked).to_have_text("你")
        page.get_by_role("button", name="English").click()
        guide.locator(".main").click()
        expect(page.locator(f"[data-id=m{SAID}]")).to_be_focused()
        expect(page.locator(f"[data-id=m{SAID}]")).to_be_in_viewport()
        expect(guide).to_contain_text("Here it is, in a talk about insurance: Mum has gout")
        guide.locator(".main").click()
        expect(page.locator(f"[data-id=m{FORGOTTEN}]")).to_be_in_viewport()
        expect(page.locator("#why .head")).to_contain_text(f"m{FORGOTTEN}")
        first = page.locator("#why .grounds > .ground").first
        expect(first).to_contain_text("痛风")
        expect(first).to_have_attribute("data-quote", f"m{SAID}")
        expect(guide).to_contain_text("the recorded menu before this message overlooks it")
        page.set_viewport_size({"width": 390, "height": 800})
        page.get_by_role("button", name="中文").click()
        expect(guide).to_contain_text("3月9日")
        newest, composer = (page.locator(name).bounding_box() for name in (".newest", ".composer"))
        assert newest
        assert composer
        assert newest["y"] + newest["height"] <= composer["y"], "it covers the box to write in"
        expect(page.locator(".model")).to_contain_text("未设置模型：回复只引用说过的话。")
