"""Two who write to one session at once: both are kept, or told; forks stay what they are."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from sessions import (
    chatter,
    check_kept,
    kept,
    last_receipt,
    open_graph,
    prompt_of,
    tell,
    thread,
    transcript_of,
)

from topicloom import (
    ConflictError,
    ReplyError,
    ReplyRequest,
    Roles,
    SessionBusyError,
    TopicChange,
    TopicLoomWarning,
    TurnOptions,
    get_session,
    open_session,
)
from topicloom.hosting import Graph
from topicloom.state.changes import fingerprint_topic
from topicloom.testing import ScriptedResponder, fake_roles, make_tool_call

CONFIG = thread()
REPLY = "All right, noted."


def texts(folder: Path, graph: Graph, config: Any = CONFIG) -> list[str]:
    session = get_session(graph, config)
    return [m.text for m in check_kept(kept(folder, session), session)]


def users(folder: Path, graph: Graph) -> list[str]:
    return [m.text for m in transcript_of(folder, graph, CONFIG) if m.role == "user"]


class Meanwhile(ScriptedResponder):
    """Has something done by another writer while it replies, once for each that is given."""

    def __init__(self, *done: Callable[[], object]) -> None:
        super().__init__(otherwise=self._reply)
        self.done = list(done)

    def _reply(self, request: ReplyRequest) -> str:
        if self.done:
            # Another process has nothing of what is around this call.
            with ThreadPoolExecutor(1) as other:
                other.submit(Context().run, self.done.pop(0)).result()
        return REPLY


class Waiting(ScriptedResponder):
    """Begins a reply, and never goes on."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text, self.begun = text, asyncio.Event()

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        yield AIMessageChunk(content=self.text)
        self.begun.set()
        await asyncio.Event().wait()


def pair(folder: Path, **options: Any) -> tuple[Graph, Graph, Meanwhile]:
    """Two graphs as two processes have them, and what happens while the first one replies."""
    saver, meanwhile = InMemorySaver(), Meanwhile()
    one = open_graph(folder, fake_roles(meanwhile), checkpointer=saver, **options)
    return one, open_graph(folder, checkpointer=saver), meanwhile


def say(graph: Graph, text: str, config: Any = CONFIG) -> list[Any]:
    """Say something, and let nobody see a checkpoint before the turn has ended."""
    said: Any = {"messages": [HumanMessage(text)]}
    messages: list[Any] = graph.invoke(said, config, durability="exit")["messages"]
    return messages


class HalfTurn:
    """A turn that another process stands in the middle of."""

    def __init__(self, graph: Graph, text: str) -> None:
        said: Any = {"messages": [HumanMessage(text)]}
        self._updates = graph.stream(said, CONFIG, stream_mode="updates")
        self._pool, self._around = ThreadPoolExecutor(1), Context()

    def begin(self) -> None:
        """Take it up to its first reply."""
        self._run(lambda: next(u for u in self._updates if "main_generate" in u))

    def finish(self) -> None:
        """Take the rest of it."""
        self._run(lambda: list(self._updates))

    def _run(self, work: Callable[[], object]) -> None:
        self._pool.submit(self._around.run, work).result()


def overtake(folder: Path, roles: Roles | None = None, **options: Any) -> tuple[Graph, HalfTurn]:
    """A turn that began behind another one, which ended before: the newest checkpoint is not its.

    With the graph that takes it.
    """
    saver, meanwhile = InMemorySaver(), Meanwhile()
    other = open_graph(folder, fake_roles(meanwhile), checkpointer=saver)
    late = open_graph(folder, roles or fake_roles(), checkpointer=saver, **options)
    tell(late, CONFIG, "Hello")
    turn = HalfTurn(late, "Yours")
    meanwhile.done = [turn.begin]
    tell(other, CONFIG, "Mine")
    return late, turn


