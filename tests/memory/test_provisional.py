"""Topics from the first minutes: those that the unsplit messages would make now."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import thread

from topicloom import Memory, Settings, TurnOptions, build_session_graph

BOAT = "Day {} at the lake house: the boat wanted {} buckets bailed. "
RUN = "Marathon training, week {}: I ran {} kilometres, the knee holds. "
BOAT_ZH, RUN_ZH = (
    "湖边小屋第{}天：从船里舀出了{}桶水。",
    "马拉松训练第{}周：跑了{}公里，膝盖没有不舒服。",
)


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second"), [(BOAT, RUN), (BOAT_ZH, RUN_ZH)])
def test_two_subjects_are_two_provisional_topics(tmp_path: Path, first: str, second: str) -> None:
    settings = Settings(folder=tmp_path, fsync=False)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    said = [text.format(n, n + 3) * 10 for text in (first, second) for n in range(1, 9)]
    messages = [HumanMessage(text) for text in said]
    graph.invoke({"messages": messages}, thread(), context=TurnOptions(answer=False))
    memory = Memory.of(graph, thread())
    assert memory.topics() == []
    found = {name: [m.text for m in held] for name, held in memory.provisional().items()}
    assert list(found.values()) == [said[:8], said[8:]]
    assert "" not in found


@pytest.mark.slow
def test_what_is_in_a_topic_is_not_provisional(tmp_path: Path) -> None:
    settings = Settings(folder=tmp_path, fsync=False, window=1_000)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    for n in range(1, 9):
        graph.invoke({"messages": [HumanMessage(BOAT.format(n, n + 3) * 10)]}, thread())
    memory = Memory.of(graph, thread())
    assert memory.topics()
    held = [m.seq for messages in memory.provisional().values() for m in messages]
    session = memory.session()
    assert sorted(held) == list(range(session.tail, session.count + 1))
