"""Sessions of newer versions: what they add survives a turn, what they change is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import Run, assert_one_line, run
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from sessions import chatter, kept, open_graph, tell, thread

from topicloom import FileStorage, NewerFormatError, StoreStorage, get_session

__all__ = ["run"]


@pytest.mark.slow
def test_fields_of_a_newer_version_survive_a_turn(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, checkpointer=InMemorySaver(), window=1_000)
    tell(graph, thread(), *(chatter("茶山"[n % 2], n, characters=150) for n in range(8)))
    values = graph.get_state(thread()).values
    session = get_session(graph, thread())
    store = kept(tmp_path, session)
    topics = list(store.topic_table(session))
    assert topics
    marked = [topic.model_copy(update={"mood": {"of": topic.id}}) for topic in topics]
    roster = store.save_topics(session, marked).roster
    later = {**values["session"], "roster": roster, "pinned": ["t1"]}
    graph.update_state(thread(), {"session": later}, as_node="finalize")
    tell(graph, thread(), *(chatter("茶山"[n % 2], n, characters=150) for n in range(8, 20)))
    after = get_session(graph, thread())
    assert graph.get_state(thread()).values["session"]["pinned"] == ["t1"]
    assert after.roster != roster, "the turns wrote topics"
    table = kept(tmp_path, after).topic_table(after)
    assert all(table[t.id].model_dump()["mood"] == {"of": t.id} for t in topics)


def test_a_newer_checkpoint_is_refused(tmp_path: Path) -> None:
    graph = open_graph(tmp_path, checkpointer=InMemorySaver())
    tell(graph, thread(), "茶")
    newer = {**graph.get_state(thread()).values["session"], "format": 99}
    graph.update_state(thread(), {"session": newer}, as_node="finalize")
    written = (tmp_path / "s" / "transcript.jsonl").read_bytes()
    with pytest.raises(
        NewerFormatError, match=r"session 's' has format 99, .* up to 1.*[Uu]pgrade"
    ):
        tell(graph, thread(), "山")
    assert (tmp_path / "s" / "transcript.jsonl").read_bytes() == written


@pytest.mark.slow
def test_a_newer_folder_is_refused(run: Run, tmp_path: Path) -> None:
    assert run("chat", "ann", stdin="Hello.\n").code == 0
    assert run("chat", "bob", stdin="Hello.\n").code == 0
    card = tmp_path / "sessions" / "ann" / "session.json"
    card.write_text(json.dumps({"name": "ann", "format": 2}))
    for command in (["transcript", "ann"], ["chat", "ann"]):
        said = ("ann/session.json has format 2", "formats up to 1", "Upgrade")
        assert_one_line(run(*command, stdin="x\n"), *said)
    assert FileStorage(tmp_path / "sessions").sessions() == ["ann", "bob"]
    assert run("transcript", "bob").code == 0


@pytest.mark.parametrize("kind", ["newer", "older"])
def test_the_card_in_a_store(kind: str) -> None:
    store, place = InMemoryStore(), ("topicloom", "%sessions")
    card: dict[str, Any] = {"name": '"s"', "more": 1} | ({"format": 2} if kind == "newer" else {})
    store.put(place, "s", card)
    log = StoreStorage(store).open("s")
    if kind == "newer":
        with pytest.raises(NewerFormatError, match=r"item s in namespace .* has format 2"):
            log.append("transcript", None, [{"text": "x"}])
        assert [item.value for item in store.search(("topicloom", "s"))] == []
    else:
        log.append("transcript", None, [{"text": "x"}])
    assert [item.value for item in store.search(place)] == [card], "left as it is"
