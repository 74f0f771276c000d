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
    windows_of,
)

from topicloom import READER, Reader, embedded_roles, get_session
from topicloom.hosting import Graph
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
    graph, responder = asked(tmp_path, reader, tags, question, recall=1_800)
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert len(receipt.active) == 1
    assert list(receipt.scores) == list(receipt.active)
    assert {t.name for t in receipt.quoted} == set(tags)
    prompt = prompt_of(responder.requests[-1])
    assert all(f"{tag}：第1次" in prompt for tag in tags)


@pytest.mark.slow
def test_it_goes_on_sleeping(tmp_path: Path) -> None:
    graph, _ = asked(tmp_path, embedded_roles(HashingEmbedder(256))[READER])
    tell(graph, CONFIG, "谢谢")
    receipt = last_receipt(tmp_path, graph, CONFIG)
    assert len([c for c in receipt.calls if c.role == "reader"]) == 1


@pytest.mark.slow
def test_a_reader_that_fails_takes_nothing_away(tmp_path: Path) -> None:
    graph, _ = asked(tmp_path, FailingRole())
    assert {t.name for t in last_receipt(tmp_path, graph, CONFIG).quoted} == set(TAGS)


@pytest.mark.slow
def test_a_model_also_reads_what_is_found_in_topics_that_are_not_read_whole(
    tmp_path: Path,
) -> None:
    reader = SteadyReader(quotes=1, summary="Long ago.")
    graph, _ = asked(tmp_path, reader)
    session, receipt = get_session(graph, CONFIG), last_receipt(tmp_path, graph, CONFIG)
    whole = {w.topic.id for w in windows_of(reader) if w.whole}
    (elsewhere,) = (r for r in reader.requests if not r.windows[0].whole)
    store = kept(tmp_path, session)
    table = store.topic_table(session)
    homes = {m.id: t.id for t in table for m in store.topic_messages(session, t)}
    for window in elsewhere.windows:
        shown = [m.seq for m in window.messages]
        assert shown == sorted(set(shown))
        assert {homes[m.id] for m in window.messages} == {window.topic.id}
    found = {w.topic.id for w in elsewhere.windows}
    assert found.isdisjoint(whole)
    assert found | whole == set(homes.values()) == receipt.scores.keys()
    assert elsewhere.tail[-1].text == QUESTION
    first = elsewhere.windows[0]
    named = next(m.id for m in first.messages if m.role == "user")
    (note,) = (t for t in receipt.quoted if named in t.quotes)
    assert (note.topic, note.score) == (first.topic.id, 0.5)


@pytest.mark.slow
def test_what_the_index_suggests_is_read_whole_however_many_topics_are_active(
    tmp_path: Path,
) -> None:
    reader = SteadyReader(quotes=0, otherwise=0.05)
    graph, _ = asked(tmp_path, reader, question="谢谢")
    for tag in TAGS:
        reader.requests.clear()
        tell(graph, CONFIG, f"{tag}：第1次?", keep=0)
        assert [w.topic.name for w in windows_of(reader) if w.whole] == [tag]


@pytest.mark.slow
def test_a_dormant_topic_is_woken_by_its_reader_and_by_nothing_else(tmp_path: Path) -> None:
    room = FEW | {"usual": 3, "ceiling": 3}
    for otherwise, woken in ((0.05, False), (0.9, True)):
        folder = tmp_path / str(woken)
        reader = SteadyReader({"planting": 0.05}, otherwise=otherwise, quotes=0)
        graph = open_after(
            past(*TAGS), folder, fake_roles(reader=reader), window=6_000, activation=room
        )
        tell(graph, CONFIG, QUESTION, keep=0)
        tell(graph, CONFIG, QUESTION)
        receipt = last_receipt(folder, graph, CONFIG)
        assert bool(receipt.activated) == woken


@pytest.mark.slow
def test_it_is_not_called_where_there_is_nothing_to_read(tmp_path: Path) -> None:
    reader = SteadyReader()
    graph = open_after(past("planting", "repairs"), tmp_path, fake_roles().replace(READER, reader))
    tell(graph, CONFIG, QUESTION, keep=0)
    assert sorted(w.topic.name for w in windows_of(reader)) == ["planting", "repairs"]


@pytest.mark.slow
def test_what_it_reads_fits_what_a_turn_may_quote(tmp_path: Path) -> None:
    read = []
    for recall in (900, 100):
        reader = SteadyReader()
        asked(tmp_path / str(recall), reader, recall=recall)
        read.append(sum(len(w.messages) for w in windows_of(reader) if not w.whole))
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


@pytest.mark.slow
def test_what_was_put_away_is_not_quoted(tmp_path: Path) -> None:
    graph, _ = asked(tmp_path, embedded_roles(HashingEmbedder(256))[READER])
    away = put_away(tmp_path, graph)
    quoted = quoted_for(tmp_path, graph, QUESTION)
    assert quoted
    assert away not in quoted


@pytest.mark.slow
def test_but_it_is_for_those_who_ask_what_was_said_before(tmp_path: Path) -> None:
    """Even if there is no room to wake it beside all that was said that day."""
    graph, _ = asked(tmp_path, embedded_roles(HashingEmbedder(256))[READER], recall=1_500)
    away = put_away(tmp_path, graph)
    quoted = quoted_for(tmp_path, graph, f"我们之前聊过什么？{QUESTION}")
    assert away in quoted
    assert len(quoted) >= len(TAGS)
