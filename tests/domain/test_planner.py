"""The embedded planner: what it is sure of, and everything else."""

from __future__ import annotations

from typing import Any

from domains import the_document
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import PlanRequest, TurnPlan
from topicloom.domain.document import is_active, list_events
from topicloom.domain.planner import EmbeddedPlanner

MORE: dict[str, Any] = {
    "shopping": ["milk", "eggs"],
    "profile": {"name": "Ada", "city": "Paris", "vegetarian": False},
    "packing": [{"id": "p1", "title": "打包书籍", "status": "open", "priority": 2}],
}


def planned(
    text: str,
    document: dict[str, Any] | None = None,
    previous: TurnPlan | None = None,
    templates: tuple[str, ...] = ("default",),
) -> TurnPlan:
    document = the_document() | MORE if document is None else document
    events = [e for e in list_events(document, "events") if is_active(e)]
    request = PlanRequest(
        "s", text, [], document, events, dict.fromkeys(templates, ""), previous, "en"
    )
    return EmbeddedPlanner().call(request).value


@each_row("text", ["Set the sword count to 3", "mark task t1 done", "把灯笼数量改成3"])
def test_an_edit_is_left_to_the_main_model(text: str) -> None:
    plan = planned(text)
    assert (plan.kind, plan.edits, plan.search.enabled) == ("narrative", (), True)


@given(st.text(max_size=40))
def test_any_message_gets_a_plan(text: str) -> None:
    assert planned(text).kind == "narrative"


class TestFocus:
    @each_row(
        ("text", "focus"),
        [
            ("Where is this temple?", "q_001"),
            ("Did the blacksmith say anything?", "q_002"),
            ("Hello", None),
            ("Find something", "q_001"),
            ("The temple and the blacksmith", None),
        ],
    )
    def test_the_event_that_shares_words(self, text: str, focus: str | None) -> None:
        assert planned(text).focus == focus

    def test_it_stays_while_nothing_else_is_meant(self) -> None:
        assert planned("Go on", previous=TurnPlan(focus="q_002")).focus == "q_002"
        assert planned("To the temple", previous=TurnPlan(focus="q_002")).focus == "q_001"
        assert planned("Go on", previous=TurnPlan(focus="q_0")).focus is None, "that one is over"

    def test_the_only_event_is_in_focus(self) -> None:
        only = {"events": [{"id": "e", "objective": "Move house"}]}
        plan = planned("Hello", only)
        assert (plan.focus, plan.goal) == ("e", "Move house")

    def test_the_focus_of_a_chinese_message_is_found(self) -> None:
        document = {
            "events": [{"id": "a", "objective": "找到神庙"}, {"id": "b", "objective": "帮助铁匠"}]
        }
        assert planned("神庙在哪里？", document).focus == "a"

    def test_the_event_in_focus_chooses_its_template(self) -> None:
        document = {"events": [{"id": "e", "objective": "Duel", "template": "combat"}]}
        assert planned("Hello", document, templates=("combat", "default")).template == "combat"
        assert planned("Hello", document).template == "default"


class TestSearch:
    @each_row(
        ("text", "when"),
        [
            ("What did the elder say yesterday?", "past"),
            ("上次村长说的钥匙是做什么用的？", "past"),
            ("我记得之前提到过钥匙", "past"),
            ("Tomorrow we will ask Marta", "future"),
            ("接下来我们要怎么做", "future"),
            ("I open the door", "now"),
            ("我打开门", "now"),
        ],
    )
    def test_the_time_of_a_message_is_found(self, text: str, when: str) -> None:
        assert planned(text).search.when == when

    def test_weights_follow_the_time_and_the_question(self) -> None:
        past = planned("What did the elder say yesterday?").search.weights
        future = planned("Tomorrow we will ask Marta").search.weights
        what = planned("Who is the elder?").search.weights
        assert past.narrative > max(past.lore, past.event)
        assert future.event > max(future.lore, future.narrative)
        assert what.lore > max(what.narrative, what.event)

    def test_keywords_are_names_first(self) -> None:
        text = 'Tomorrow we will ask Marta of Whispering Woods about the iron sword and "the oath"'
        assert planned(text).search.keywords[:3] == (
            "Iron Sword",
            "the oath",
            "Marta of Whispering Woods",
        )
        assert "钥匙" in planned("上次村长说的钥匙是做什么用的？").search.keywords
        assert len(planned("one two three four " * 40).search.keywords) <= 8
