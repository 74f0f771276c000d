"""A search finds what fits, and no more; where nothing does, it says so of what is closest."""

from __future__ import annotations

from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from sessions import thread

from topicloom import Memory, Settings, TurnOptions, build_session_graph

SAID = [
    "Soldiers, light grey grout, six boxes of tiles for the bathroom wall.",
    "我妈有痛风，海鲜和啤酒都不能碰。",
    "The boiler loses pressure; the plumber comes on Tuesday.",
    "I ran nine kilometres along the coast road before breakfast.",
    "We watched a film about whales with the children.",
    "The tax form is due in May, and two receipts are missing.",
    "Part KX-9920 is what the heating engineer ordered.",
    "Who is the plumber for the boiler?",
]


def remembered(folder: Path) -> Memory:
    settings = Settings(folder=folder, fsync=False)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    config = thread()
    said = [HumanMessage(text) for text in SAID]
    graph.invoke({"messages": said}, config, context=TurnOptions(answer=False))
    return Memory.of(graph, config)


@pytest.mark.slow
def test_a_word_that_nobody_said_is_matched_by_meaning_and_marked(tmp_path: Path) -> None:
    memory = remembered(tmp_path)
    for word in ("gout", "xyzzy"):
        found = memory.search(word)
        assert 0 < len(found) <= 3
        assert not any(hit.fits for hit in found), "grout is another word"
    for text, place in (("痛风", 1), ("grout", 0), ("boiler", 2), ("tax deadline", 5)):
        hits = memory.search(text)
        assert hits[0].message.text == SAID[place], text
        assert len(hits) <= 3, text
        assert all(hit.fits for hit in hits), text


def test_what_stands_there_word_for_word_is_always_found(tmp_path: Path) -> None:
    memory = remembered(tmp_path)
    assert SAID[6] in [hit.message.text for hit in memory.search("X-99")], "a part of a code"


def test_messages_that_only_ask_come_last(tmp_path: Path) -> None:
    found = remembered(tmp_path).search("plumber and boiler")
    texts = [hit.message.text for hit in found]
    assert texts.index(SAID[2]) < texts.index(SAID[7])


def test_meaning_is_found_across_languages(tmp_path: Path) -> None:
    found = [hit.message.text for hit in remembered(tmp_path).search("What may my mother not eat?")]
    assert SAID[1] in found
