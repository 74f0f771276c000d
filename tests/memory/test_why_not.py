"""`Memory.why_not` by real turns: the step that lost a message, and the case made of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from sessions import chatter, open_graph, past, record, tell, thread

from topicloom import (
    FileStorage,
    InputError,
    Memory,
    Settings,
    default_embedder,
    embedded_roles,
)
from topicloom.testing import ScriptedResponder, SteadyReader, fake_roles
from topicloom_app import load_conversations
from topicloom_app.recordings.conversations import make_case

CONFIG = thread()


@pytest.mark.slow
def test_each_message_was_had_or_lost_at_one_step(tmp_path: Path) -> None:
    reader = SteadyReader({"雨": 0.9}, otherwise=0.0, quotes=1)
    reader.model = "small"
    graph = open_graph(tmp_path, fake_roles(reader=reader), recall_tokens=200, window=3_000)
    record(graph, CONFIG, *past("茶", "雨", rounds=6))
    tell(graph, CONFIG, "雨：第2次说到雨的事情", keep=0)
    tell(graph, CONFIG, "雨：第2次说到雨的事情呢？")
    tell(graph, CONFIG, "雨：完全无关")
    memory = Memory.of(graph, CONFIG)
    _, first, second, third = memory.receipts()
    (quote, *_) = first.quoted[0].quotes
    asked = {
        (first.turn, quote): "quoted",
        (second.turn, quote): "quoted_before",
        (first.turn, first.user): "in_view",
        (first.turn, third.user): "later",
        (1, "m1"): "unanswered",
    }
    alone = Memory(FileStorage(tmp_path, fsync=False), "s", embedder="hashing")
    for reading in (memory, alone):
        for (turn, message), step in asked.items():
            assert reading.why_not(turn, message).step == step, (turn, message)
        lost = reading.why_not(first.turn, "m23")
        assert (lost.step, lost.topic, lost.place > 0) == ("no_budget", "t2", True)
        with pytest.raises(InputError, match="no turn 99"):
            reading.why_not(99, "m1")
    memory.archive("t1")
    tell(graph, CONFIG, "雨：还有吗")
    assert Memory.of(graph, CONFIG).why_not(6, "m1").step == "archived"
    # A topic is where it was then.
    assert Memory.of(graph, CONFIG).why_not(first.turn, "m1").step != "archived"


@pytest.mark.slow
def test_what_a_reader_wanted_and_had_no_room_is_in_the_receipt(tmp_path: Path) -> None:
    reader = SteadyReader(otherwise=0.9, quotes=6)
    graph = open_graph(tmp_path, fake_roles(reader=reader), recall_tokens=100)
    record(graph, CONFIG, *past("茶", rounds=6))
    tell(graph, CONFIG, chatter("海", 1), keep=0)
    (newest,) = Memory.of(graph, CONFIG).receipts(1)
    quoted = [i for note in newest.quoted for i in note.quotes]
    assert newest.crowded_out
    assert not set(quoted) & set(newest.crowded_out)
    lost = Memory.of(graph, CONFIG).why_not(newest.turn, newest.crowded_out[0])
    assert lost.step == "no_budget"


def test_what_a_reader_kept_out_lost_by_its_choice_and_not_for_want_of_room(
    tmp_path: Path,
) -> None:
    reader = SteadyReader(otherwise=0.1, quotes=0)
    graph = open_graph(tmp_path, fake_roles(reader=reader), recall_tokens=300)
    record(graph, CONFIG, *past("茶", rounds=6))
    tell(graph, CONFIG, "茶：第2次说到茶的事情", keep=0)
    memory = Memory.of(graph, CONFIG)
    (newest,) = memory.receipts(1)
    assert newest.reading is not None
    assert newest.reading.kept_out
    lost = memory.why_not(newest.turn, newest.reading.kept_out[0])
    assert (lost.step, lost.place > 0) == ("passed_over", True)


@pytest.mark.parametrize(
    ("said", "step"), [("ok", "needs_nothing"), ("Which wood was the floor?", "quoted")]
)
def test_a_message_that_needs_nothing_lost_nothing_for_want_of_room(
    tmp_path: Path, said: str, step: str
) -> None:
    least = Settings.model_fields["recall_least"].default
    graph = open_graph(tmp_path, recall_least=least, embedder="default")
    floor = HumanMessage("The oak for the kitchen floor comes on the 12th of May.")
    record(graph, CONFIG, floor, AIMessage("Noted."))
    tell(graph, CONFIG, said, keep=0)
    memory = Memory.of(graph, CONFIG)
    (newest,) = memory.receipts(1)
    assert newest.idle == (step == "needs_nothing")
    assert memory.why_not(newest.turn, "m1").step == step


@pytest.mark.slow
@pytest.mark.parametrize("least", [0.0, 0.9])
def test_what_is_hardly_needed_is_told_from_what_has_no_room(tmp_path: Path, least: float) -> None:
    settings: dict[str, Any] = {"recall_least": least, "recall_tokens": 80 if least == 0 else 200}
    roles = embedded_roles(default_embedder())
    graph = open_graph(tmp_path, roles, embedder="default", **settings)
    said = [f"The oak for kitchen floor {n} comes in May." for n in "abcdefghijkl"]
    record(graph, CONFIG, *map(HumanMessage, said))
    tell(graph, CONFIG, "Which wood did we order for the kitchen floor?", keep=0)
    memory = Memory.of(graph, CONFIG)
    (newest,) = memory.receipts(1)
    steps = {memory.why_not(newest.turn, f"m{n}").step for n in range(1, len(said) + 1)}
    assert ("needs_nothing" in steps) == bool(least)
    assert least or steps == {"quoted", "no_budget"}


def test_a_case_is_read_as_evaluations_read_them(tmp_path: Path) -> None:
    graph = open_graph(tmp_path)
    record(graph, CONFIG, *past("茶", rounds=2), HumanMessage("雨？", name="Ann"))
    memory = Memory.of(graph, CONFIG)
    case = make_case("s", memory.history(before="m5"), memory.quote("m5").text, "m3")
    file = tmp_path / "case.jsonl"
    file.write_text(case.model_dump_json(), "utf-8")
    (read,) = load_conversations(file)
    assert [m.id for m in read.messages] == ["m1", "m2", "m3", "m4"]
    assert (read.questions[0].question, read.questions[0].evidence) == ("雨？", ("m3",))


@pytest.mark.slow
def test_the_prompt_of_the_newest_turn_is_shown_as_it_was_sent(tmp_path: Path) -> None:
    responder = ScriptedResponder()
    graph = open_graph(tmp_path, fake_roles(responder), instructions="Be kind.")
    record(graph, CONFIG, *past("茶", "雨", rounds=6))
    tell(graph, CONFIG, chatter("雨", 2), chatter("茶", 3), keep=2)
    memory = Memory.of(graph, CONFIG)
    assert memory.prompt() == responder.requests[-1].messages
    then = next(
        state.config
        for state in graph.get_state_history(CONFIG)
        if not state.next and state.values["session"]["turn"] == 2
    )
    assert Memory.of(graph, then).prompt() == responder.requests[0].messages
    with pytest.raises(InputError, match="only a graph"):
        Memory(FileStorage(tmp_path, fsync=False), "s").prompt()
