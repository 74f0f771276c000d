"""Archived topics: nothing but a request of the user finds and revives them."""

from __future__ import annotations

from pathlib import Path

from sessions import check_kept, kept, last_receipt, open_graph, past, record, tell, thread

from topicloom.graph.stored import Graph, get_session
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


def prepared(folder: Path) -> tuple[Graph, ScriptedResponder, NameRouter]:
    responder, router = ScriptedResponder(), NameRouter({"茶": 0.9})
    graph = open_graph(folder, fake_roles(responder, router=router))
    record(graph, CONFIG, *past("茶", "雨", rounds=2))
    tell(graph, CONFIG, "Hello", keep=0)
    archive(folder, graph, "茶")
    return graph, responder, router


def test_neither_words_nor_a_complaint_wake_it(tmp_path: Path) -> None:
    graph, responder, router = prepared(tmp_path)
    tell(graph, CONFIG, "茶：第1次说到茶的事情。你忘了吗？")
    responder.script = [make_topic_search("茶"), "Yes."]
    tell(graph, CONFIG, "Where is it?")
    assert all(t.name != "茶" for request in router.requests for t in request.topics)
    session = get_session(graph, CONFIG)
    store = kept(tmp_path, session)
    assert store.topic_table(session)["t1"].status == "archived"
    assert "t1" not in session.active


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
