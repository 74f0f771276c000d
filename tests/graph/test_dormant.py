"""What sleeps is quoted where the local index is the only reader, and is not woken by that."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sessions import (
    kept,
    last_receipt,
    open_after,
    past,
    prompt_of,
    tell,
    thread,
)

from topicloom import READER, Reader, embedded_roles, get_session
from topicloom.hosting import OTHER_TOPICS, Graph
from topicloom.search.hashing import HashingEmbedder
from topicloom.state.lifecycle import mark_archived
from topicloom.testing import FailingRole, ScriptedResponder, SteadyReader, fake_roles

CONFIG = thread()
TAGS = ("planting", "repairs", "cooking", "fishing", "chess")
HOBBIES = ("种花", "修车", "做菜", "钓鱼", "下棋")
FEW = {"window": 1, "floor": 0, "usual": 1, "ceiling": 1}
"""Room for one active topic."""
QUESTION = "What was said of planting, repairs, cooking, fishing and chess, 第1次?"


def asked(
    folder: Path,
    reader: Reader,
    tags: Sequence[str] = TAGS,
    question: str = QUESTION,
    recall: int = 900,
) -> tuple[Graph, ScriptedResponder]:
    """A session with five topics, of which one has room to be active, and a question on all."""
    responder = ScriptedResponder()
    roles = fake_roles(responder).replace(READER, reader)
    graph = open_after(
        past(*tags), folder, roles, window=6_000, recall_tokens=recall, activation=FEW
    )
    tell(graph, CONFIG, question, keep=0)
    return graph, responder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tags", "question"),
    [
        (TAGS, QUESTION),
        (HOBBIES, "种花、修车、做菜、钓鱼、下棋，第1次都是怎么说的？"),
        (HOBBIES, "种花，修车，做菜，钓鱼和下棋，第1次都是怎么说的？"),
    ],
)
def test_an_answer_that_rests_on_many_topics_is_quoted_from_all_of_them(
    tmp_path: Path, tags: tuple[str, ...], question: str
) -> None:
    reader = embedded_roles(HashingEmbedder(256))[READER]
    graph, responder = asked(tmp_path, reader, tags, question)
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert len(receipt.active) == 1
    assert [c.topic for c in receipt.calls if c.role == "reader"] == list(receipt.active)
    assert {t.name for t in receipt.quoted} == set(tags)
    prompt = prompt_of(responder.requests[-1])
    assert all(f"{tag}：第1次" in prompt for tag in tags)


def test_it_goes_on_sleeping(tmp_path: Path) -> None:
    graph, _ = asked(tmp_path, embedded_roles(HashingEmbedder(256))[READER])
    tell(graph, CONFIG, "谢谢")
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert len([c for c in receipt.calls if c.role == "reader"]) == 1


def test_a_reader_takes_nothing_away(tmp_path: Path) -> None:
    """What the index finds competes for quotes, whatever a model reads and says."""
    readers = SteadyReader(), SteadyReader(otherwise=0.0, quotes=0), FailingRole()
    for folder, reader in zip(
        (tmp_path / "a", tmp_path / "b", tmp_path / "c"), readers, strict=True
    ):
        graph, _ = asked(folder, reader)
        receipt = last_receipt(folder, graph, CONFIG)
        assert {t.name for t in receipt.quoted} == set(TAGS)


def test_one_more_model_reads_what_is_found_in_topics_without_a_reader(tmp_path: Path) -> None:
    reader = SteadyReader(quotes=1, summary="Long ago.")
    graph, _ = asked(tmp_path, reader)
    session, receipt = get_session(graph, CONFIG), last_receipt(tmp_path, graph, CONFIG)
    own = [r for r in reader.requests if r.topic.id != OTHER_TOPICS]
    (elsewhere,) = (r for r in reader.requests if r.topic.id == OTHER_TOPICS)
    store = kept(tmp_path, session)
    table = store.topic_table(session)
    homes = {m.id: t.id for t in table for m in store.topic_messages(session, t)}
    read = {r.topic.id for r in own}
    shown = [m.seq for m in elsewhere.messages]
    assert shown == sorted(set(shown))
    assert {homes[m.id] for m in elsewhere.messages}.isdisjoint(read)
    assert {homes[m.id] for m in elsewhere.messages} | read == set(homes.values())
    assert elsewhere.tail[-1].text == QUESTION
    assert receipt.scores.keys() == read
    assert [c.topic for c in receipt.calls if c.role == "reader"].count(None) == 1
    named = next(m.id for m in elsewhere.messages if m.role == "user")
    (note,) = (t for t in receipt.quoted if named in t.quotes)
    assert (note.topic, note.summary, note.score) == (homes[named], "", 0.5)


def test_it_is_not_called_where_there_is_nothing_to_read(tmp_path: Path) -> None:
    reader = SteadyReader()
    graph = open_after(past("planting", "repairs"), tmp_path, fake_roles().replace(READER, reader))
    tell(graph, CONFIG, QUESTION, keep=0)
    assert sorted(r.topic.name for r in reader.requests) == ["planting", "repairs"]


def test_what_it_reads_fits_what_a_turn_may_quote(tmp_path: Path) -> None:
    read = []
    for recall in (900, 100):
        reader = SteadyReader()
        asked(tmp_path / str(recall), reader, recall=recall)
        (elsewhere,) = (r for r in reader.requests if r.topic.id == OTHER_TOPICS)
        read.append(len(elsewhere.messages))
    assert 0 < read[1] < read[0]


def put_away(folder: Path, graph: Graph) -> str:
    """Archive a topic that sleeps; returns its id."""
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    away = next(t for t in store.topic_table(session) if t.id not in session.active)
    session = store.save_topics(session, [mark_archived(away, session.active, "2026-03")])
    state = {"session": session.model_dump(mode="json", exclude_defaults=True)}
    graph.update_state(CONFIG, state, as_node="finalize")
    return away.id


def quoted_for(folder: Path, graph: Graph, question: str) -> set[str]:
    tell(graph, CONFIG, question, keep=0)
    return {t.topic for t in last_receipt(folder, graph, CONFIG).quoted}


def test_what_was_put_away_is_not_quoted(tmp_path: Path) -> None:
    graph, _ = asked(tmp_path, embedded_roles(HashingEmbedder(256))[READER])
    away = put_away(tmp_path, graph)
    quoted = quoted_for(tmp_path, graph, QUESTION)
    assert quoted
    assert away not in quoted


def test_but_it_is_for_those_who_ask_what_was_said_before(tmp_path: Path) -> None:
    """Even if there is no room to wake it beside all that was said that day."""
    graph, _ = asked(tmp_path, embedded_roles(HashingEmbedder(256))[READER])
    away = put_away(tmp_path, graph)
    quoted = quoted_for(tmp_path, graph, f"我们之前聊过什么？{QUESTION}")
    assert away in quoted
    assert len(quoted) >= len(TAGS)
