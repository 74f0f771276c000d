"""The inspector in a real Chromium: ask, follow a quote, set right, hostile messages, keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import open_page
from inspected import HOSTILE, NAME, THREAD
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from playwright.sync_api import Browser, Locator, Page, Route, expect

from topicloom import Fact, FactChanges, Memory, ReflectionStore, TurnOptions
from topicloom.hosting import CompiledSessionGraph

pytestmark = pytest.mark.slow


@pytest.fixture
def page(browser: Browser, graph: CompiledSessionGraph) -> Iterator[Page]:
    with open_page(browser, graph) as page:
        yield page


def edit(page: Page) -> None:
    page.get_by_role("button", name="Read-only").click()
    expect(page.get_by_role("button", name="Editing")).to_be_visible()


def test_a_question_is_answered_and_its_quote_is_followed(page: Page) -> None:
    expect(page.locator("#say")).to_be_disabled()
    edit(page)
    page.locator("#say").fill("How many kilometres did I run first?")
    page.get_by_role("button", name="Send", exact=True).click()
    reply = page.locator("[data-id=m30]")
    expect(reply).to_contain_text("kilometres")
    expect(page.locator("#why")).to_contain_text("Marathon")
    page.locator("[data-id=m28]").click()
    expect(page.locator("#why .head")).to_contain_text("m27")
    link = page.locator("#why .ground").first
    expect(link).to_contain_text("ferry leaves at nine")
    origin = str(link.get_attribute("data-quote"))
    link.click()
    expect(page.locator(f"[data-id={origin}]")).to_be_focused()
    expect(page.locator(f"[data-id={origin}]")).to_be_in_viewport()
    page.locator("#say").fill("The ferry was late.")
    page.locator("#record").click()
    expect(page.locator("[data-id=m31]")).to_contain_text("The ferry was late.")
    expect(page.locator("[data-id]")).to_have_count(31)


def test_the_reply_that_was_asked_for_is_in_view(page: Page) -> None:
    edit(page)
    for number in (30, 32, 34):
        page.locator("#say").fill("How many kilometres did I run first?")
        page.get_by_role("button", name="Send", exact=True).click()
        check_the_end_is_in_view(page, f"m{number}")
    page.locator("#say").fill("The ferry was late.")
    page.locator("#record").click()
    check_the_end_is_in_view(page, "m35")
    page.set_viewport_size({"width": 390, "height": 500})
    check_the_end_is_in_view(page, "m35")
    page.locator("#say").fill("When does the ferry leave?")
    page.locator(".composer .main").click()
    page.locator(".switch [role=tab]").nth(2).click()
    expect(page.locator("#why .head")).to_contain_text("m36")
    page.locator(".switch [role=tab]").nth(1).click()
    check_the_end_is_in_view(page, "m37")


def check_the_end_is_in_view(page: Page, newest: str) -> None:
    """The newest message is shown, and so is what stands below it, once nothing changes."""
    expect(page.locator("[data-id]").last).to_have_attribute("data-id", newest)
    expect(page.locator(".live")).to_have_count(0)
    page.wait_for_timeout(500)
    expect(page.locator(f"[data-id={newest}]")).to_be_in_viewport()
    left = page.locator(".messages").evaluate("e => e.scrollHeight - e.scrollTop - e.clientHeight")
    assert left < 2


def test_whoever_scrolls_away_from_a_reply_stays_there(page: Page) -> None:
    edit(page)
    with delayed(page, "**/turns?*"):
        page.locator("#say").fill("How many kilometres did I run first?")
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator(".live .waiting")).to_be_in_viewport()
        page.locator(".messages").hover()
        page.mouse.wheel(0, -800)
        expect(page.locator("[data-id=m20]")).to_be_in_viewport()
    expect(page.locator(".live")).to_have_count(0)
    expect(page.locator("[data-id=m20]")).to_be_in_viewport()
    expect(page.locator(".live .waiting")).not_to_be_in_viewport()
    page.locator("[data-topic=t1]").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("Worktop")
    page.keyboard.press("Enter")
    expect(page.locator("[data-id=m11]")).to_contain_text("Worktop")
    expect(page.locator("[data-id=m20]")).to_be_in_viewport()
    page.locator(".messages").hover()
    page.mouse.wheel(0, 9_000)
    expect(page.locator("[data-id=m30]")).to_be_in_viewport()
    page.locator("#say").fill("When does the ferry leave?")
    page.get_by_role("button", name="Send", exact=True).click()
    check_the_end_is_in_view(page, "m32")


def test_a_message_is_dropped_on_a_turn_that_says_which_step_lost_it(page: Page) -> None:
    page.locator("[data-id=m28]").click()
    expect(page.locator("#why .head")).to_contain_text("m27")
    drag(page, "m27", page.locator(".why-not label"))
    expect(page.locator(".why-not")).to_contain_text("not been sorted into a topic yet")
    page.locator("[data-id=m3]").focus()
    page.keyboard.press("w")
    expect(page.locator("#missed")).to_be_focused()
    expect(page.locator(".why-not")).to_contain_text("It was quoted.")
    page.locator(".developer").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as a test case").click()
    assert download.value.suggested_filename == "case.jsonl"


def drag(page: Page, message: str, target: Locator) -> None:
    """Drag a message as a hand does, once all stands where it stays: a drag aims at places."""
    expect(page.locator("#why .ground").first).to_be_visible()
    expect(page.locator("#why [aria-busy]")).to_have_count(0)
    page.locator(f"[data-id={message}]").hover()
    page.mouse.down()
    target.hover()
    target.hover()  # the first move begins the drag, the second goes over the target
    page.mouse.up()
    expect(page.locator("#missed")).to_have_value(message)


def test_a_turn_is_a_picture_whose_parts_light_each_other_up(page: Page) -> None:
    why = page.locator("#why")
    expect(why.locator(".head")).to_contain_text("m27")  # without a click: of the newest reply
    quote = why.locator(".grounds > .ground").first
    expect(quote).to_contain_text(re.compile("The ferry leaves at nine.*Mar 25.*m25"))
    tops = [why.locator(part).first.bounding_box() for part in (".ground", ".window")]
    assert sorted(box["y"] for box in tops if box) == [box["y"] for box in tops if box]
    why.get_by_role("button", name="As a picture").click()
    expect(page.locator("#chat")).to_be_hidden()
    assert page.url.endswith("#/lake/m27/picture")
    expect(why.locator(".main-window")).to_contain_text("% full")
    expect(why.locator(".spoken .user")).to_contain_text("When does the ferry leave?")
    window = why.locator(".window", has=page.locator("[data-from=m25]"))
    expect(window).to_contain_text("read by the search, quoted 2 of 2")
    expect(why.locator(".threads path[data-thread=m25]")).to_have_attribute("d", re.compile("M.*M"))
    parts = window, quote, why.locator(".cited", has_text="The ferry leaves at nine")
    for pointed in (quote, why.locator(".mark").first):
        pointed.hover()
        for part in parts:
            expect(part).to_have_attribute("data-lit", "")
        why.locator(".main-window h3").hover()
        expect(why.locator("[data-lit]")).to_have_count(0)
    why.locator(".mark").first.focus()
    expect(parts[0]).to_have_attribute("data-lit", "")
    page.keyboard.press("Enter")
    expect(page.locator("[data-id=m25]")).to_be_focused()
    expect(page.locator("#chat")).to_be_visible()


def test_a_turn_has_an_address(page: Page) -> None:
    expect(page.locator("#why .head")).to_contain_text("m27")
    assert page.url.endswith("#/lake/m27")
    page.locator("[data-id=m5]").click()
    expect(page.locator("#why")).to_contain_text("saved without a reply")
    assert page.url.endswith("#/lake/m5")
    page.keyboard.press("k")
    page.locator("[data-id=m27]").click()
    expect(page.locator("#why .ground").first).to_be_visible()
    page.keyboard.press("p")
    expect(page.locator("#chat")).to_be_hidden()
    sent = page.url
    page.go_back()
    expect(page.locator("#chat")).to_be_visible()
    page.go_back()
    expect(page.locator("#why")).to_contain_text("saved without a reply")
    expect(page.locator("[data-id=m5]")).to_be_focused()
    page.goto(sent)
    page.reload()
    expect(page.locator(".spoken .user")).to_contain_text("When does the ferry leave?")
    page.set_viewport_size({"width": 390, "height": 844})  # a phone
    expect(page.locator(".spoken .user")).to_be_visible()
    page.set_viewport_size({"width": 1280, "height": 800})
    page.goto(sent.partition("#")[0] + "#/nowhere/%zz/picture")
    page.reload()
    expect(page.locator("#why .head")).to_contain_text("m27")
    assert page.url.endswith("#/lake/m27")


def test_an_address_leads_to_another_session_or_says_that_there_is_none(
    page: Page, graph: CompiledSessionGraph
) -> None:
    said = [HumanMessage(f"The boat needs {n} cans of paint") for n in range(1, 131)]
    boat: RunnableConfig = {"configurable": {"thread_id": "boat"}}
    graph.invoke({"messages": said}, boat, context=TurnOptions(answer=False))
    here, notice = page.url.partition("#")[0], page.locator(".notice")
    page.goto(f"{here}#/boat/m125")
    page.reload()
    expect(page.locator("[data-id=m125]")).to_be_focused()
    with delayed(page, f"**/api/session/{NAME}/messages?*"):
        with page.expect_response(f"**/api/session/{NAME}/topics?*"):
            page.goto(f"{here}#/lake/m2")
        page.wait_for_timeout(300)
    expect(page.locator("[data-id=m2]")).to_contain_text("Noted: 140.")
    expect(page.locator("[data-id=m2]")).to_be_focused()
    expect(notice).to_have_count(0)
    page.goto(f"{here}#/nowhere/m1")
    expect(notice).to_contain_text("there is no session 'nowhere'")
    assert page.url.endswith("#/lake/m2")
    page.goto("about:blank")
    page.goto(f"{here}#/nowhere/m1")
    expect(notice).to_contain_text("there is no session 'nowhere'")
    expect(page.locator("#why .head")).to_contain_text("m27")
    assert page.url.endswith("#/lake/m27")
    page.get_by_role("button", name="中文").click()
    expect(notice).to_contain_text("没有会话“nowhere”。")


def test_ids_and_scores_stand_behind_a_switch_that_is_remembered(page: Page) -> None:
    shown = page.locator("[data-id=m27] .id")
    expect(page.locator("#why .window .dev").first).to_be_hidden()
    expect(shown).to_be_hidden()
    page.locator(".developer").click()
    page.reload()
    expect(shown).to_have_text("m27")
    expect(page.locator("#why .window .dev").first).to_contain_text(re.compile(r"\d\.\d\d"))
    expect(page.get_by_role("tab", name="What if")).to_be_visible()


def test_topics_keep_their_places(page: Page) -> None:
    edit(page)
    topics = page.locator("[data-topic]")
    expect(topics).to_have_count(3)
    before = topics.evaluate_all("all => all.map(e => e.dataset.topic)")
    for text in ("How many kilometres did I run first?", "What does the worktop cost?"):
        page.locator("#say").fill(text)
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.locator("#why .spoken .user")).to_contain_text(text)
        assert topics.evaluate_all("all => all.map(e => e.dataset.topic)") == before


def test_of_a_reply_near_no_quote_the_page_says_that_none_is_near(page: Page) -> None:
    """However much was quoted in case it was needed, none of it is claimed."""

    def answer(route: Route) -> None:
        found = route.fetch().json()
        assert len(found["grounds"]) > 1
        route.fulfill(json={**found, "grounds": [{**g, "says": ""} for g in found["grounds"]]})

    why = page.locator("#why")
    link = page.locator("[data-id=m28] + .rests button")
    expect(link).to_have_text(re.compile(r"Rests on \d earlier messages? →"))
    assert int(re.findall(r"\d", link.inner_text())[0]) == why.locator(".grounds > .ground").count()
    page.route("**/grounds/*", answer)
    page.reload()
    expect(link).to_have_text("No near sentence found →")
    expect(why).to_contain_text("No sentence that was quoted or in view comes near")
    expect(why.locator(".ground").first).to_be_hidden()
    why.get_by_text("messages were quoted").click()
    expect(why.locator(".ground").first).to_be_visible()


def test_why_says_who_was_not_asked_and_why_room_was_made(page: Page) -> None:
    told = {
        "unasked": {
            "router": "it was late: it rests for 3 turns",
            "brief": "the daily limit for this user is nearly used up",
        },
        "limits": {"session": 0.412, "user": 0.8},
        "split": ["t1"],
        "events": [
            "room was made: the prompt was expected to have 12,300 tokens, more than 70% of 16,000"
            " (instructions, tools and expected recall 3,473, recall notes 4,661, messages in view"
            " 4,166); 2 rounds moved into topics, 1 round left the view",
            "split m1-m4 into t1 “Kitchen”",
        ],
    }

    def answer(route: Route) -> None:
        receipt = route.fetch().json()
        route.fulfill(json=receipt and receipt | told)

    page.route("**/receipts/m27?*", answer)
    page.locator("[data-id=m25]").click()
    page.locator("[data-id=m27]").click()
    missing = page.get_by_role("region", name="Not asked in this turn")
    expect(missing).to_contain_text("router It was too slow, so it is not asked for 3 more turns.")
    expect(missing).to_contain_text("brief Today's limit for this user is nearly used up.")
    limits = page.get_by_role("region", name="Used of today's limits")
    expect(limits.get_by_role("listitem")).to_have_text(["This session: 41 %", "This user: 80 %"])
    moved = page.get_by_role("region", name="Sorted into topics in this turn")
    expect(moved).to_contain_text("Reason: the prompt would have had 12,300 tokens, more than 70%")
    expect(moved).to_contain_text("Result: 2 rounds moved into topics, 1 round left the view.")
    expect(moved).to_contain_text("Messages m1 to m4 went into “Kitchen”.")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("#why")).to_contain_text("它太慢，接下来 3 轮不再询问。")
    expect(page.locator("#why")).to_contain_text("原因：提示词预计有 12,300 词元")
    expect(page.locator("#why .head")).to_contain_text("第 2 轮")


def test_why_says_what_it_is_about_and_what_reading_cost_and_changed(page: Page) -> None:
    told: dict[str, Any] = {
        "reading": {"added": ["m1"], "kept_out": ["m3", "m5"], "summaries": 1},
        "calls": [
            {"role": "reader", "model": "small", "input_tokens": 1_200, "output_tokens": 34},
            {"role": "responder", "model": "large", "input_tokens": 9_000, "output_tokens": 100},
        ],
        "costs": [None, None],
        "about": {"t1": 0.624, "t2": 0.1},
    }

    def answer(route: Route) -> None:
        receipt = route.fetch().json()
        calls = [{**receipt["calls"][0], "topic": None, **call} for call in told["calls"]]
        route.fulfill(json={**receipt, **told, "calls": calls})

    page.route("**/receipts/m27?*", answer)
    page.locator("[data-id=m25]").click()
    page.locator("[data-id=m27]").click()
    line = page.locator("#why .reading")
    expect(line).to_contain_text("quotes added: 1 · kept out: 2 · summaries: 1")
    expect(line.locator("[data-quote]")).to_have_count(2)
    likely = page.locator("#why .window", has_text="62 %")
    expect(likely).to_contain_text("read by small")
    expect(likely).to_contain_text("About 62 % · ")
    expect(likely).to_contain_text("1,200 + 34 tokens")
    page.get_by_role("button", name="中文").click()
    expect(likely).to_contain_text("关于 62 %")
    expect(line).to_contain_text("增加引用 1 条 · 略去 2 条 · 摘要 1 条")


def test_a_moment_shows_nothing_of_another(page: Page, graph: CompiledSessionGraph) -> None:
    later = [HumanMessage(f"The boat needs {n} cans of paint") for n in range(80)]
    graph.invoke({"messages": later}, THREAD, context=TurnOptions(answer=False))
    with watched(page) as failed:
        page.reload()
        edit(page)
        page.locator("[data-topic=t1]").click()
        expect(page.locator("[data-line=m1]")).to_be_visible()
        slider = page.locator(".moments input")
        slider.focus()
        page.keyboard.press("Home")
        expect(page.locator("[data-id]").last).to_have_attribute("data-id", "m26")
        expect(page.locator(".opened")).to_have_count(0)  # nothing was in a topic yet
        expect(page.locator("#why .head")).to_have_count(0)  # nothing was answered yet
        page.keyboard.press("ArrowRight")
        expect(page.locator("#why .head")).to_contain_text("m27")
        expect(page.locator(".opened h2")).to_be_visible()
        page.get_by_role("button", name="Back to now").click()
        expect(page.locator("[data-id]").last).to_have_attribute("data-id", "m108")
        page.wait_for_timeout(1_000)
    assert not failed


@contextmanager
def watched(page: Page) -> Iterator[list[str]]:
    """The addresses that were answered with an error meanwhile."""
    failed = list[str]()
    page.on("response", lambda answer: failed.append(answer.url) if not answer.ok else None)
    yield failed


def test_topics_keep_their_names_when_they_are_merged(page: Page) -> None:
    edit(page)
    chips = page.locator("#why .window .chip")
    expect(chips.nth(1)).to_be_attached()
    before = chips.all_text_contents()
    page.locator("[data-topic=t3]").click()
    page.get_by_role("combobox", name="Merge into…").select_option("t2")
    expect(page.locator(".notice")).to_contain_text("✓ Merged into Marathon")
    for _ in range(2):
        expect(page.locator(".opened h2, [data-topic=t2]").first).to_contain_text("Marathon")
        assert set(chips.all_text_contents()) == set(before)
        expect(page.locator("#why .ground").first).to_contain_text("Marathon")
        page.reload()
        expect(page.locator("#why .ground").first).to_be_visible()


def test_the_time_line_tells_what_was_quoted_where_it_is_pointed_at(page: Page) -> None:
    line = page.locator(".timeline")
    expect(line.locator(".said").first).to_be_visible()
    expect(line.locator(".quoted-on")).to_have_count(0)
    expect(page.locator("#why .ground").first).to_be_visible()
    expect(line.locator(".ground-mark").first).to_be_attached()
    line.get_by_role("button", name="Marathon").focus()
    expect(page.get_by_role("tooltip")).to_contain_text("Marathon")
    said = line.locator("g.lane", has=page.locator("text", has_text="Marathon")).locator(".said")
    said.first.hover()
    expect(page.get_by_role("tooltip")).to_contain_text("Mar 13, 2026")
    expect(page.get_by_role("tooltip")).to_contain_text("SaidMarathon 2")
    box = line.locator("svg").bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] - 14, box["y"] + 40)
    expect(page.get_by_role("tooltip")).to_contain_text("Quoted in replies")
    dates = line.locator(".date").all_text_contents()  # days of replies come later than the others
    expect(page.get_by_role("tooltip")).to_contain_text(dates[-1])
    expect(line.locator(".quoted-on").first).to_be_attached()
    page.mouse.move(400, 200)
    expect(page.get_by_role("tooltip")).to_have_count(0)


def test_what_goes_on_is_told_in_a_few_words(page: Page) -> None:
    edit(page)
    page.evaluate(RECORD_NOTES)
    page.locator("#say").fill("How many kilometres did I run first?")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#why .head")).to_contain_text("m29")
    most, lit = page.evaluate("[Math.max(...rows), lit]")
    assert 0 < most <= 5
    assert not lit, "topics light up"


RECORD_NOTES = """() => {
  window.rows = [0];
  window.lit = 0;
  const look = () => {
    rows.push(document.querySelectorAll(".notes li").length);
    lit += document.querySelectorAll(".topic.lit, .lane.lit").length;
  };
  const all = { childList: true, subtree: true, attributes: true };
  new MutationObserver(look).observe(document.body, all);
}"""


def test_what_is_empty_says_how_to_fill_it(page: Page) -> None:
    expect(page.locator(".guide")).to_contain_text("This page shows what topicloom remembers")
    expect(page.locator(".guide")).to_have_count(1)
    page.get_by_role("tab", name="Facts").click()
    expect(page.locator("#topics")).to_contain_text("No facts yet.")
    edit(page)
    page.locator("#say").fill("I am allergic to nuts.")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("[data-id=m30]")).to_be_visible()
    page.get_by_role("button", name="Look for facts now").click()
    expect(page.locator("[data-fact]")).to_contain_text("allergic to nuts")
    page.get_by_role("tab", name="Changes").click()
    expect(page.locator("#topics")).to_contain_text("can be undone")
    page.locator(".guide").get_by_role("button", name="Close").click()
    page.reload()
    expect(page.locator("[data-id]").last).to_be_visible()
    expect(page.locator(".guide")).to_have_count(0)


def test_the_header_of_a_phone_has_two_rows_and_all_buttons(page: Page) -> None:
    edit(page)
    page.set_viewport_size({"width": 390, "height": 800})
    boxes = [
        item.bounding_box()
        for item in page.locator(".bar > :is(select, input, button)").all()
        if item.is_visible()
    ]
    assert len(boxes) == 9
    rows = {round((box["y"] + box["height"] / 2) / 20) for box in boxes if box}
    assert len(rows) == 2
    assert all(box and box["x"] + box["width"] <= 390 for box in boxes)


def test_messages_are_moved_split_and_undone(page: Page, graph: CompiledSessionGraph) -> None:
    memory = Memory.of(graph, THREAD)
    edit(page)
    page.locator("[data-topic=t1]").click()
    expect(page.locator("dl [data-quote=m27]")).to_be_visible()  # which woke it
    page.get_by_role("checkbox", name="m1", exact=True).check()
    page.locator("#move").select_option("t2")
    expect(page.locator("[data-line=m1]")).to_have_count(0)
    assert [t.count for t in memory.topics()] == [10, 14, 2]
    page.locator(".notice").get_by_role("button", name="Undo").click()
    expect(page.locator("[data-line=m1]")).to_have_count(1)
    assert [t.count for t in memory.topics()] == [12, 12, 2]
    page.locator("[data-line=m7]").hover()
    page.locator("[data-line=m7] .cut").click()
    page.get_by_role("textbox", name="Name").fill("Later")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("[data-line=m7]")).to_have_count(0)
    assert [t.count for t in memory.topics()] == [6, 12, 6, 2]  # a loose end comes last
    expect(page.locator("dl")).to_contain_text("user: undone: moved m1 to m2 into t1")
    page.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Name").fill("Worktop")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Worktop")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator("[data-topic=t3]").click()
    page.get_by_role("button", name="Forget…").click()
    expect(page.get_by_role("dialog")).to_contain_text("The ferry leaves at nine")
    *ferry, reply = memory.forget("t3", dry_run=True).messages
    assert [m.id for m in ferry] == ["m25", "m26"]
    assert "ferry leaves at nine" in reply.text, "one that no model wrote quotes it"
    page.get_by_role("button", name="Remove for good (3)").click()
    expect(page.locator("[data-id=m25]")).to_contain_text("removed")
    assert memory.quote("m25").text == "(removed on request)"


def test_a_moment_is_gone_back_to_and_a_branch_begins_there(page: Page) -> None:
    edit(page)
    slider = page.locator(".moments input")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".moments")).to_contain_text("26 messages")
    expect(page.locator("[data-id=m26]")).to_be_visible()
    expect(page.locator("[data-id=m27]")).to_have_count(0)
    page.locator("#say").fill("Another way")
    page.locator("#record").click()
    expect(page.locator("[data-id=m27]")).to_contain_text("Another way")
    expect(page.get_by_role("combobox", name="Branch", exact=True)).to_be_visible()
    page.get_by_role("button", name="Compare").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("When does the ferry leave?")
    expect(dialog).to_contain_text("Another way")
    page.keyboard.press("Escape")
    page.get_by_role("combobox", name="Branch", exact=True).select_option(index=1)
    expect(page.locator("[data-id=m28]")).to_be_visible()
    page.locator("[data-id=m28]").click()
    page.locator(".developer").click()
    page.get_by_text("Show the whole prompt").click()
    expect(page.locator("#why .whole")).to_contain_text("The ferry leaves at nine")


def test_facts_are_set_right_thresholds_tried_and_an_export_taken_in(
    page: Page, graph: CompiledSessionGraph, tmp_path: Path
) -> None:
    assert graph.store is not None
    fact = Fact("Likes oak", ("m1",), "2026-03-01", origin="claude", held=True)
    ReflectionStore(graph.store).change_facts(NAME, FactChanges((fact,)))
    edit(page)
    page.get_by_role("tab", name="Facts").click()
    said = "from an export (claude) · not used until you confirm it"
    expect(page.locator("[data-fact]")).to_contain_text(said)
    page.get_by_role("button", name="Correct").click()
    page.get_by_role("textbox", name="Name").fill("Likes ash")
    page.keyboard.press("Enter")
    expect(page.locator("[data-fact]")).to_contain_text("Likes ash")
    page.get_by_role("button", name="Forget", exact=True).click()
    expect(page.locator("[data-fact]")).to_have_count(0)
    page.locator(".developer").click()
    page.get_by_role("tab", name="What if").click()
    row = page.get_by_role("row", name="Topics read")
    expect(row).to_contain_text("22")
    page.get_by_role("slider", name="Score to recall a topic").fill("0.95")
    expect(row).to_contain_text("21")
    export = tmp_path / "claude.json"
    export.write_text(json.dumps(claude_talk()), "utf-8")
    page.get_by_role("button", name="Import / Export").click()
    page.locator("#export").set_input_files(export)
    shown = page.get_by_role("dialog", name="Import: claude")
    for text in ("claude (1)", "Conversations: 1 · New messages: 2", "Boat", "dated today: 2"):
        expect(shown).to_contain_text(text)
    expect(page.locator(".session")).not_to_have_value("claude")
    shown.get_by_role("button", name="Import").click()
    expect(page.locator(".session")).to_have_value("claude")
    expect(page.locator("[data-id]").first).to_contain_text("the boat")


def test_answers_that_come_late_do_not_count(
    page: Page, graph: CompiledSessionGraph, tmp_path: Path
) -> None:
    export = tmp_path / "boat.json"
    export.write_text(json.dumps(claude_talk()), "utf-8")
    edit(page)
    page.get_by_role("button", name="Import / Export").click()
    page.locator("#export").set_input_files(export)
    page.get_by_role("dialog").get_by_role("button", name="Import").click()
    session = page.locator(".session")
    first = page.locator("[data-id]").first
    expect(first).to_contain_text("the boat")

    session.select_option(NAME)
    expect(first).to_contain_text("worktop")
    with delayed(page, f"**/api/session/{NAME}/messages?*"):
        page.get_by_role("button", name="Editing").click()
        expect(page.get_by_role("button", name="Read-only")).to_be_visible()
        session.select_option("boat")
        expect(first).to_contain_text("the boat")
    expect(first).to_contain_text("the boat")
    expect(session).to_have_value("boat")

    session.select_option(NAME)
    with delayed(page, "**/receipts/m25?*"):
        page.locator("[data-id=m25]").click()
        page.locator("[data-id=m27]").click()
        expect(page.locator("#why .head")).to_contain_text("m27")
    expect(page.locator("#why .head")).to_contain_text("m27")


@contextmanager
def delayed(page: Page, url: str) -> Iterator[None]:
    """What is asked of an address is answered at the end, and the page has had time to show it."""
    held = list[Route]()
    page.route(url, lambda route: held.append(route))
    yield
    assert held
    for route in held.copy():
        with page.expect_response(route.request.url):
            route.continue_()
    page.unroute(url)
    page.wait_for_timeout(300)


def test_an_export_that_is_dropped_becomes_topics(page: Page) -> None:
    asked = [f"The boat needs {n} cans of paint" for n in range(20)]
    asked += [f"Today I ran {n} kilometres for the marathon" for n in range(20)]
    said = [part for text in asked for part in (("human", text), ("assistant", f"Noted: {text}"))]
    edit(page)
    page.evaluate(RECORD_NOTICES)
    drop = """text => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], "claude.json"));
      const dropped = new DragEvent("drop", { dataTransfer, bubbles: true });
      document.querySelector(".page").dispatchEvent(dropped);
    }"""
    page.evaluate(drop, json.dumps(claude_talk(*said)))
    page.get_by_role("dialog").get_by_role("button", name="Import").click()
    expect(page.locator(".session")).to_have_value("claude")
    expect(page.locator(".notice")).to_contain_text("Imported: 80 / 80")
    expect(page.locator("[data-topic]").filter(has_text="Boat")).to_contain_text("80 messages")
    told = page.evaluate("told.map((text) => /Imported: (\\d+)/.exec(text)?.[1]).filter(Boolean)")
    assert len(set(told)) > 1, "how far it was shown meanwhile"


RECORD_NOTICES = """() => {
  window.told = [];
  const record = () => told.push(document.querySelector(".notice")?.textContent ?? "");
  const all = { childList: true, subtree: true, characterData: true };
  new MutationObserver(record).observe(document.body, all);
}"""


def claude_talk(*said: tuple[str, str]) -> dict[str, Any]:
    said = said or (("human", "Where is the boat?"), ("assistant", "At the jetty."))
    messages = [{"uuid": f"u{n}", "sender": s, "text": t} for n, (s, t) in enumerate(said)]
    return {"uuid": "c1", "name": "Boat", "chat_messages": messages}


def test_no_message_is_markup(page: Page, graph: CompiledSessionGraph) -> None:
    said = [kind(text) for text in HOSTILE for kind in (HumanMessage, AIMessage)]
    graph.invoke({"messages": said}, THREAD, context=TurnOptions(answer=False))
    memory = Memory.of(graph, THREAD)
    memory.rename("t1", HOSTILE[1])
    assert graph.store is not None
    facts = tuple(Fact(text, ("m1",), "2026-03-01") for text in HOSTILE[:-1])
    ReflectionStore(graph.store).change_facts(NAME, FactChanges(facts))
    edit(page)
    page.reload()
    for number, text in enumerate(HOSTILE[:-1]):
        row = page.locator(f"[data-id=m{29 + 2 * number}] .body")
        assert row.text_content() == text
    page.locator("[data-topic=t1]").click()
    expect(page.get_by_role("heading", name=HOSTILE[1])).to_be_visible()
    page.get_by_role("searchbox").fill("<img src=x")
    expect(page.locator(".found mark").first).to_have_text("<img src=x")
    check_inert(page, "#app")
    page.keyboard.press("Escape")
    page.locator(".lane").first.focus()
    expect(page.locator(".tip")).to_contain_text(HOSTILE[1])
    check_inert(page, "#app")
    page.locator(".back").click()
    page.get_by_role("tab", name="Facts").click()
    told = page.locator("[data-fact] p")
    expect(told).to_have_count(len(facts))
    assert set(told.all_text_contents()) == set(HOSTILE[:-1])
    check_inert(page, "#app")
    page.get_by_role("tab", name="Changes").click()
    expect(page.locator("#topics .line p").first).to_contain_text(HOSTILE[1])
    check_inert(page, "#app")
    page.locator(".developer").click()
    page.get_by_role("tab", name="What if").click()
    expect(page.get_by_role("row", name="Topics read")).to_be_visible()
    page.locator("#say").fill(HOSTILE[0])
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("#why .spoken .user")).to_contain_text(HOSTILE[0])
    page.locator(".whole summary").click()
    expect(page.locator("#why .whole")).to_contain_text(HOSTILE[0])
    check_inert(page, "#app")
    page.locator(".moments input").focus()
    page.keyboard.press("Home")
    page.get_by_role("button", name="Compare").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(HOSTILE[0])
    expect(dialog).to_contain_text(HOSTILE[1])
    check_inert(page, "#app")


def test_a_page_to_take_along_has_no_markup_of_messages(
    page: Page, graph: CompiledSessionGraph
) -> None:
    said = [kind(text) for text in HOSTILE for kind in (HumanMessage, AIMessage)]
    graph.invoke({"messages": said}, THREAD, context=TurnOptions(answer=False))
    server = page.url.partition("#")[0]
    taken = page.request.get(f"{server}api/session/{NAME}/page").text()
    alone = page.context.new_page()
    alone.set_content(taken)
    for number, text in enumerate(HOSTILE):
        assert alone.locator(f"#m{29 + 2 * number} div").text_content() == text
    check_inert(alone, "body")


def check_inert(page: Page, place: str) -> None:
    """Nothing of a message has become an element, and none of its scripts ran."""
    tags = page.eval_on_selector_all(f"{place} *", "all => [...new Set(all.map(e => e.tagName))]")
    assert {"SCRIPT", "IMG", "IFRAME", "A", "STYLE"}.isdisjoint(tags)
    assert page.evaluate("window.caught") is None


def test_all_of_it_by_keys_in_both_languages_and_on_a_phone(page: Page) -> None:
    page.keyboard.press("e")
    expect(page.get_by_role("button", name="Editing")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("oak")
    expect(page.locator(".found mark").first).to_have_text("oak")
    page.keyboard.press("Escape")
    page.keyboard.press("1")
    for _ in range(2):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".opened h2")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".opened h2")).to_have_count(0)
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    expect(page.locator("#why .head")).to_contain_text("m27")
    page.keyboard.press("p")
    expect(page.locator("#chat")).to_be_hidden()
    page.keyboard.press("Escape")
    expect(page.locator("#chat")).to_be_visible()
    page.keyboard.press("4")
    expect(page.locator(".lane").first).to_be_focused()
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="Show all days")).to_be_visible()
    page.keyboard.press("-")
    expect(page.get_by_role("button", name="Show all days")).to_have_count(0)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".opened h2")).to_have_text("Marathon")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.keyboard.type("Only a word")
    page.keyboard.press("Enter")
    expect(page.locator("[data-id=m30]")).to_be_visible()
    page.get_by_role("button", name="中文").click()
    expect(page.get_by_role("button", name="只保存，不回复")).to_be_visible()
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("tab", name="时间线").click()
    expect(page.locator(".timeline .lane").first).to_be_visible()
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
    expect(page.locator("html")).to_have_attribute("lang", re.compile("zh"))
