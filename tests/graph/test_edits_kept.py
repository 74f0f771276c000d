"""What becomes of an edit: two writers, crashes, purges, facts, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from sessions import chatter, check_kept, kept, last_receipt, open_graph, thread

from topicloom import (
    Fact,
    FactChanges,
    Memory,
    ReflectionStore,
    SessionStore,
    Settings,
    TurnOptions,
    build_session_graph,
    get_session,
)
from topicloom.storage.repair import find_faults, mend_session
from topicloom.testing import ScriptedResponder, fake_roles

SECRET = "XSECRETX"
GONE = RemoveMessage(id="u1")


def say(graph: Any, *messages: BaseMessage, keep: int | None = None) -> Any:
    context = TurnOptions(keep_messages=keep)
    return graph.invoke({"messages": list(messages)}, thread(), context=context)["messages"]


def begin(graph: Any, *, keep: int | None = None) -> None:
    say(graph, HumanMessage(f"{chatter('茶', 1)} {SECRET}", id="u1"), keep=keep)
    say(graph, HumanMessage(chatter("山", 2), id="u2"), keep=keep)


def texts(folder: Path, graph: Any) -> list[str]:
    session = get_session(graph, thread())
    check_kept(kept(folder, session), session)
    return [m.text for m in kept(folder, session).messages(session)]


def stored(folder: Path) -> str:
    return "".join(p.read_text("utf-8", "replace") for p in folder.rglob("*") if p.is_file())


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 2])
@pytest.mark.parametrize("first", ["edit", "talk"])
def test_of_two_writers(tmp_path: Path, first: str, keep: int | None) -> None:
    """Two processes go on from one checkpoint: one edits, the other one talks."""
    one, two = InMemorySaver(), InMemorySaver()
    graph = open_graph(tmp_path, checkpointer=one)
    begin(graph, keep=keep)
    other = open_graph(tmp_path, checkpointer=two)
    config: Any = {"configurable": {"thread_id": "s", "checkpoint_ns": ""}}
    begun = one.get_tuple(config)
    assert begun is not None
    two.put(config, begun.checkpoint, begun.metadata, begun.checkpoint["channel_versions"])
    anew = HumanMessage(chatter("山", 22), id="u2")
    turns = [lambda: say(graph, GONE, anew), lambda: say(other, HumanMessage(chatter("茶", 3)))]
    for turn in turns if first == "edit" else reversed(turns):
        turn()
    last = other if first == "edit" else graph
    said = texts(tmp_path, last)
    assert SECRET not in repr(said)
    assert said.count(anew.text) == said.count(chatter("茶", 3)) == 1
    say(last, HumanMessage("好"))
    assert SECRET not in repr(texts(tmp_path, last))


@pytest.mark.slow
@pytest.mark.parametrize("edit", [[GONE], [RemoveMessage(id=REMOVE_ALL_MESSAGES)]])
def test_killed_and_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edit: list[BaseMessage]
) -> None:
    graph = open_graph(tmp_path)
    begin(graph, keep=1)
    for kills in range(4):
        with monkeypatch.context() as patched:
            left, append = kills, SessionStore._append

            def stop(store: Any, *args: Any, append: Any = append) -> Any:
                nonlocal left
                if left == 0:
                    raise KeyboardInterrupt
                left -= 1
                return append(store, *args)

            patched.setattr(SessionStore, "_append", stop)
            given: Any = {"messages": [*edit, HumanMessage("还有呢？", id="new")]}
            with pytest.raises(KeyboardInterrupt):
                graph.invoke(None if kills else given, thread())
    graph.invoke(None, thread())
    said = texts(tmp_path, graph)
    assert SECRET not in repr(said)
    assert said[-2:] == ["还有呢？", "All right, noted."]
    assert len(said) == (2 if len(edit[0].id or "") > 2 else 5)
    session = get_session(graph, thread())
    assert len(kept(tmp_path, session).edits(session)) == 1


def test_a_reply_that_failed_is_no_edit(tmp_path: Path) -> None:
    responder = ScriptedResponder(RuntimeError("down"), RuntimeError("down"))
    graph = open_graph(tmp_path, fake_roles(responder))
    with pytest.raises(Exception, match="down"):
        say(graph, HumanMessage(f"茶：{SECRET}", id="u"))
    say(graph, HumanMessage("茶：不说了", id="u"))
    assert texts(tmp_path, graph) == ["茶：不说了", "All right, noted."]
    assert SECRET not in repr(responder.requests[-1])


@pytest.mark.slow
@pytest.mark.parametrize("keep", [None, 2])
@pytest.mark.parametrize("again", [False, True])
def test_a_purge_follows(tmp_path: Path, again: bool, keep: int | None) -> None:
    """What a message superseded goes with it, and so does what it was changed to."""
    graph = open_graph(tmp_path)
    begin(graph, keep=keep)
    changed = HumanMessage(f"{chatter('茶', 9)} {SECRET} changed", id="u1")
    say(graph, *([] if again else [HumanMessage("好")]), changed, keep=keep)
    session = get_session(graph, thread())
    store = kept(tmp_path, session)
    number = store.messages(session)[-2 if again else 0].seq
    assert SECRET in store.message(session, number).text
    Memory.of(graph, thread()).forget(f"m{number}")
    assert SECRET not in stored(tmp_path)
    say(graph, HumanMessage("还有呢？"))
    assert "（" not in texts(tmp_path, graph)[0]


@pytest.mark.slow
def test_a_topic_is_purged_with_what_left_it(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    begin(graph, keep=0)
    say(graph, HumanMessage(chatter("茶", 3), id="u3"), keep=0)
    say(graph, HumanMessage(chatter("山", 4)), keep=0)
    say(graph, RemoveMessage(id="u3"), HumanMessage("好"))
    session = get_session(graph, thread())
    store = kept(tmp_path, session)
    topic = store.topic_table(session)["t1"]
    assert store.plan_purge(session, topic).messages == ("m1", "m2", "m5", "m6")


def test_facts_that_rest_on_it_are_not_shown(tmp_path: Path) -> None:
    facts, responder = InMemoryStore(), ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder), store=facts)
    begin(graph)
    kept_facts = tuple(Fact(f"fact on m{n}", (f"m{n}",), "2026-03-02") for n in (1, 3))
    ReflectionStore(facts).change_facts("s", FactChanges(kept_facts))
    say(graph, HumanMessage("好"), keep=2)
    assert "fact on m1" in repr(responder.requests[-1].messages)
    graph.update_state(thread(), {"messages": [RemoveMessage(id="u2")]})
    say(graph, HumanMessage("好"))
    assert "fact on m3" not in repr(responder.requests[-1].messages)
    assert "fact on m1" in repr(responder.requests[-1].messages)
    assert Memory.of(graph, thread()).prompt() == responder.requests[-1].messages


def test_damaged_edits_are_told_and_mended(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    begin(graph, keep=2)
    say(graph, GONE, HumanMessage("好"))
    (path,) = tmp_path.rglob("superseded.jsonl")
    path.write_text("")
    session = get_session(graph, thread())
    store = kept(tmp_path, session)
    faults = find_faults(session, store)
    assert [fault.place for fault in faults] == ["superseded"]
    mended = mend_session(session, store, faults)
    check_kept(store, mended)
    assert SECRET in store.messages(mended)[0].text


def test_without_any_prompt_to_remove_from(tmp_path: Path) -> None:
    """An edit of a turn that brings nothing else needs no answer, and is told in a receipt."""
    graph = open_graph(tmp_path)
    begin(graph)
    before = len(texts(tmp_path, graph))
    say(graph, GONE)
    assert len(texts(tmp_path, graph)) == before - 1
    assert last_receipt(tmp_path, graph, thread()).events


def test_edits_while_a_turn_waits(tmp_path: Path) -> None:
    """A moderator takes something out, or changes it, before the model is asked."""
    responder = ScriptedResponder()
    saver = InMemorySaver()
    begin(open_graph(tmp_path, fake_roles(responder), checkpointer=saver))
    settings = Settings(folder=tmp_path, window=2_000, fsync=False)
    graph = build_session_graph(settings=settings, roles=fake_roles(responder)).compile(
        checkpointer=saver, interrupt_before=["main_generate"]
    )
    say(graph, HumanMessage(f"茶：{SECRET}", id="u3"))
    changed = HumanMessage("茶：不说了", id="u3")
    graph.update_state(thread(), {"messages": [GONE, changed]}, as_node="estimate")
    graph.invoke(None, thread())
    if graph.get_state(thread()).next:
        graph.invoke(None, thread())
    assert SECRET not in repr(responder.requests[-1].messages)
    assert texts(tmp_path, graph)[-2:] == ["茶：不说了", "All right, noted."]
    assert SECRET not in repr(texts(tmp_path, graph))
