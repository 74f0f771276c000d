"""The embedded planner: what it is sure of, and everything else."""

from __future__ import annotations

from typing import Any

from domains import the_document
from hypothesis import given, strategies as st
from tables import each_row

from topicloom import PlanRequest, TurnPlan
from topicloom.domain.document import is_active, list_events
from topicloom.domain.edits import apply_edits
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


SURE = [
    ("set sword count to 3", ("SET", "item_sword_01.count", 3)),
    ("Set the Iron Sword's count to 4.", ("SET", "item_sword_01.count", 4)),
    ("please set the count of the iron sword to 7", ("SET", "item_sword_01.count", 7)),
    ("change item_sword_01.count to 9", ("SET", "item_sword_01.count", 9)),
    ("item_sword_01.count = 2", ("SET", "item_sword_01.count", 2)),
    ("Could you set health to 90, please?", ("SET", "health", 90)),
    ("set location to the castle", ("SET", "location", "the castle")),
    ("Change my city to Lyon", ("SET", "profile.city", "Lyon")),
    ("set vegetarian to yes", ("SET", "profile.vegetarian", True)),
    ("set the belt slots to 4", ("SET", "inventory/belt.slots", 4)),
    ("mark task t1 done", ("SET", "t1.status", "completed")),
    ('Mark "Pack the books" as done, please.', ("SET", "t1.status", "completed")),
    ("mark t1 as in progress", ("SET", "t1.status", "in_progress")),
    ("tick off Pack the books", ("SET", "t1.status", "completed")),
    ("update the priority of task t1 to 3", ("SET", "t1.priority", 3)),
    ("increase the healing potion count by 2", ("INC", "item_potion_02.count", 2)),
    ("reduce healing potion count by 1", ("INC", "item_potion_02.count", -1)),
    ("add 3 to health", ("INC", "health", 3)),
    ("把灯笼数量改成3", ("SET", "item_lamp_03.count", 3)),
    ("请把灯笼的数量改为10个", ("SET", "item_lamp_03.count", 10)),
    ("灯笼的数量改成5", ("SET", "item_lamp_03.count", 5)),
    ("把打包书籍标记为完成", ("SET", "p1.status", "completed")),
    ("把任务p1标为已完成吧", ("SET", "p1.status", "completed")),
    ("将p1的优先级设为1", ("SET", "p1.priority", 1)),
    ("灯笼数量减2", ("INC", "item_lamp_03.count", -2)),
    ("把灯笼的数量增加3个", ("INC", "item_lamp_03.count", 3)),
    ("能不能把生命值设为50？", ("SET", "health", 50)),
]


@each_row(("text", "edit"), SURE)
def test_what_leaves_no_doubt(text: str, edit: tuple[Any, ...]) -> None:
    plan = planned(text)
    assert (plan.kind, plan.edits, plan.search.enabled) == ("state_edit", (edit,), False)


@each_row(
    "text",
    [
        "What is the count of the iron sword?",
        "set the sword count to 3?",
        "Did you set the sword count to 3?",
        "How would you set location to forest?",
        "Why did the sword count change to 3?",
        "remove the helmet",
        "delete Pack the books",
        "remove the iron sword from the main bag",
        "add bread to the shopping list",
        "rename Pack the books to Pack the kitchen",
        "删除打包书籍",
        "Remove the iron sword from the stone",
        "remove the iron sword",
        "I set the sword down and look around",
        "set off to the temple",
        "Set the table for dinner",
        "mark my words",
        "mark the spot on the map",
        "I think we should change the location to somewhere warmer",
        "change your mind about the sword",
        "set location to the forest and tell me what I see",
        "set the sword count to 3 and the potion count to 2",
        "set the sword count to 3 or 4",
        "set the sword count to many",
        "set the sword to 3",
        "set the count to 3",
        "Let's add 2 to the party and go to the temple",
        "add a bit of salt to the soup",
        "take 2 from the chest",
        "take the sword from the chest",
        "delete it",
        "delete the inventory",
        "raise the sword by the hilt",
        "The blacksmith raised the price by 2",
        "increase the tension",
        "update me on the movers",
        "set sword",
        "check off",
        "=",
        "我把灯笼放下",
        "把门打开",
        "灯笼的数量是多少？",
        "灯笼的数量改成5了吗",
        "为什么把灯笼数量改成3？",
        "我们把地点改成海边怎么样",
        "把灯笼送给村长",
        "把灯笼加到火里",
        "我想把灯笼改成魔法灯，你觉得呢",
        "减2",
        "任务怎么样了",
        "把灯笼数量改成3，然后去神庙",
    ],
)
def test_what_is_not_surely_an_edit_is_narrative(text: str) -> None:
    plan = planned(text)
    assert (plan.kind, plan.edits, plan.search.enabled) == ("narrative", (), True)


def test_of_two_things_alike_none_is_meant() -> None:
    two = {"a": [{"id": "1", "name": "Long Sword", "n": 1}, {"id": "2", "name": "Sword", "n": 1}]}
    assert planned("set long sword n to 2", two).edits == (("SET", "1.n", 2),)
    assert planned("set sword n to 2", {"a": [dict(e, name="Sword") for e in two["a"]]}).edits == ()


WORDS = st.sampled_from(
    """
    set the sword iron count to 3 health of task t1 done mark as add remove from bag and by increase
    location 's milk shopping 把 灯笼 数量 改成 的 删除 = ? ,
    """.split()
)


@given(st.lists(WORDS | st.text(max_size=4), max_size=9).map(" ".join))
def test_any_message_gets_a_plan_and_edits_that_can_be_made(text: str) -> None:
    plan = planned(text)
    assert (plan.kind == "state_edit") == bool(plan.edits)
    if plan.edits:
        assert apply_edits(the_document() | MORE, plan.edits).errors == ()


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
