"""Turns streamed and asynchronous: what the user sees is what is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from examples import weather
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableConfig
from sessions import (
    chatter,
    chunks_of,
    events_of,
    kept,
    last_receipt,
    open_after,
    open_graph,
    past,
    record,
    spoken,
    tell,
    thread,
)

from topicloom import get_session
from topicloom.hosting import Graph, get_text
from topicloom.testing import (
    Clock,
    ScriptedReply,
    ScriptedResponder,
    fake_roles,
    make_topic_search,
)

CONFIG = thread()


def said_once(graph: Graph, text: str, config: RunnableConfig) -> None:
    graph.invoke({"messages": [HumanMessage(text, id=text)]}, config)


def streamed_once(graph: Graph, text: str, config: RunnableConfig) -> None:
    list(graph.stream({"messages": [HumanMessage(text, id=text)]}, config, stream_mode="updates"))


async def asaid_once(graph: Graph, text: str, config: RunnableConfig) -> None:
    await graph.ainvoke({"messages": [HumanMessage(text, id=text)]}, config)


async def astreamed_once(graph: Graph, text: str, config: RunnableConfig) -> None:
    async for _ in graph.astream({"messages": [HumanMessage(text, id=text)]}, config):
        pass


class TestStreams:
    @pytest.mark.slow
    async def test_however_it_is_called_the_outcome_is_the_same(self, tmp_path: Path) -> None:
        outcomes: list[Any] = []
        ways: list[Callable[[Graph, str, RunnableConfig], Any]] = [
            said_once,
            streamed_once,
            asaid_once,
            astreamed_once,
        ]
        for way in ways:
            folder = tmp_path / way.__name__
            script: list[ScriptedReply] = ["One.", make_topic_search("茶"), "Two.", "x" * 300]
            graph = open_graph(
                folder,
                fake_roles(ScriptedResponder(*script)),
                clock=Clock(),
                tools=[weather],
            )
            record(graph, CONFIG, *past("茶", "雨", "山", rounds=5))
            for text in ("Hello", "And?", "So?", "Well"):
                pending = way(graph, text, CONFIG)
                if pending is not None:
                    await pending
            session = get_session(graph, CONFIG)
            transcript = kept(folder, session).messages(session)
            facts = session.model_dump(exclude={"turns", "transcript", "roster", "ranges"})
            said = [r.model_dump(exclude={"source", "time"}) for r in transcript]
            outcomes.append((facts, said))
        assert outcomes[0][0]["topics"] > 0
        assert all(outcome == outcomes[0] for outcome in outcomes[1:])

    def test_custom_gives_progress_and_the_receipt(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        record(graph, CONFIG, *past("茶", "雨", rounds=6))
        events = events_of(graph, CONFIG, "Hello")
        kinds = [e["type"] for e in events]
        assert "split" in kinds
        assert kinds[-1] == "receipt"
        assert kinds.count("receipt") == 1
        receipt = last_receipt(tmp_path, graph, CONFIG)
        assert events[-1]["receipt"] == receipt.model_dump(mode="json")
        assert receipt.turn == 2
        assert receipt.user == "m25"
        assert receipt.seconds > 0
        assert receipt.window == 2_000
        assert receipt.sections["system"] > 0

    async def test_custom_works_on_the_event_loop(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        said = {"messages": [HumanMessage("Hello")]}
        events = [e async for e in graph.astream(said, CONFIG, stream_mode="custom")]
        assert [dict(e)["type"] for e in events] == ["receipt"]

    def test_messages_gives_the_reply_s_tokens_alone(self, tmp_path: Path) -> None:
        reply = "A reply of several words, 也有中文。"
        graph = open_after(
            past("茶", "雨"), tmp_path, fake_roles(ScriptedResponder(otherwise=reply))
        )
        for text in ("Hello", "And now?", "你忘了吗？"):
            assert spoken(graph, CONFIG, text) == reply

    @pytest.mark.slow
    def test_tokens_come_one_by_one(self, tmp_path: Path) -> None:
        reply = " ".join(["word"] * 80)
        for held in (0, 200):
            config = thread(str(held))
            graph = open_graph(
                tmp_path,
                fake_roles(ScriptedResponder(otherwise=reply)),
                hold_characters=held,
            )
            record(graph, config, *past("茶", "雨"))
            chunks = chunks_of(graph, {"messages": [HumanMessage("Hello")]}, config)
            assert len([c for c in chunks if get_text(c)]) == 80

    async def test_messages_on_the_event_loop(self, tmp_path: Path) -> None:
        graph = open_after(past("茶", "雨"), tmp_path)
        said = {"messages": [HumanMessage("Hello")]}
        parts: AsyncIterator[Any] = graph.astream(said, CONFIG, stream_mode="messages")
        found = [(get_text(m), meta["langgraph_node"]) async for m, meta in parts]
        assert "".join(text for text, _ in found) == "All right, noted."
        assert {node for _, node in found} == {"main_generate"}

    @pytest.mark.slow
    def test_the_channel_shows_the_newest_messages_only(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path, visible_messages=4)
        messages = tell(graph, CONFIG, *[chatter("茶", n) for n in range(8)])
        assert [m.type for m in messages] == ["human", "ai"] * 2

    def test_the_name_of_who_replies_is_kept(self, tmp_path: Path) -> None:
        """LangChain adds chunks up without it."""
        named = [AIMessageChunk(content="Hi", name="Ben"), AIMessageChunk(content=" Ann")]
        for way, chunks in (("whole", named[:1]), ("in pieces", named)):
            folder = tmp_path / way
            graph = open_graph(folder, fake_roles(ScriptedResponder(otherwise=chunks)))
            (_, reply) = tell(graph, CONFIG, "Hello")
            (_, stored) = kept(folder, session := get_session(graph, CONFIG)).messages(session)
            assert (reply.name, stored.speaker) == ("Ben", "Ben")

    def test_usage_is_counted_once(self, tmp_path: Path) -> None:
        from langchain_core.callbacks import get_usage_metadata_callback

        usage = {"input_tokens": 30, "output_tokens": 5, "total_tokens": 35}
        chunks = [AIMessageChunk(content="Hi"), AIMessageChunk(content="", usage_metadata=usage)]
        graph = open_graph(tmp_path, fake_roles(ScriptedResponder(otherwise=chunks)))
        with get_usage_metadata_callback() as seen:
            (_, reply) = tell(graph, CONFIG, "Hello")
        assert seen.usage_metadata == {}
        assert isinstance(reply, AIMessage)
        assert reply.usage_metadata == usage
        (call,) = last_receipt(tmp_path, graph, CONFIG).calls
        assert (call.input_tokens, call.output_tokens) == (30, 5)
