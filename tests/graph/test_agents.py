"""Endless memory in agents of `create_agent`: what their model is sent, and what is kept."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, call, open_agent, remember
from examples import more
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.vectorstores import InMemoryVectorStore
from sessions import chatter, check_kept, kept, thread

from topicloom import (
    ConfigurationError,
    FileStorage,
    InputError,
    Memory,
    areview_session,
    delete_session,
    embedded_roles,
    get_session,
    review_session,
)
from topicloom.hosting import get_text
from topicloom.search.hashing import HashingEmbedder

FACT = "My cat is called Minka, and she was born on 4 May 2019 in a shoebox."
BUDGET = 2_000
_ENCODER = DeterministicFakeEmbedding(size=16)


def say(agent: Any, config: RunnableConfig, *texts: str) -> list[Any]:
    """Say things one after another; the agent's messages after the last."""
    for text in texts:
        state = agent.invoke({"messages": [HumanMessage(text)]}, config, durability="exit")
    messages: list[Any] = state["messages"]
    return messages


def kept_of(folder: Path, agent: Any, config: RunnableConfig) -> list[Any]:
    session = get_session(agent, config)
    return check_kept(kept(folder, session), session)


def small_talk(number: int) -> str:
    subject = ("the bicycle", "the garden", "the tax return", "the holiday")[number // 10 % 4]
    return f"Remark {number} on {subject}: it needs some more work, and I will look at it again."


@pytest.mark.slow
def test_a_fact_of_60_turns_ago_stands_word_for_word_where_a_summary_lost_it(
    tmp_path: Path,
) -> None:
    model, other = ScriptedModel(), ScriptedModel()
    summarize = SummarizationMiddleware(
        ScriptedModel(otherwise="They talked about a bicycle, a garden and a tax return."),
        trigger=("tokens", BUDGET),
        keep=("tokens", BUDGET // 2),
    )
    memory = remember(
        tmp_path,
        roles=embedded_roles(HashingEmbedder(256)),
        settings={"window": BUDGET, "recall_tokens": BUDGET // 4},
    )
    said = [small_talk(n) for n in range(more(60))]
    said[2] = FACT
    for agent in (open_agent(model, memory), open_agent(other, summarize)):
        say(agent, thread(), *said, "What is my cat called, and when was she born?")
    assert FACT in model.prompt
    assert FACT not in other.prompt
    counter = memory.deps.window.counter
    assert max(sum(map(counter.message, p)) for p in model.prompts) < BUDGET
    agent = open_agent(model, memory)
    assert len(say(agent, thread("new"), "Hello")) == 2


@pytest.mark.slow
def test_the_messages_of_the_state_stay_whole(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path), system_prompt="You are an app.")
    texts = [chatter("茶" if n % 2 else "雨", n) for n in range(24)]
    messages = say(agent, thread(), *texts)
    assert [m.content for m in messages[::2]] == texts
    assert [m.text for m in kept_of(tmp_path, agent, thread())] == [get_text(m) for m in messages]
    assert get_session(agent, thread()).topics == 2
    assert len(model.prompts[-1]) < 12
    assert get_text(model.prompts[-1][0]).startswith("You are an app.\n\n# ")
    state = agent.invoke({"messages": [HumanMessage("Hello")]}, thread())
    assert state.keys() == {"messages"}


@pytest.mark.slow
async def test_on_an_event_loop_it_is_the_same(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path))
    for number in range(16):
        await agent.ainvoke({"messages": [HumanMessage(chatter("茶", number))]}, thread())
    assert "<memory>" in model.prompt
    assert len(kept_of(tmp_path, agent, thread())) == 32
    said = {"messages": [HumanMessage("茶？")]}
    modes: Any = ["custom", "messages"]
    events: list[Any] = [e async for e in agent.astream(said, thread(), stream_mode=modes)]
    assert [e["type"] for mode, e in events if mode == "custom"][-1] == "receipt"
    spoken = "".join(get_text(e[0]) for mode, e in events if mode == "messages")
    assert spoken == "All right, noted."


@pytest.mark.slow
def test_threads_at_once_do_not_mix(tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))

    def talk(name: str) -> list[str]:
        say(agent, thread(name), *(chatter(name, n) for n in range(12)))
        return [m.text for m in kept_of(tmp_path, agent, thread(name)) if m.role == "user"]

    with ThreadPoolExecutor(4) as pool:
        for name, said in zip("茶雨山海", pool.map(talk, "茶雨山海"), strict=True):
            assert said == [chatter(name, n) for n in range(12)]


@pytest.mark.slow
def test_runs_of_one_thread_at_once_lose_nothing(tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    say(agent, thread(), "雨：一")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: say(agent, thread(), chatter("茶", n)), range(4)))
    say(agent, thread(), "雨：二")
    said = [m.text for m in kept_of(tmp_path, agent, thread()) if m.role == "user"]
    assert sorted(said) == sorted(["雨：一", *(chatter("茶", n) for n in range(4)), "雨：二"])


