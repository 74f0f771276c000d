"""Documents that cannot be used leave no trace; crashes leave a document exact."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from domains import CONFIG, ScriptedPlanner, edit_plan, open_domain, reply_of, say, the_document
from examples import few
from failing_storage import Crash, FailingStorage
from faults.talk import finish
from hypothesis import given, strategies as st
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command, Overwrite
from sessions import check_kept, kept, transcript_of

from topicloom import (
    ConfigurationError,
    Domain,
    InputError,
    ReplyError,
    build_session_graph,
    get_session,
)
from topicloom.domain.document import Document
from topicloom.testing import ScriptedResponder, fake_roles, make_tool_call

REPLY = "All right, noted."
BAD: list[Any] = [
    [],
    "text",
    {"a": math.nan},
    {"a": {"b": [{1: 2}]}},
    {"a": [{"id": "x"}, {"id": "x"}]},
    {"health": 200},
    {},
]
SCHEMA: dict[str, Any] = {"properties": {"health": {"maximum": 100}}, "required": ["health"]}


class TestRefused:
    @pytest.mark.parametrize("bad", BAD)
    @pytest.mark.parametrize("first", [True, False])
    def test_it_leaves_no_trace(self, tmp_path: Path, bad: Any, first: bool) -> None:
        graph = open_domain(tmp_path, domain=Domain(schema=SCHEMA))
        if not first:
            say(graph, "Hello", the_document())
        with pytest.raises(InputError, match="document"):
            say(graph, "And this?", bad)
        kept = graph.get_state(CONFIG).values.get("document", {})
        assert kept == ({} if first else the_document())
        state = say(graph, "And this?", the_document())
        assert reply_of(state) == REPLY
        said = [r.text for r in transcript_of(tmp_path, graph, CONFIG)]
        assert said == [*([] if first else ["Hello", REPLY]), "And this?", REPLY]

    def test_without_another_the_one_before_stays(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Set the sword count to 3", the_document())
        with pytest.raises(InputError):
            say(graph, "And this?", {"a": math.nan})
        state = say(graph, "And this?")
        assert state["document"]["inventory"]["main_bag"]["items"][0]["count"] == 3

    def test_a_document_is_refused_each_time(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Hello", the_document())
        for _ in range(3):
            with pytest.raises(InputError, match="not list"):
                say(graph, "And this?", [])
        assert graph.get_state(CONFIG).values["document"] == the_document()
        assert len(say(graph, "Go on")["messages"]) == 4

    def test_put_in_by_hand(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        say(graph, "Hello", the_document())
        for values in ({"document": [1]}, {"document": Overwrite([1])}):
            with pytest.raises(InputError, match="not list"):
                graph.update_state(CONFIG, values)
        with pytest.raises(InputError, match="not list"):
            graph.invoke(Command(update={"document": [1]}), CONFIG)
        assert say(graph, "And this?")["document"] == the_document()

    def test_a_tool_loop_that_was_cut_off_stays(self, tmp_path: Path) -> None:
        def look_up(city: str) -> str:
            """Something to call."""
            return f"{city}: sunny"

        responder = ScriptedResponder(
            make_tool_call("look_up", {"city": "Oslo"}), RuntimeError("down")
        )
        graph = open_domain(tmp_path, fake_roles(responder), tools=[look_up], reply_attempts=1)
        with pytest.raises(ReplyError):
            say(graph, "How is Oslo?", the_document(), id="a")
        with pytest.raises(InputError):
            say(graph, "How is Oslo?", [], id="b")
        assert [m.type for m in graph.get_state(CONFIG).values["messages"]] == [
            "human",
            "ai",
            "tool",
        ]
        say(graph, "How is Oslo?", id="a")
        assert [r.role for r in transcript_of(tmp_path, graph, CONFIG)] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]

    async def test_on_the_event_loop(self, tmp_path: Path) -> None:
        graph = open_domain(tmp_path)
        with pytest.raises(InputError, match="not list"):
            await graph.ainvoke({"messages": [("user", "x")], "document": []}, CONFIG)
        state = await graph.ainvoke({"messages": [("user", "x")]}, CONFIG)
        assert state["document"] == {}

    @pytest.mark.slow
    def test_with_checkpoints_on_disk(self, tmp_path: Path) -> None:
        with SqliteSaver.from_conn_string(str(tmp_path / "c.sqlite")) as saver:
            graph = open_domain(tmp_path, checkpointer=saver)
            say(graph, "Hello", the_document())
            for bad in BAD[:5]:
                with pytest.raises(InputError):
                    say(graph, "And this?", bad)
            graph = open_domain(tmp_path, checkpointer=saver)
            assert say(graph, "Go on")["document"] == the_document()

    def test_a_schema_or_a_template_is_refused_at_once(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="not a JSON schema"):
            build_session_graph(domain=Domain(schema={"type": "nothing"}))
        (tmp_path / "a.jinja").write_text("{% if %}")
        with pytest.raises(ConfigurationError, match="line 1"):
            build_session_graph(domain=Domain(templates=tmp_path))


TURNS = [
    "Hello",
    "increase the sword count by 1",
    "I search the hall",
    "把灯笼数量减1",
    "I drink the potion",
    "increase the sword count by 1",
]


def story(folder: Path, storage: FailingStorage, durability: Any) -> tuple[Any, ...]:
    """A session with edits of all kinds; every crash is followed by a restart."""
    saver = InMemorySaver()

    def answer(request: Any) -> Any:
        last = request.messages[-1]
        if last.type == "tool":
            return "It is done."
        edits = [["INC", "item_potion_02.count", -1], ["INC", "health", 1]]
        if request.query == TURNS[2]:
            return make_tool_call("edit_state", {"edits": edits}, text="You find something.")
        if request.query == TURNS[4]:
            return make_tool_call("edit_state", {"edits": edits})
        return REPLY

    def opened() -> Any:
        responder = ScriptedResponder(otherwise=answer)
        return open_domain(
            folder, fake_roles(responder), checkpointer=saver, storage=storage, window=8_000
        )

    graph = opened()
    for number, text in enumerate(TURNS):
        said: Any = {"messages": [HumanMessage(text, id=f"u{number}")]}
        if number == 0:
            said["document"] = the_document()
        try:
            graph.invoke(said, CONFIG, durability=durability)
        except Crash:
            graph = opened()
            if not finish(graph, durability=durability):
                graph.invoke(said, CONFIG, durability=durability)
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    document: Document = graph.get_state(CONFIG).values["document"]
    journal = [(e.turn, e.message, e.edits, e.after) for e in store.journal(session)]
    return document, journal, [r.text for r in check_kept(store, session)]


class TestCrashes:
    @pytest.mark.slow
    def test_a_story_without_crashes_ends_as_it_has_to(self, tmp_path: Path) -> None:
        storage = FailingStorage(tmp_path)
        document, journal, texts = story(tmp_path, storage, "sync")
        sword, potion, lamp = document["inventory"]["main_bag"]["items"]
        assert (sword["count"], potion["count"], lamp["count"]) == (3, 0, 3)
        assert document["health"] == 87
        assert [turn for turn, *_ in journal] == [2, 3, 4, 5, 6]
        assert len(texts) == 14
        assert storage.appends >= 20

    @pytest.mark.slow
    @few(6)
    @given(st.integers(1, 26), st.booleans(), st.sampled_from(["sync", "async", "exit"]))
    def test_anywhere_every_edit_is_made_once(
        self, tmp_path: Path, fail_at: int, afterwards: bool, durability: str
    ) -> None:
        with TemporaryDirectory(dir=tmp_path) as one, TemporaryDirectory(dir=tmp_path) as other:
            whole = story(Path(one), FailingStorage(Path(one)), durability)
            storage = FailingStorage(Path(other), fail_at, afterwards=afterwards)
            assert story(Path(other), storage, durability) == whole

    def test_a_message_that_is_sent_again_edits_once(self, tmp_path: Path) -> None:
        """The reply fails after the planner's edits could not be made; the message comes again."""
        planner = ScriptedPlanner([edit_plan(("INC", "nothing.here", 1))] * 2)
        responder = ScriptedResponder(RuntimeError("down"))
        graph = open_domain(tmp_path, fake_roles(responder), planner=planner, reply_attempts=1)
        with pytest.raises(ReplyError):
            say(graph, "One more", the_document(), id="a")
        responder.script = [
            make_tool_call("edit_state", {"edits": [["INC", "health", 1]]}, text="Done.")
        ]
        state = say(graph, "One more", id="a")
        assert state["document"]["health"] == 86
        session = get_session(graph, CONFIG)
        assert len(kept(tmp_path, session).journal(session)) == 1
        assert session.count == 2
