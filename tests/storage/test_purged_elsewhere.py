"""What was purged is served by nobody who had the session open, on every storage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import pytest
from agents import ScriptedModel, open_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from mcp import Client
from sessions import prompt_of, record, tell, thread

from topicloom import (
    Memory,
    MissingRecordError,
    ReplyRequest,
    Settings,
    Storage,
    TopicMiddleware,
    build_session_graph,
    open_session,
)
from topicloom.hosting import REMOVED, Graph
from topicloom.testing import Clock, ScriptedResponder, fake_roles
from topicloom_app import make_mcp_server

Reopen = Callable[[], Storage]
Look = Callable[[], str]
"""Reads all that a holder of the session serves."""
SECRET = "ZEBRA77"
TOLD = ("m1", "m3", "m13")
"""The messages that tell the secret: the first, one in a topic, and one of the last turn."""
CONFIG = thread()


@dataclass
class Place:
    """A session that was told a secret, and ways to open it as another process would."""

    reopen: Reopen
    saver: InMemorySaver = field(default_factory=InMemorySaver)
    prompts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        graph = self.open_graph()
        for tag, secret in (("茶", f" {SECRET}"), ("雨", "")):
            said = [HumanMessage(f"{tag}：第{n}次{secret if n < 2 else ''}") for n in range(3)]
            replies = [AIMessage(f"{tag}：记下第{n}次") for n in range(3)]
            record(graph, CONFIG, *chain(*zip(said, replies, strict=True)))
        tell(graph, CONFIG, f"山：{SECRET}是什么？", keep=0)

    def open_graph(self) -> Graph:
        """Its graph."""

        def reply(request: ReplyRequest) -> str:
            self.prompts.append(prompt_of(request))
            return "好。"

        return build_session_graph(
            settings=Settings.model_validate({"window": 2_000, "fsync": False}),
            roles=fake_roles(ScriptedResponder(otherwise=reply)),
            storage=self.reopen(),
            clock=Clock(),
            embedder="hashing",
        ).compile(checkpointer=self.saver)

    def open_memory(self) -> Memory:
        """Its memory, by its storage alone."""
        return Memory(self.reopen(), "s", embedder="hashing")


@pytest.fixture
def place(reopen: Reopen) -> Place:
    return Place(reopen)


def look_into(memory: Memory) -> str:
    """All that a memory serves."""
    topics = memory.topics()
    found = [hit.message for hit in memory.search(SECRET)]
    quoted = [memory.quote(i) for i in TOLD]
    held = [topic.messages() for topic in topics]
    return str([topics, found, quoted, held, memory.history(limit=None), memory.receipts()])


def hold_memory(place: Place) -> Look:
    memory = place.open_memory()
    return lambda: look_into(memory)


def hold_graph(place: Place) -> Look:
    graph = place.open_graph()  # the inspector's, a server's
    return lambda: look_into(Memory.of(graph, CONFIG)) + str(Memory.of(graph, CONFIG).prompt())


def hold_memory_of_graph(place: Place) -> Look:
    memory = Memory.of(place.open_graph(), CONFIG)
    return lambda: look_into(memory)


def hold_topics(place: Place) -> Look:
    topics = place.open_memory().topics()
    return lambda: str([topic.messages() for topic in topics])


def hold_store(place: Place) -> Look:
    session, store = open_session(place.open_graph(), CONFIG)

    def look() -> str:
        held = [store.topic_messages(session, topic) for topic in store.topic_table(session)]
        return str([store.messages(session), store.message(session, 3), held, store.notes(session)])

    return look


def hold_state(place: Place) -> Look:
    graph = place.open_graph()

    def look() -> str:
        states = [graph.get_state(CONFIG), *graph.get_state_history(CONFIG)]
        return str([state.values for state in states])

    return look


def hold_mcp_server(place: Place) -> Look:
    server = make_mcp_server(place.open_memory())

    async def ask() -> str:
        async with Client(server) as client:
            calls: list[tuple[str, dict[str, Any]]] = [
                ("list_topics", {}),
                ("search", {"text": SECRET}),
                *(("quote", {"message": i}) for i in TOLD),
                ("read_topic", {"topic": "t1"}),
            ]
            said: list[Any] = [await client.call_tool(tool, given) for tool, given in calls]
            return str([answer.structured_content for answer in said])

    return lambda: asyncio.run(ask())


HOLDERS = [
    hold_memory,
    hold_graph,
    hold_memory_of_graph,
    hold_topics,
    hold_store,
    hold_state,
    hold_mcp_server,
]


def purge_by_storage(place: Place, look: Look) -> None:
    place.open_memory().forget(*TOLD)


def purge_by_graph(place: Place, look: Look) -> None:
    assert Memory.of(place.open_graph(), CONFIG).forget(*TOLD).left == ()


def purge_by_two(place: Place, look: Look) -> None:
    """Two graphs purge from one state; the session is read between them."""
    one, two = place.open_graph(), place.open_graph()
    Memory.of(two, CONFIG).session()
    Memory.of(one, CONFIG).forget("m9")
    look()
    Memory.of(two, CONFIG).forget("m1", "m3", "m13")


PURGES = [
    purge_by_storage,
    purge_by_graph,
    pytest.param(purge_by_two, marks=pytest.mark.slow),
]


@pytest.mark.slow
@pytest.mark.parametrize("purge", PURGES)
def test_nobody_serves_it_from_the_moment_the_purge_returned(
    place: Place, purge: Callable[[Place, Look], None]
) -> None:
    """Each has opened the place by itself, so that none learns of it from another."""
    looks = {hold.__name__: hold(place) for hold in HOLDERS}
    assert [name for name, look in looks.items() if SECRET not in look()] == []
    purge(place, lambda: str([look() for look in looks.values()]))
    after = {name: look() for name, look in looks.items()}
    assert [name for name, served in after.items() if SECRET in served] == []
    assert [name for name, served in after.items() if REMOVED not in served] == []


@pytest.mark.slow
@pytest.mark.parametrize("purge", PURGES)
def test_the_next_turn_has_it_in_no_prompt_and_no_channel(
    place: Place, purge: Callable[[Place, Look], None]
) -> None:
    graph = place.open_graph()
    tell(graph, CONFIG, "雨：还下吗？")
    assert SECRET in place.prompts[-1]
    purge(place, lambda: "")
    shown = tell(graph, CONFIG, "茶：第1次说了什么？")
    assert SECRET not in place.prompts[-1]
    assert SECRET not in str(shown)
    assert SECRET not in str(place.saver.get(CONFIG))
    assert SECRET not in look_into(Memory.of(graph, CONFIG))


@pytest.mark.slow
def test_what_is_left_in_checkpoints_goes_as_the_result_says(place: Place) -> None:
    (left,) = place.open_memory().forget(*TOLD).left
    assert "the checkpoints of thread 's', until Memory.of(graph, config).forget removes it" in left
    assert SECRET in str((place.saver.blobs, place.saver.writes))
    done = Memory.of(place.open_graph(), CONFIG).forget(*TOLD)
    assert (done.messages, done.left) == ((), ())
    assert SECRET not in str((place.saver.storage, place.saver.blobs, place.saver.writes))


@pytest.mark.slow
def test_nobody_serves_a_session_that_another_deleted(place: Place) -> None:
    """Its checkpoints stay where it was deleted by its storage alone."""
    graph, memory = place.open_graph(), place.open_memory()
    assert SECRET in look_into(Memory.of(graph, CONFIG))
    assert SECRET in look_into(memory)
    place.open_memory().delete()
    assert memory.history() == []
    with pytest.raises(MissingRecordError):
        Memory.of(graph, CONFIG).history()
    with pytest.raises(MissingRecordError):
        tell(graph, CONFIG, "茶：还在吗？")


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "files",
        pytest.param("sqlite", marks=pytest.mark.slow),
        *(pytest.param(k, marks=pytest.mark.long) for k in ("postgres", "dicts")),
    ],
)
def test_an_agent_serves_it_no_more(make_reopen: Callable[[str], Reopen], kind: str) -> None:
    """By its memory at once, by its prompts and its channel from its next turn on."""
    saver, model, reopen = InMemorySaver(), ScriptedModel(), make_reopen(kind)

    def reopen_agent() -> Graph:
        memory = TopicMiddleware(
            settings=Settings.model_validate({"window": 1_000, "fsync": False}),
            roles=fake_roles(),
            storage=reopen(),
            clock=Clock(),
            embedder="hashing",
        )
        return open_agent(model, memory, checkpointer=saver)

    agent = reopen_agent()
    texts = [f"茶：第{n}次 {SECRET if n in (1, 39) else '记下'}" for n in range(40)]
    for text in texts:  # the first are further back than a turn compares
        agent.invoke({"messages": [HumanMessage(text)]}, CONFIG)
    held = Memory.of(agent, CONFIG)
    assert SECRET in str([held.history(limit=None), held.search(SECRET)])
    told = [m.id for m in held.history(limit=None) if SECRET in m.text]
    (left,) = Memory.of(reopen_agent(), CONFIG).forget(*told).left
    assert "the agent's state shows it until its next turn" in left
    assert SECRET not in str([held.history(limit=None), held.search(SECRET), held.topics()])
    state = agent.invoke({"messages": [HumanMessage("茶：第1次？")]}, CONFIG)
    assert SECRET not in str(model.prompts[-1])
    assert SECRET not in str(state["messages"])


def test_a_purge_that_was_killed_before_it_announced_itself_is_announced_by_the_next(
    reopen: Reopen,
) -> None:
    log, other = reopen().open("s"), reopen().open("s")
    head = log.append("transcript", None, [{"text": SECRET}])
    refs = log.refs("transcript", head)
    assert other.read("transcript", refs)[0]["text"] == SECRET
    known = other.purges
    log.purge("transcript", refs)
    other.renew()
    assert "text" not in other.read("transcript", refs)[0]
    assert other.purges not in (known, 0)
    log.announce_purge()
    assert log.purges != other.purges


def test_a_session_that_nothing_was_purged_of_is_read_once(reopen: Reopen) -> None:
    log = reopen().open("s")
    log.append("transcript", None, [{"text": "x"}])
    renewals = log.renewals
    for _ in range(3):
        log.renew()
    assert (log.renewals, log.purges) == (renewals, 0)
