"""Edits of the document in the graph: by the planner, by the main model, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from domains import (
    CONFIG,
    SET_3,
    SWORD,
    ScriptedPlanner,
    count_of,
    edit_plan,
    editing,
    open_domain,
    reply_of,
    say,
    the_document,
)
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from sessions import (
    chatter,
    check_kept,
    events_of,
    kept,
    last_receipt,
    past,
    record,
    spoken,
    tell,
    transcript_of,
)

from topicloom import Domain, JournalEntry, get_session
from topicloom.hosting import Graph
from topicloom.testing import (
    ScriptedResponder,
    fake_roles,
    make_tool_call,
)

WRONG = ("SET", "item_swrd_01.count", 3)


def journal(folder: Path, graph: Graph, config: Any = CONFIG) -> list[JournalEntry]:
    session = get_session(graph, config)
    return kept(folder, session).journal(session)


class TestByThePlanner:
    def test_its_edits_are_made_and_its_reply_is_given(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        planner = ScriptedPlanner([edit_plan(SET_3, reply="Three swords now.")])
        graph = open_domain(tmp_path, fake_roles(responder), planner=planner)
        state = say(graph, "Three swords!", the_document())
        assert reply_of(state) == "Three swords now."
        assert count_of(state) == 3
        assert responder.requests == []
        assert [r.text for r in transcript_of(tmp_path, graph, CONFIG)] == [
            "Three swords!",
            "Three swords now.",
        ]
        assert state["turn"]["edited"] == [["SET", SWORD, 3]]
        (entry,) = journal(tmp_path, graph)
        assert (entry.turn, entry.message, entry.edits) == (1, "m1", (SET_3,))
        assert entry.before != entry.after

    @pytest.mark.parametrize(
        ("said", "reply"),
        [
            ("Set the sword count to 3", "Done: Iron Sword: count is now 3."),
            ("把灯笼数量改成3", "好了，灯笼：count 现在是 3。"),
        ],
    )
    def test_a_reply_is_made_of_the_edits(self, tmp_path: Path, said: str, reply: str) -> None:
        """In the session's language."""
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, said, the_document())
        assert reply_of(state) == reply
        assert responder.requests == []

    def test_the_user_sees_the_reply(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Hello", the_document())
        assert spoken(graph, CONFIG, "Set the sword count to 3") == (
            "Done: Iron Sword: count is now 3."
        )

    def test_the_next_turn_is_told_of_it(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder))
        say(graph, "Hello", the_document())
        say(graph, "Set the sword count to 3")
        say(graph, "How many swords are there?")
        said = str(responder.requests[-1].messages[-1].content)
        assert 'since="m1"' in said
        assert '{"id": "item_sword_01", "count": 3, "name": "Iron Sword"}' in said

    def test_edits_that_cannot_be_made_go_to_the_main_model(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(editing(SET_3, text="Three now."))
        planner = ScriptedPlanner([edit_plan(WRONG, reply="Done.")])
        graph = open_domain(tmp_path, fake_roles(responder), planner=planner)
        state = say(graph, "Three swords!", the_document())
        assert reply_of(state) == "Three now."
        assert count_of(state) == 3
        assert len(responder.requests) == 1
        assert "item_sword_01" in state["turn"]["rejected"][0], "the near match is named"
        assert len(journal(tmp_path, graph)) == 1

    def test_an_edit_that_breaks_the_schema(self, tmp_path: Path) -> None:
        schema = {"properties": {"health": {"type": "integer", "maximum": 100}}}
        responder = ScriptedResponder("That is too much.")
        planner = ScriptedPlanner([edit_plan(("SET", "health", 200))])
        graph = open_domain(
            tmp_path, fake_roles(responder), planner=planner, domain=Domain(schema=schema)
        )
        state = say(graph, "Health 200", the_document())
        assert state["document"] == the_document()
        assert reply_of(state) == "That is too much."
        assert "maximum" in state["turn"]["rejected"][0]

    async def test_on_the_event_loop(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        said = {"messages": [("user", "Set the sword count to 3")], "document": the_document()}
        state = await graph.ainvoke(said, CONFIG)
        assert count_of(state) == 3
        assert reply_of(state) == "Done: Iron Sword: count is now 3."


class TestByTheMainModel:
    def test_an_edit_with_words_is_done(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(editing(SET_3, text="You find two more swords."))
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, "I search the hall", the_document())
        assert reply_of(state) == "You find two more swords."
        assert count_of(state) == 3
        assert len(responder.requests) == 1
        assert [m.type for m in state["messages"]] == ["human", "ai"]
        assert state["messages"][-1].tool_calls == []
        (entry,) = journal(tmp_path, graph)
        assert entry.edits == (SET_3,)

    def test_an_edit_without_words_goes_back_to_the_model(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(editing(SET_3), "There they are.")
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, "I search the hall", the_document())
        assert reply_of(state) == "There they are."
        result = responder.requests[1].messages[-1]
        assert isinstance(result, ToolMessage)
        assert "Iron Sword: count is now 3" in str(result.content)
        assert [m.type for m in state["messages"]] == ["human", "ai", "tool", "ai"]
        check_kept(kept(tmp_path, get_session(graph, CONFIG)), get_session(graph, CONFIG))

    def test_errors_go_back_once(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(editing(WRONG), editing(SET_3, text="Three swords."))
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, "I search the hall", the_document())
        assert (reply_of(state), count_of(state)) == ("Three swords.", 3)
        result = responder.requests[1].messages[-1]
        assert isinstance(result, ToolMessage)
        assert result.status == "error"
        assert "Did you mean item_sword_01?" in str(result.content)

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("said", "told"),
        [("I search the hall", "I could not make that change"), ("我搜索大厅", "没有成功")],
    )
    def test_then_the_user_is_told(self, tmp_path: Path, said: str, told: str) -> None:
        responder = ScriptedResponder(editing(WRONG), editing(WRONG))
        graph = open_domain(tmp_path, fake_roles(responder))
        say(graph, "Hello" if said.isascii() else "你好", the_document())
        responder.script = [editing(WRONG), editing(WRONG)]
        seen = spoken(graph, CONFIG, said)
        assert seen.endswith(graph.get_state(CONFIG).values["messages"][-1].content)
        state = graph.get_state(CONFIG).values
        assert told in reply_of(state)
        assert state["document"] == the_document()
        assert len(state["turn"]["rejected"]) == 2
        assert journal(tmp_path, graph) == []
        assert say(graph, "Go on")["messages"][-1].content == "All right, noted."

    def test_words_that_were_seen_stay(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(editing(WRONG, text="Aha."), editing(WRONG, text="Again."))
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, "I search the hall", the_document())
        texts = [str(m.content) for m in state["messages"] if m.type == "ai"]
        assert texts[:2] == ["Aha.", "Again."]
        assert texts[2].startswith("I could not make that change")

    @pytest.mark.parametrize("args", ["{broken", "[]", '{"edits": 3}', '{"edits": []}', ""])
    def test_calls_that_cannot_be_read(self, tmp_path: Path, args: str) -> None:
        call = {"name": "edit_state", "args": args, "id": "c1", "index": 0}
        broken = [AIMessageChunk(content="", tool_call_chunks=[call])]
        responder = ScriptedResponder(broken, "Never mind.")
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, "I search the hall", the_document())
        assert reply_of(state) == "Never mind."
        assert state["document"] == the_document()
        if args != "{broken":  # a call that breaks off is no call: the model is asked once more
            assert "1 to 100 edits" in str(responder.requests[1].messages[-1].content)

    def test_all_calls_of_a_reply_are_one_change(self, tmp_path: Path) -> None:
        calls = [
            {"name": "edit_state", "args": f'{{"edits": [{edit}]}}', "id": f"c{n}", "index": n}
            for n, edit in enumerate((f'["SET", "{SWORD}", 9]', '["SET", "nothing.there", 1]'))
        ]
        both = [AIMessageChunk(content="", tool_call_chunks=calls)]
        responder = ScriptedResponder(both, "Well.")
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, "I search the hall", the_document())
        assert state["document"] == the_document()
        results = [m for m in responder.requests[1].messages if isinstance(m, ToolMessage)]
        assert [m.tool_call_id for m in results] == ["c0", "c1"]

    def test_beside_a_tool_of_the_application(self, tmp_path: Path) -> None:
        looked: list[str] = []

        def look_up(city: str) -> str:
            """Something to call."""
            looked.append(city)
            return f"{city}: sunny"

        calls = [
            {"name": "edit_state", "args": f'{{"edits": [["SET", "{SWORD}", 3]]}}', "id": "a"},
            {"name": "look_up", "args": '{"city": "Oslo"}', "id": "b"},
        ]
        chunks = [{**call, "index": n} for n, call in enumerate(calls)]
        both = [AIMessageChunk(content="Let me see.", tool_call_chunks=chunks)]
        responder = ScriptedResponder(both, "Sunny, and three swords.")
        graph = open_domain(tmp_path, fake_roles(responder), tools=[look_up])
        state = say(graph, "I search the hall", the_document())
        assert (reply_of(state), count_of(state)) == ("Sunny, and three swords.", 3)
        assert looked == ["Oslo"]
        results = [m for m in responder.requests[1].messages if isinstance(m, ToolMessage)]
        assert sorted(m.tool_call_id for m in results) == ["a", "b"]

    @pytest.mark.slow
    def test_an_edit_that_was_told_goes_before_a_search(self, tmp_path: Path) -> None:
        calls = [
            {"name": "edit_state", "args": f'{{"edits": [["SET", "{SWORD}", 3]]}}', "id": "a"},
            {"name": "activate_topic", "args": '{"query": "tea"}', "id": "b"},
        ]
        chunks = [{**call, "index": n} for n, call in enumerate(calls)]
        both = [
            AIMessageChunk(content="Done. " * 60),
            AIMessageChunk(content="", tool_call_chunks=chunks),
        ]
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder))
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, chatter("山", 1), keep=0)
        responder.script = [both, "And that is all."]
        state = say(graph, "I search the hall", the_document())
        assert count_of(state) == 3
        assert reply_of(state) == "And that is all."

    def test_a_call_that_nobody_offered(self, tmp_path: Path) -> None:
        responder = ScriptedResponder(make_tool_call("fly", {"to": "moon"}, text="Up."))
        graph = open_domain(tmp_path, fake_roles(responder))
        state = say(graph, "Hello", the_document())
        assert reply_of(state) == "Up."

    @pytest.mark.slow
    def test_before_a_split_as_after(self, tmp_path: Path) -> None:
        responder = ScriptedResponder()
        graph = open_domain(tmp_path, fake_roles(responder))
        record(graph, CONFIG, *past("茶", "雨"))
        tell(graph, CONFIG, chatter("山", 1), keep=0)
        responder.script = [editing(SET_3, text="Done.")]
        state = say(graph, "I search the hall", the_document())
        assert count_of(state) == 3
        names = [t.name for t in responder.requests[-1].tools]
        assert names == ["edit_state", "activate_topic"]


