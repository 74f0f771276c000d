"""The introduction on the sample: three steps, each of which does something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import inspected
import pytest
from browsing import open_page
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from playwright.sync_api import Browser, expect

from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.recordings.conversations import Conversation
from topicloom.recordings.replay import find_sample, load_first_conversation
from topicloom.state.channels import TurnOptions

GUIDE = Path(__file__).parents[2] / "ui" / "src" / "guide.tsx"
SAID, FORGOTTEN = 53, 293


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
def graph(
    tmp_path: Path, sample: Conversation, monkeypatch: pytest.MonkeyPatch
) -> Iterator[CompiledSessionGraph]:
    """The sample up to the best moment, recorded at once, and that moment answered."""
    monkeypatch.setattr(inspected, "NAME", find_sample().stem)
    thread: RunnableConfig = {"configurable": {"thread_id": find_sample().stem}}
    said = list[BaseMessage]()
    for message in sample.messages[: FORGOTTEN - 1]:
        kind = HumanMessage if message.role == "user" else AIMessage
        said.append(kind(message.text, additional_kwargs={"time": message.time}))
    asked = sample.messages[FORGOTTEN - 1]
    last = HumanMessage(asked.text, additional_kwargs={"time": asked.time})
    with inspected.open_folder(tmp_path) as graph:
        recorded = TurnOptions(answer=False, keep_messages=0)
        graph.invoke({"messages": said}, thread, context=recorded)
        graph.invoke({"messages": [last]}, thread, context=TurnOptions(keep_messages=0))
        yield graph


@pytest.mark.slow
def test_each_step_does_something(browser: Browser, graph: CompiledSessionGraph) -> None:
    with open_page(browser, graph) as page:
        guide = page.locator(".guide")
        expect(guide).to_contain_text("This page shows what topicloom remembers")
        page.locator(".edit").click()
        expect(guide.locator(".main")).to_have_text("1 Ask which illness Mum has")
        guide.locator(".main").click()
        expect(page.locator("#why .head")).to_contain_text(f"m{FORGOTTEN + 2}")
        expect(page.locator("[data-id]").last).to_be_in_viewport()
        expect(page.locator("#why .ground").first).to_be_visible()
        expect(guide).to_contain_text("The answer was said three months ago.")
        guide.locator(".main").click()
        expect(page.locator(f"[data-id=m{SAID}]")).to_be_focused()
        expect(page.locator(f"[data-id=m{SAID}]")).to_be_in_viewport()
        expect(guide).to_contain_text("9 March")
        guide.locator(".main").click()
        expect(page.locator(f"[data-id=m{FORGOTTEN}]")).to_be_in_viewport()
        expect(page.locator("#why .head")).to_contain_text(f"m{FORGOTTEN}")
        first = page.locator("#why .grounds > .ground").first
        expect(first).to_contain_text("痛风")
        expect(first).to_have_attribute("data-quote", f"m{SAID}")
        page.set_viewport_size({"width": 390, "height": 800})
        page.get_by_role("button", name="中文").click()
        expect(guide).to_contain_text("3月9日")