class TestInOneProcess:
    @pytest.mark.slow
    def test_turns_in_threads_wait_for_one_another(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        said = [chatter("茶雨"[n // 4 % 2], n, characters=120) for n in range(24)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(partial(tell, graph, CONFIG), said))
        assert sorted(users(tmp_path, graph)) == sorted(said)
        assert len(texts(tmp_path, graph)) == 48

    @pytest.mark.slow
    async def test_tasks_and_threads_beside_each_other(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        asked = [graph.ainvoke({"messages": [HumanMessage(f"task {n}")]}, CONFIG) for n in range(6)]
        with ThreadPoolExecutor(6) as pool:
            threads = [
                asyncio.wrap_future(pool.submit(tell, graph, CONFIG, f"thread {n}"))
                for n in range(6)
            ]
            await asyncio.gather(*asked, *threads)
        said = texts(tmp_path, graph)
        assert said[1::2] == [REPLY] * 12, "no turn began before the one before it ended"
        assert len(set(said[::2])) == 12
        session = get_session(graph, CONFIG)
        receipts = kept(tmp_path, session).receipts(session)
        assert [r.events for r in receipts] == [()] * 12, "no other writer came first"

    async def test_nobody_waits_for_ever(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path, reply_seconds=0.1)
        stream = graph.stream({"messages": [HumanMessage("one")]}, CONFIG)
        next(stream)
        await graph.ainvoke({"messages": [HumanMessage("two")]}, CONFIG)
        await asyncio.to_thread(tell, graph, CONFIG, "three")
        list(stream)
        assert sorted(texts(tmp_path, graph)) == sorted(["one", "two", "three", *[REPLY] * 3])

    async def test_one_that_is_cancelled_holds_nobody_up(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        stream = graph.astream({"messages": [HumanMessage("one")]}, CONFIG)
        await anext(stream)
        waiting = [
            asyncio.create_task(graph.ainvoke({"messages": [HumanMessage(text)]}, CONFIG))
            for text in ("two", "three")
        ]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await stream.aclose()  # type: ignore[attr-defined]
        await waiting[1]
        assert "three" in users(tmp_path, graph)

    async def test_one_that_is_cancelled_beside_that_of_another_process(
        self, tmp_path: Path
    ) -> None:
        """A client goes, and comes back at another worker before the first one has noticed."""
        saver, loop = InMemorySaver(), asyncio.get_running_loop()
        waits = Waiting("Well, ")
        one = open_graph(tmp_path, fake_roles(waits), checkpointer=saver)
        said: Any = {"messages": [HumanMessage("one")]}
        turn = asyncio.create_task(one.ainvoke(said, CONFIG, durability="exit"))
        await waits.begun.wait()

        async def stop() -> None:
            turn.cancel()
            await asyncio.wait([turn])

        meanwhile = Meanwhile(lambda: asyncio.run_coroutine_threadsafe(stop(), loop).result())
        two = open_graph(tmp_path, fake_roles(meanwhile), checkpointer=saver)
        await asyncio.to_thread(say, two, "two")
        tell(two, CONFIG, "three")
        assert sorted(users(tmp_path, two)) == ["one", "three", "two"]

    @pytest.mark.slow
    async def test_a_tool_that_takes_a_turn_of_its_own_session_is_told(
        self, tmp_path: Path
    ) -> None:
        graphs: list[Graph] = []

        def again() -> str:
            """Talk to oneself."""
            tell(graphs[0], CONFIG, "inside")
            return "never"

        for start in ("sync", "async"):
            responder = ScriptedResponder(make_tool_call("again", {}))
            graphs[:] = [open_graph(tmp_path / start, fake_roles(responder), tools=[again])]
            said: Any = {"messages": [HumanMessage("Hello")]}
            invoke: Any = graphs[0].ainvoke
            if start == "sync":
                sync: Any = graphs[0].invoke
                invoke = partial(asyncio.to_thread, sync)
            with pytest.raises(SessionBusyError, match="tool"):
                await invoke(said, CONFIG)
            tell(graphs[0], thread("other"), "Hello")

    def test_a_turn_within_the_stream_of_another_is_told(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        stream = graph.stream({"messages": [HumanMessage("one")]}, CONFIG)
        next(stream)
        with pytest.raises(SessionBusyError):
            tell(graph, CONFIG, "two")
        list(stream)
        tell(graph, CONFIG, "two")
        assert texts(tmp_path, graph) == ["one", REPLY, "two", REPLY]

    def test_a_pools_thread_that_began_a_stream_waits_with_another_request(
        self, tmp_path: Path
    ) -> None:
        graph = open_graph(tmp_path)
        with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
            stream = graph.stream({"messages": [HumanMessage("one")]}, CONFIG)
            one.submit(next, stream).result()
            waiting = one.submit(tell, graph, CONFIG, "two")
            other.submit(list, stream).result()
            waiting.result()
        assert texts(tmp_path, graph) == ["one", REPLY, "two", REPLY]


class TestMerge:
    @pytest.mark.slow
    def test_who_ends_later_comes_behind(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        tell(one, CONFIG, "Hello")
        meanwhile.done = [partial(tell, other, CONFIG, "Mine", "And mine")]
        shown = say(one, "Yours")
        assert texts(tmp_path, one) == [
            *("Hello", REPLY, "Mine", REPLY, "And mine", REPLY, "Yours", REPLY)
        ]
        assert [m.content for m in shown] == ["And mine", REPLY, "Yours", REPLY]
        receipt = last_receipt(tmp_path, one, CONFIG)
        assert (receipt.user, receipt.turn) == ("m7", 4)
        assert any("another writer came first: 4 messages" in event for event in receipt.events)
        tell(one, CONFIG, "Now?")
        assert "And mine" in prompt_of(meanwhile.requests[-1])
        assert not last_receipt(tmp_path, one, CONFIG).events

    def test_two_first_turns(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        meanwhile.done = [partial(tell, other, CONFIG, "Mine")]
        say(one, "Yours")
        assert texts(tmp_path, one) == ["Mine", REPLY, "Yours", REPLY]

    @pytest.mark.slow
    def test_a_checkpoint_that_is_behind_goes_on_from_where_the_line_is(
        self, tmp_path: Path
    ) -> None:
        """The newest checkpoint is not always that of who ended last."""
        saver = InMemorySaver()
        tell(open_graph(tmp_path, checkpointer=saver), CONFIG, "Hello")
        stale = copy.copy(saver)
        stale.storage, stale.writes, stale.blobs = copy.deepcopy(
            (saver.storage, saver.writes, saver.blobs)
        )
        one, other = (open_graph(tmp_path, checkpointer=s) for s in (saver, stale))
        for n in range(9):
            tell(one, CONFIG, chatter("茶", n, characters=200))
        shown = tell(other, CONFIG, "Now?")
        said = texts(tmp_path, other)
        assert len(said) == len(set(said[::2])) * 2 == 22
        assert [m.content for m in shown][:2] == [said[-4], REPLY]
        assert get_session(other, CONFIG).topics == get_session(one, CONFIG).topics > 0
        tell(one, CONFIG, "And now?")
        assert texts(tmp_path, one)[-4:] == ["Now?", REPLY, "And now?", REPLY]

    def test_a_session_is_opened_as_the_next_turn_finds_it(self, tmp_path: Path) -> None:
        saver = InMemorySaver()
        one, other = (open_graph(tmp_path, checkpointer=saver) for _ in range(2))
        say(one, "one")
        before = one.get_state(CONFIG)
        say(other, "two")
        # The checkpoint of who ended last is not the newest.
        newest = one.get_state(CONFIG).config["configurable"]["checkpoint_id"]
        del saver.storage["s"][""][newest]
        assert one.get_state(CONFIG).config == before.config
        session, store = open_session(one, CONFIG)
        assert [m.text for m in store.messages(session)] == ["one", REPLY, "two", REPLY]
        assert [r.user for r in store.receipts(session)] == ["m1", "m3"]
        session, store = open_session(one, before.config)
        assert [m.text for m in store.messages(session)] == ["one", REPLY], "that one alone"
        say(one, "three")
        assert users(tmp_path, one) == ["one", "two", "three"]

    def test_nothing_of_others_is_streamed_as_if_it_were_said_now(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        tell(one, CONFIG, "Hello")
        meanwhile.done = [partial(tell, other, CONFIG, "Mine")]
        said: Any = {"messages": [HumanMessage("Yours")]}
        stream: Any = one.stream(said, CONFIG, stream_mode="messages", durability="exit")
        assert "".join(m.content for m, _ in stream) == REPLY
        assert "another" in str(last_receipt(tmp_path, one, CONFIG).events)

    def test_a_message_that_both_were_sent_stands_once(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        tell(one, CONFIG, "Hello")
        said: Any = {"messages": [HumanMessage("Once", id="once")]}
        meanwhile.done = [partial(other.invoke, said, CONFIG)]
        one.invoke(said, CONFIG, durability="exit")
        assert texts(tmp_path, one) == ["Hello", REPLY, "Once", REPLY, REPLY]

    def test_one_that_saw_the_other_in_the_middle(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        tell(one, CONFIG, "Hello")
        meanwhile.done = [partial(tell, other, CONFIG, "Mine")]
        tell(one, CONFIG, "Yours")
        assert texts(tmp_path, one) == ["Hello", REPLY, "Yours", "Mine", REPLY, REPLY]

    def test_a_message_whose_turn_failed_comes_with_the_next(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path, reply_attempts=1)
        tell(one, CONFIG, "Hello")

        def fail() -> None:
            say(other, "Mine")
            raise ConnectionError("down")

        meanwhile.done = [fail]
        with pytest.raises(ReplyError):
            say(one, "Yours")
        tell(one, CONFIG, "Again")
        assert users(tmp_path, one) == ["Hello", "Mine", "Yours", "Again"]

    @pytest.mark.slow
    def test_splits_of_both(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        for n in range(12):
            meanwhile.done = [partial(tell, other, CONFIG, chatter("雨", n, characters=150))]
            say(one, chatter("茶", n, characters=150))
        assert len(texts(tmp_path, one)) == 48
        assert get_session(one, CONFIG).topics > 0

    @pytest.mark.slow
    def test_changes_of_a_review_are_made_in_what_another_left(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        tell(one, CONFIG, *(chatter("茶", n, characters=200) for n in range(9)))
        session, store = open_session(one, CONFIG)
        topic = store.topic_table(session).open()[0]
        change = TopicChange(
            topic=topic.id,
            seen=fingerprint_topic(topic),
            name=topic.name,
            brief="All about tea.",
            summary="",
            importance=None,
        )
        options = TurnOptions(answer=False, changes=(change,))
        meanwhile.done = [partial(other.invoke, {"messages": []}, CONFIG, context=options)]
        say(one, "Yours")
        session, store = open_session(one, CONFIG)
        assert store.topic_table(session)[topic.id].brief == "All about tea."

    def test_in_a_store(self) -> None:
        store: BaseStore = InMemoryStore()
        saver, meanwhile = InMemorySaver(), Meanwhile()
        one, other = (
            open_graph(Path(), roles, checkpointer=saver, storage="store", store=store)
            for roles in (fake_roles(meanwhile), None)
        )
        tell(one, CONFIG, "Hello")
        meanwhile.done = [partial(tell, other, CONFIG, "Mine")]
        say(one, "Yours")
        session, stored = open_session(one, CONFIG)
        assert [m.text for m in stored.messages(session)][2::2] == ["Mine", "Yours"]


class TestOtherwise:
    def test_raise_refuses_the_turn_and_keeps_what_was_said(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path, on_conflict="raise")
        tell(one, CONFIG, "Hello")
        meanwhile.done = [partial(tell, other, CONFIG, "Mine")]
        with pytest.raises(ConflictError, match="another writer"):
            say(one, "Yours")
        tell(one, CONFIG, "Again")
        assert users(tmp_path, one) == ["Hello", "Mine", "Yours", "Again"]

    def test_so_it_is_where_the_other_one_began_before(self, tmp_path: Path) -> None:
        late, turn = overtake(tmp_path, on_conflict="raise")
        with pytest.raises(ConflictError, match="What was said is kept"):
            turn.finish()
        tell(late, CONFIG, "Again")
        assert users(tmp_path, late) == ["Hello", "Mine", "Yours", "Again"]

    def test_so_it_is_where_a_tool_fails(self, tmp_path: Path) -> None:
        def look() -> str:
            """Look."""
            raise SystemError("no server")

        roles = fake_roles(ScriptedResponder(REPLY, make_tool_call("look", {}), otherwise=REPLY))
        late, turn = overtake(tmp_path, roles, tools=[look])
        with pytest.raises(SystemError, match="no server"):
            turn.finish()
        tell(late, CONFIG, "Again")
        assert users(tmp_path, late) == ["Hello", "Mine", "Yours", "Again"]

    def test_branch_leaves_the_other_alone_and_says_so(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path, on_conflict="branch")
        tell(one, CONFIG, "Hello")
        meanwhile.done = [partial(tell, other, CONFIG, "Mine")]
        say(one, "Yours")
        assert users(tmp_path, one) == ["Hello", "Yours"]
        assert "branch" in last_receipt(tmp_path, one, CONFIG).events[-1]
        tell(one, CONFIG, "Again")
        assert users(tmp_path, one) == ["Hello", "Yours", "Again"]


class TestForks:
    def test_by_a_state_that_was_changed_at_an_old_checkpoint(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        tell(graph, CONFIG, "Hello", "One")
        old = [c for c in graph.get_state_history(CONFIG) if not c.next]
        graph.update_state(old[1].config, {"messages": []})
        tell(graph, CONFIG, "Two", "Three")
        assert users(tmp_path, graph) == ["Hello", "Two", "Three"]

    def test_while_the_line_goes_on(self, tmp_path: Path) -> None:
        one, other, meanwhile = pair(tmp_path)
        tell(one, CONFIG, "Hello", "One")
        old = [c for c in one.get_state_history(CONFIG) if not c.next][1]
        meanwhile.done = [partial(tell, other, CONFIG, "Mine")]
        say(one, "Fork", old.config)
        assert users(tmp_path, one) == ["Hello", "Fork"]

    def test_from_the_middle_of_a_turn(self, tmp_path: Path) -> None:
        graph = open_graph(tmp_path)
        tell(graph, CONFIG, "Hello", "One", "Two")
        middle = [c for c in graph.get_state_history(CONFIG) if c.next == ("main_generate",)][1]
        graph.invoke(None, middle.config)
        tell(graph, CONFIG, "Three")
        assert users(tmp_path, graph) == ["Hello", "One", "Three"]

    def test_a_copied_thread(self, tmp_path: Path) -> None:
        saver = InMemorySaver()
        graph = open_graph(tmp_path, checkpointer=saver)
        tell(graph, CONFIG, "Hello")
        values = graph.get_state(CONFIG).values
        graph.update_state(thread("copy"), values, as_node="finalize")
        tell(graph, CONFIG, "One")
        tell(graph, thread("copy"), "Two", "Three")
        assert texts(tmp_path, graph, thread("copy"))[::2] == ["Hello", "Two", "Three"]

    def test_a_thread_whose_checkpoints_are_gone_begins_anew(self, tmp_path: Path) -> None:
        tell(open_graph(tmp_path), CONFIG, "Hello")
        graph = open_graph(tmp_path)
        with pytest.warns(TopicLoomWarning, match="checkpointer knows nothing of the 2 messages"):
            tell(graph, CONFIG, "Who am I?")
        assert users(tmp_path, graph) == ["Who am I?"]
        assert "begun anew" in last_receipt(tmp_path, graph, CONFIG).events[0]
        tell(graph, CONFIG, "And now?")
        assert not last_receipt(tmp_path, graph, CONFIG).events