class TestHistory:
    @pytest.mark.slow
    def test_forks_have_their_own_document_and_journal(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Hello", the_document())
        say(graph, "Set the sword count to 3")
        before = graph.get_state(CONFIG).config
        say(graph, "Set the sword count to 4")
        fork = graph.invoke({"messages": [HumanMessage("Set the sword count to 9")]}, before)
        assert count_of(fork) == 9
        values = [e.edits[0][2] for e in journal(tmp_path, graph)]
        assert values == [3, 9]
        old = [c for c in graph.get_state_history(CONFIG) if not c.next]
        assert [count_of(c.values) for c in old] == [9, 4, 3, 1]

    def test_the_journal_shows_when_the_application_changed_it(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Set the sword count to 3", the_document())
        say(graph, "Set the sword count to 4")
        say(graph, "Set the sword count to 5", the_document())
        first, second, third = journal(tmp_path, graph)
        assert first.after == second.before
        assert second.after != third.before

    def test_sessions_have_their_own(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        other: Any = {"configurable": {"thread_id": "other"}}
        say(graph, "Hello", the_document())
        state = say(graph, "Set the sword count to 3", config=other)
        assert state["document"] == {}
        assert journal(tmp_path, graph, other) == []

    def test_the_input_stays_as_it_was(self, tmp_path: Path) -> None:
        document = the_document()
        graph = open_domain(tmp_path)
        state = say(graph, "Set the sword count to 3", document)
        assert document == the_document()
        state["document"]["health"] = 0
        assert say(graph, "Hello")["document"]["health"] == 85

    def test_events_of_the_turn(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Hello", the_document())
        (event,) = events_of(graph, CONFIG, "Set the sword count to 3")
        assert event["type"] == "receipt"
        assert last_receipt(tmp_path, graph, CONFIG).turn == 2

    def test_ai_messages_without_calls_are_settled(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        state = say(graph, "Set the sword count to 3", the_document())
        assert isinstance(state["messages"][-1], AIMessage)
        check_kept(kept(tmp_path, get_session(graph, CONFIG)), get_session(graph, CONFIG))