@pytest.mark.slow
def test_the_model_searches_by_an_ordinary_tool(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path))
    say(agent, thread(), *(chatter("茶" if n < 8 else "雨", n) for n in range(24)))
    assert "activate_topic" in model.offered[-1]
    assert "activate_topic" not in model.offered[0]
    model.script = [call("activate_topic", query="茶", when=None), "第0次。"]
    messages = say(agent, thread(), "那个呢？")
    assert [m.type for m in messages[-4:]] == ["human", "ai", "tool", "ai"]
    assert messages[-2].content.startswith("已查找")
    receipt = kept(tmp_path, s := get_session(agent, thread())).receipts(s, 1)[0]
    assert [search.query for search in receipt.searches] == ["茶"]
    assert chatter("茶", 0) in model.prompt
    assert len(kept_of(tmp_path, agent, thread())) == len(messages)
    spent = sum(c.input_tokens for c in receipt.calls)
    assert messages[-1].response_metadata["turn_usage"]["input_tokens"] == spent > 0


def test_tool_calls_and_reasoning_come_back_as_they_were(tmp_path: Path) -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return f"{city}，晴。"

    thought = {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "s1"}}
    asked = call("weather", city="Rome").model_copy(update={"content": [thought]})
    model = ScriptedModel(script=[asked, "晴。"])
    agent = open_agent(model, remember(tmp_path), tools=[weather])
    say(agent, thread(), "罗马天气如何？", "谢谢。")
    system, *sent = model.prompts[-1]
    assert system.type == "system"
    assert [m.type for m in sent] == ["human", "ai", "tool", "ai", "human"]
    assert isinstance(sent[1], AIMessage)
    assert (sent[1].content, sent[1].tool_calls) == ([thought], asked.tool_calls)
    assert isinstance(sent[2], ToolMessage)
    assert sent[2].tool_call_id == asked.tool_calls[0]["id"]


@pytest.mark.slow
def test_going_back_to_a_checkpoint_begins_a_branch(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path))
    say(agent, thread(), "雨：一")
    before = agent.get_state(thread()).config
    say(agent, thread(), "雨：二", "雨：三")
    messages = say(agent, before, "茶：四")
    assert [m.content for m in messages if m.type == "human"] == ["雨：一", "茶：四"]
    say(agent, thread(), "茶：五")
    said = [m.text for m in kept_of(tmp_path, agent, thread()) if m.role == "user"]
    assert said == ["雨：一", "茶：四", "茶：五"]
    assert "雨：二" not in model.prompt


@pytest.mark.slow
def test_what_is_removed_or_edited_is_shown_no_more(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path))
    first = say(agent, thread(), *(chatter("茶", n) for n in range(20)))
    assert chatter("茶", 0) in model.prompt
    edited = HumanMessage("茶：改过了", id=first[2].id)
    agent.update_state(thread(), {"messages": [RemoveMessage(first[0].id), edited]})
    say(agent, thread(), "茶呢？")
    assert chatter("茶", 0) not in model.prompt
    session = get_session(agent, thread())
    shown = [m.text for m in kept(tmp_path, session).messages(session)]
    assert shown[1] == "茶：改过了"
    assert chatter("茶", 0) not in shown


def test_what_is_forgotten_of_an_agent_stands_in_no_prompt(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path))
    say(agent, thread(), "茶：密码 4711", "山：二")
    (left,) = Memory.of(agent, thread()).forget("m1").left
    assert "the checkpoints" in left
    say(agent, thread(), "海：三")
    assert "4711" not in model.prompt


