"""Topics on trial: known ones arrive as they are told, whatever briefs call them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, assert_one_line
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from topicloom import (
    RESPONDER,
    SPLITTER,
    FileStorage,
    SessionStore,
    Settings,
    build_session_graph,
    default_embedder,
    embedded_roles,
    get_session,
)
from topicloom.testing import ScriptedResponder
from topicloom_app import Conversation, RecordedMessage, RecordedResponder, cut_rounds, feed_round
from topicloom_app.recordings.conversations import Question
from topicloom_lab.known_topics import KnownSplitter
from topicloom_lab.memory import MemoryEvaluation, MemoryRow
from topicloom_lab.talk import said
from topicloom_lab.threads import ThreadedConversation, evaluate_threads

THREADS = ("garden", "chain", None, "garden", "tea", None, "chain", "tea") * 3


def threaded() -> ThreadedConversation:
    """Rounds of two messages about three matters that come and go, and of small talk."""
    messages: list[dict[str, Any]] = []
    for number, thread in enumerate(THREADS):
        # What is said does not tell the topics apart: only labels do.
        told = {"thread": thread, "time": None}
        messages += [
            {"id": f"a{2 * number}", "speaker": "user", "text": said(number, 1_200), **told},
            {"id": f"a{2 * number + 1}", "speaker": "assistant", "text": said(7, 800), **told},
        ]
    return ThreadedConversation.model_validate({"id": "talk", "messages": messages})


def recorded() -> Conversation:
    """The same as a recording, with a question at the end and one in its place."""
    messages = tuple(
        RecordedMessage(id=m.id, role="user" if m.speaker == "user" else "assistant", text=m.text)
        for m in threaded().messages
    )
    asked = [
        Question(id="end", question=messages[0].text[:80], evidence=("a0",)),
        Question(id="place", question=messages[0].text[:80], evidence=("a0",), asked_at="a30"),
    ]
    return Conversation(id="talk", messages=messages, questions=tuple(asked))


@pytest.mark.slow
def test_a_gold_splitter_makes_the_topics_that_it_knows() -> None:
    (row,) = evaluate_threads([threaded()], window=5_000, splitter="gold")
    assert row.moved is not None
    assert row.moved.ari == 1
    small_talk = [t for t, m in zip(row.topics, threaded().messages, strict=True) if not m.thread]
    assert len(set(small_talk)) == len(small_talk) / 2  # a round each
    (own,) = evaluate_threads([threaded()], window=5_000)
    assert own.moved is not None
    assert own.moved.ari < 1


def evaluate(folder: Path, **given: Any) -> list[MemoryRow]:
    """The rows of the recording's questions."""
    labels = {"talk": {m.id: m.thread for m in threaded().messages}}
    options: dict[str, Any] = {"budgets": (300, 600), "window": 4_000, "labels": labels}
    evaluation = MemoryEvaluation(**options | given)
    return [e for e in evaluation.run(recorded(), folder) if isinstance(e, MemoryRow)]


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
def test_topics_are_those_that_are_known_or_one(tmp_path: Path, known: bool) -> None:
    storage, recording = FileStorage(tmp_path, fsync=False), recorded()
    labels = {m.id: m.thread for m in threaded().messages}
    recorder = RecordedResponder(ScriptedResponder(otherwise="-"))
    roles = embedded_roles(default_embedder()).replace(RESPONDER, recorder)
    graph = build_session_graph(
        settings=Settings(window=4_000, topic_window=100_000),
        roles=roles.replace(SPLITTER, KnownSplitter(storage, labels if known else None)),
        storage=storage,
    ).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "talk"}}
    for round_ in cut_rounds(recording):
        feed_round(graph, recorder, round_, config)
    session = get_session(graph, config)
    store = SessionStore(storage.open(session.id))
    topics = store.topic_table(session).topics.values()
    held = [
        {labels[str(m.source)] for m in store.topic_messages(session, topic)} for topic in topics
    ]
    if not known:
        assert held == [{"garden", "chain", "tea", None}]
        return
    assert all(len(threads) == 1 for threads in held)
    counts = Counter(next(iter(threads)) for threads in held)
    assert [counts[name] for name in ("garden", "chain", "tea")] == [1, 1, 1]
    assert counts[None] > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("topics", "splitter"), [("gold", "embedded"), ("none", "embedded"), ("own", "gold")]
)
def test_every_budget_is_asked_at_every_place(tmp_path: Path, topics: str, splitter: str) -> None:
    rows = evaluate(tmp_path, topics=topics, splitter=splitter)
    assert [(r.question, r.budget) for r in rows] == [
        ("place", 300),
        ("place", 600),
        ("end", 300),
        ("end", 600),
    ]
    assert all(r.recalled <= r.budget for r in rows)
    assert all(r.evidence_tokens <= r.tokens for r in rows)
    place, end = rows[1], rows[3]
    said_before = {f"a{n}" for n in range(30)}
    assert set(place.message_ids) <= said_before
    # A session has its newest rounds in view; at the end all is in topics.
    assert {"a28", "a29"} <= set(place.message_ids)
    assert place.tokens > place.recalled
    assert end.tokens == end.recalled


def test_what_does_not_go_together_is_named(run: Run, recording: Path, tmp_path: Path) -> None:
    threads = tmp_path / "threads.jsonl"
    lines = [json.dumps(threaded().model_dump())]
    threads.write_text("\n".join(lines), "utf-8")
    memory = ("eval", "memory", str(recording))
    given = ("--threads", str(threads))
    assert_one_line(run(*memory, "--topics", "gold"), "--threads FILE")
    assert_one_line(run(*memory, "--splitter", "gold"), "--threads FILE")
    clash = run(*memory, "--topics", "none", "--splitter", "gold", *given)
    assert_one_line(clash, "--topics none needs no splitter", "leave")
    other = json.dumps({"id": "other", "messages": [{"id": "a0", "text": "Hi", "thread": None}]})
    threads.write_text(other, "utf-8")
    assert_one_line(run(*memory, "--topics", "gold", *given), "no conversation 'talk'", "--threads")
    threads.write_text(other.replace("other", "talk"), "utf-8")
    assert_one_line(run(*memory, "--topics", "gold", *given), "no message 'a1' of 'talk'")
