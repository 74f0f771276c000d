"""Small talk and single questions go to a topic of loose ends, and leave it once they gather."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from sessions import check_kept, kept, open_graph, record, tell, thread

from topicloom import InputError, Memory, Session, SessionStore, embedded_roles, get_session
from topicloom.hosting import Graph, TopicTable
from topicloom.search.hashing import HashingEmbedder

CONFIG = thread()
SUBJECTS = {
    "oak": "The oak fronts of the kitchen cupboards, number {n}, and the stone counter.",
    "lisbon": "Flights to Lisbon in May, offer {n}, and a hotel near the river Tejo.",
    "piano": "Piano lesson {n}: scales, the Chopin waltz, and the teacher's fingering.",
}
SINGLE = "What is the capital of Mongolia, by the way?"


def said(subject: str, numbers: range) -> list[Any]:
    """Rounds of a subject, each with a reply."""
    lines = [SUBJECTS[subject].format(n=n) for n in numbers]
    return [m for line in lines for m in (HumanMessage(line), AIMessage(f"Noted: {line}"))]


def started(folder: Path, *parts: list[Any]) -> tuple[Graph, Session, SessionStore, TopicTable]:
    """A session in which all that was said is in topics; each part was split by itself."""
    graph = open_graph(folder, embedded_roles(HashingEmbedder(256)), window=8_000)
    for part in parts:
        record(graph, CONFIG, *part)
        tell(graph, CONFIG, "…", keep=0)
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    check_kept(store, session)
    return graph, session, store, store.topic_table(session)


@pytest.mark.slow
def test_a_single_question_is_a_loose_end_that_no_reader_reads(tmp_path: Path) -> None:
    question = [HumanMessage(SINGLE), AIMessage("Ulaanbaatar.")]
    graph, session, store, table = started(
        tmp_path, [*said("oak", range(4)), *question, *said("lisbon", range(4))]
    )
    (loose,) = table.loose()
    assert SINGLE in {m.text for m in store.topic_messages(session, loose)}
    assert loose.name == "Loose ends"
    assert loose.id not in session.active
    assert loose.id not in {t.id for t in table.open()}
    assert Memory.of(graph, CONFIG).topics()[-1].loose
    receipt = store.receipts(session, 1)[0]
    assert loose.id not in {*receipt.scores, *receipt.split, *receipt.active}
    (found, *_) = Memory.of(graph, CONFIG).search("capital of Mongolia")
    assert found.message.text == SINGLE


@pytest.mark.slow
def test_loose_ends_are_no_topic_for_a_person_either(tmp_path: Path) -> None:
    question = [HumanMessage(SINGLE), AIMessage("Ulaanbaatar.")]
    graph, _, _, table = started(
        tmp_path, [*said("oak", range(4)), *question, *said("lisbon", range(4))]
    )
    memory, (loose,) = Memory.of(graph, CONFIG), table.loose()
    oak = next(t.id for t in table.open())
    with pytest.raises(InputError, match="holds loose ends"):
        memory.pin(loose.id)
    with pytest.raises(InputError, match="holds loose ends"):
        memory.merge(oak, into=loose.id)
    named = memory.rename(loose.id, "Geography")
    assert (named.loose, named.by_hand) == (False, ("named",))
    assert memory.pin(loose.id).state == "active"
    memory.undo()
    memory.undo()
    assert (memory.topic(loose.id).name, memory.topic(loose.id).loose) == ("Loose ends", True)


@pytest.mark.slow
def test_loose_ends_that_were_emptied_leave_their_name(tmp_path: Path) -> None:
    """What they are called is not taken by what has been merged."""
    question = [HumanMessage(SINGLE), AIMessage("Ulaanbaatar.")]
    graph, _, _, table = started(
        tmp_path, [*said("oak", range(4)), *question, *said("lisbon", range(4))]
    )
    (loose,) = table.loose()
    oak = next(t.id for t in table.open())
    Memory.of(graph, CONFIG).merge(loose.id, into=oak)
    record(graph, CONFIG, *said("lisbon", range(4, 8)), *question, *said("oak", range(4, 8)))
    tell(graph, CONFIG, "…", keep=0)
    session = get_session(graph, CONFIG)
    (again,) = kept(tmp_path, session).topic_table(session).loose()
    assert (again.name, again.id != loose.id) == ("Loose ends", True)


@pytest.mark.slow
def test_loose_ends_become_a_topic_once_they_gather(tmp_path: Path) -> None:
    _, session, store, table = started(
        tmp_path,
        [*said("oak", range(4)), *said("piano", range(1))],
        [*said("lisbon", range(4)), *said("piano", range(1, 2))],
        [*said("oak", range(4, 6)), *said("piano", range(2, 5))],
    )
    homes = {
        topic.id
        for topic in table
        for message in store.topic_messages(session, topic)
        if "Piano" in message.text
    }
    assert len(homes) == 1
    assert not table[homes.pop()].loose


@pytest.mark.slow
def test_each_split_leaves_every_message_in_one_place(tmp_path: Path) -> None:
    parts = [said(subject, range(n, n + 2)) for n in range(4) for subject in SUBJECTS]
    _, session, store, table = started(tmp_path, *parts)
    journal = store.changes(session)
    assert all(entry.author == "review" for entry in journal.values())
    held = sum(t.count for t in table)
    assert held == session.tail - 1
