"""Archived topics: what the user asks for, or misses, finds and revives them, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from sessions import (
    check_kept,
    kept,
    last_receipt,
    open_after,
    past,
    tell,
    thread,
)

from topicloom import Settings, build_session_graph, get_session
from topicloom.hosting import Graph
from topicloom.state.lifecycle import mark_archived
from topicloom.testing import NameRouter, ScriptedResponder, fake_roles, make_topic_search

CONFIG = thread()


def archive(folder: Path, graph: Graph, name: str) -> None:
    """Put a topic of the session away, as a review does."""
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    topic = next(t for t in store.topic_table(session) if t.name == name)
    session = session.model_copy(
        update={"active": {i: s for i, s in session.active.items() if i != topic.id}}
    )
    session = store.save_topics(session, [mark_archived(topic, session.active, "2026-03")])
    state = {"session": session.model_dump(mode="json", exclude_defaults=True)}
    graph.update_state(CONFIG, state, as_node="finalize")


def prepared(
    folder: Path, relevance: Mapping[str, float] = {"茶": 0.9}
) -> tuple[Graph, ScriptedResponder, NameRouter]:
    responder, router = ScriptedResponder(), NameRouter(relevance)
    graph = open_after(past("茶", "雨", rounds=2), folder, fake_roles(responder, router=router))
    tell(graph, CONFIG, "Hello", keep=0)
    archive(folder, graph, "茶")
    return graph, responder, router


@pytest.mark.slow
def test_neither_words_nor_a_search_wake_it(tmp_path: Path) -> None:
    graph, responder, router = prepared(tmp_path)
    tell(graph, CONFIG, "茶：第1次说到茶的事情。")
    responder.script = [make_topic_search("茶"), "Yes."]
    tell(graph, CONFIG, "Where is it?")
    assert all(t.name != "茶" for request in router.requests for t in request.topics)
    session = get_session(graph, CONFIG)
    store = kept(tmp_path, session)
    assert store.topic_table(session)["t1"].status == "archived"
    assert "t1" not in session.active


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["Did you forget about 茶?", "I told you 茶!", "Don't you remember 茶?", "你忘了茶的事吗？"],
)
def test_who_misses_it_gets_it_back(tmp_path: Path, text: str) -> None:
    graph, _, router = prepared(tmp_path)
    tell(graph, CONFIG, text)
    (search,) = last_receipt(tmp_path, graph, CONFIG).searches
    assert (search.archived, search.found, search.scope.unsearched) == (True, ("t1",), 0)
    assert search.scope.briefs == sum(len(request.topics) for request in router.requests)
    session = get_session(graph, CONFIG)
    assert kept(tmp_path, session).topic_table(session)["t1"].status == "open"


@pytest.mark.slow
def test_the_archive_stays_shut_where_another_topic_is_meant_for_sure(tmp_path: Path) -> None:
    graph, _, router = prepared(tmp_path, {"茶": 0.9, "雨": 0.9})
    tell(graph, CONFIG, "Did you forget about 雨?")
    (search,) = last_receipt(tmp_path, graph, CONFIG).searches
    assert (search.archived, search.found, search.scope.unsearched) == (False, ("t2",), 1)
    assert [t.name for request in router.requests for t in request.topics] == ["雨"]


@pytest.mark.slow
def test_without_a_model_it_is_found_too(tmp_path: Path) -> None:
    """Of open topics the best always seems sure to the index, whatever is asked for."""
    settings = Settings(folder=tmp_path, window=1_800, fsync=False)
    graph = build_session_graph(settings=settings).compile(checkpointer=InMemorySaver())
    boiler = [
        f"The boiler loses pressure, {n} bar. The plumber looks at the valve." for n in (1, 2, 3)
    ]
    novel = [
        f"Chapter {n} of my novel: the storm takes the pier. " + "The sea. " * 60 for n in range(9)
    ]
    for text in (*boiler, *novel):
        tell(graph, CONFIG, text)
    session, store = get_session(graph, CONFIG), kept(tmp_path, get_session(graph, CONFIG))
    topics = store.topic_table(session)
    said = {t.name: store.topic_messages(session, t) for t in topics}
    name = next(n for n, messages in said.items() if any("boiler" in m.text for m in messages))
    archive(tmp_path, graph, name)
    tell(graph, CONFIG, "Did you forget about the boiler?")
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert receipt.searches[0].archived
    quoted = [i for note in receipt.quoted for i in note.quotes]
    assert "m1" in quoted


def test_a_search_of_the_model_goes_there_if_it_says_that_it_was_forgotten(tmp_path: Path) -> None:
    graph, responder, _ = prepared(tmp_path)
    responder.script = [make_topic_search("茶", forgotten=True), "Yes."]
    tell(graph, CONFIG, "Where is it?")
    assert last_receipt(tmp_path, graph, CONFIG).searches[0].found == ("t1",)


def test_a_request_revives_it(tmp_path: Path) -> None:
    graph, responder, _ = prepared(tmp_path)
    responder.script = [make_topic_search("茶", include_archived=True), "Yes."]
    tell(graph, CONFIG, "Look in what was put away.")
    session = get_session(graph, CONFIG)
    store = kept(tmp_path, session)
    check_kept(store, session)
    topic = store.topic_table(session)["t1"]
    assert (topic.status, topic.archived) == ("open", "2026-03")
    assert "t1" in session.active
    assert last_receipt(tmp_path, graph, CONFIG).searches[0].found == ("t1",)