@pytest.mark.slow
def test_after_a_removal_nothing_is_doubled(tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    first = say(agent, thread(), *(f"茶：第{n}句" for n in range(12)))
    removed: list[Any] = [RemoveMessage(m.id) for m in first[4:8]]
    agent.update_state(thread(), {"messages": removed})
    for text in ("雨：一", "雨：二", "雨：三"):
        said = [m.content for m in say(agent, thread(), text)]
        session = get_session(agent, thread())
        assert [m.text for m in kept(tmp_path, session).messages(session)] == said


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_however_checkpoints_are_written(tmp_path: Path, durability: Any) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    agent.invoke({"messages": [("user", "雨：一")]}, thread(), durability=durability)
    await agent.ainvoke({"messages": [("user", "雨：二")]}, thread(), durability=durability)
    assert len(kept_of(tmp_path, agent, thread())) == 4


def test_after_an_error_of_the_model_nothing_is_lost(tmp_path: Path) -> None:
    model = ScriptedModel(script=["嗯。", RuntimeError("overloaded")])
    agent = open_agent(model, remember(tmp_path))
    say(agent, thread(), "雨：一")
    with pytest.raises(RuntimeError, match="overloaded"):
        say(agent, thread(), "雨：二")
    agent.invoke(None, thread())
    say(agent, thread(), "雨：三")
    texts = ["雨：一", "嗯。", "雨：二", "All right, noted.", "雨：三", "All right, noted."]
    assert [m.text for m in kept_of(tmp_path, agent, thread())] == texts


@pytest.mark.slow
def test_after_an_error_a_long_conversation_stays_whole_and_can_be_edited(tmp_path: Path) -> None:
    agent = open_agent(model := ScriptedModel(), remember(tmp_path))
    first = say(agent, thread(), *(f"茶：第{n}句" for n in range(14)))
    model.script.append(RuntimeError("overloaded"))
    with pytest.raises(RuntimeError, match="overloaded"):
        say(agent, thread(), "雨：一")
    said = [m.content for m in say(agent, thread(), "雨：二")]
    assert said == [m.content for m in first] + ["雨：一", "雨：二", "All right, noted."]
    agent.update_state(thread(), {"messages": [RemoveMessage(m.id) for m in first[:2]]})
    assert [m.content for m in say(agent, thread(), "雨：三")][:29] == said[2:]
    assert "茶：第0句" not in model.prompt


@pytest.mark.slow
def test_it_does_not_sit_beside_a_summary(tmp_path: Path) -> None:
    summarize = SummarizationMiddleware(
        ScriptedModel(otherwise="A summary."), trigger=("messages", 4), keep=("messages", 2)
    )
    agent = open_agent(model := ScriptedModel(), remember(tmp_path), summarize)
    say(agent, thread(), "雨：一")
    with pytest.raises(ConfigurationError, match="SummarizationMiddleware"):
        say(agent, thread(), "雨：二", "雨：三")
    checkpointer = agent.checkpointer
    mended = open_agent(model, remember(tmp_path), checkpointer=checkpointer)
    say(mended, thread(), "雨：四")
    said = [m.text for m in kept_of(tmp_path, mended, thread()) if m.role == "user"]
    assert said == ["雨：一", "雨：二", "雨：三", "雨：四"]
    assert "A summary." not in model.prompt
    assert "雨：一" in model.prompt


@pytest.mark.slow
def test_a_thread_that_is_older_than_its_memory_is_taken_over(tmp_path: Path) -> None:
    plain = open_agent(ScriptedModel())
    say(plain, thread(), *(chatter("茶", n) for n in range(20)))
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path), checkpointer=plain.checkpointer)
    messages = say(agent, thread(), "茶呢？")
    assert len(messages) == 42
    assert len(kept_of(tmp_path, agent, thread())) == 42
    assert isinstance(messages[-1], AIMessage)
    assert len(model.prompts[-1]) < 20


@pytest.mark.slow
def test_an_agent_goes_on_from_what_a_person_changed(tmp_path: Path) -> None:
    model = ScriptedModel()
    agent = open_agent(model, remember(tmp_path))
    say(agent, thread(), *[chatter("茶" if n % 2 else "雨", n) for n in range(24)])
    memory = Memory(FileStorage(tmp_path, fsync=False), "s", author="ann")
    first = memory.topics()[0]
    memory.rename(first.id, "Tea house")
    said = kept_of(tmp_path, agent, thread())
    say(agent, thread(), *[chatter("茶", n) for n in range(24, 40)])
    assert memory.topic(first.id).name == "Tea house"
    assert kept_of(tmp_path, agent, thread())[: len(said)] == said
    assert memory.history(limit=2)[0].text == chatter("茶", 39)


@pytest.mark.slow
async def test_its_memory_is_looked_at_changed_and_deleted_by_the_agent(tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    say(agent, thread(), *(chatter("茶" if n % 2 else "雨", n) for n in range(20)))
    memory = Memory.of(agent, thread())
    first, *_ = await memory.atopics()
    assert [m.text for m in memory.history(limit=2)][1] == "All right, noted."
    memory.rename(first.id, "Tea")
    say(agent, thread(), "雨：又一")
    assert memory.topic(first.id).name == "Tea"
    with pytest.raises(InputError, match="as it is now"):
        Memory.of(agent, thread() | {"configurable": {"thread_id": "s", "checkpoint_id": "1"}})
    delete_session(agent, "s")
    assert not FileStorage(tmp_path).sessions()
    assert agent.get_state(thread()).values == {}
    plain = open_agent(ScriptedModel())
    with pytest.raises(InputError, match="TopicMiddleware"):
        delete_session(plain, "s")


@pytest.mark.slow
async def test_its_topics_are_reviewed_and_archived_ones_handed_over(tmp_path: Path) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    say(agent, thread(), *(chatter("茶" if n < 12 else "雨", n) for n in range(24)))
    memory, index = Memory.of(agent, thread()), InMemoryVectorStore(_ENCODER)
    tea, rain = memory.topics()
    memory.archive(tea.id)
    assert review_session(agent, thread(), dry_run=True).told
    assert not memory.topic(rain.id).summary
    report = await areview_session(agent, thread(), archive_index=index)
    assert report.changed == (rain.id,)
    assert {found["metadata"]["topic"] for found in index.store.values()} == {tea.id}
    say(agent, thread(), chatter("雨", 24))
    assert memory.topic(rain.id).summary
    assert not review_session(agent, thread(), archive_index=index).refused
