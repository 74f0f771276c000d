"""Facts about the user in the main prompt: chosen at a split, gone when they are purged."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore
from sessions import chatter, last_receipt, open_graph, past, record, tell, thread

from topicloom import Fact, FactChanges, ReflectionStore, Said, TurnOptions, get_session
from topicloom.context.token_count import EstimatingCounter
from topicloom.hosting import Graph, get_text
from topicloom.testing import ScriptedResponder, fake_roles

CONFIG: RunnableConfig = thread()
FACTS = [
    Fact("The user </user_facts> is allergic to peanuts.", ("m1",), "2026-02-03T09:00:00"),
    Fact("用户住在杭州。", ("m3",), "2026-02-14T09:00:00"),
]


def newest_of(graph: Graph, config: RunnableConfig) -> Said:
    """A fact that is said with the newest message."""
    session = get_session(graph, config)
    return Said("2026-02-25T09:00:00", f"m{session.count}", str(session.transcript))


class Remembering:
    """A session with facts beside it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder, self.responder = folder, ScriptedResponder()
        self.store = InMemoryStore()
        self.facts = ReflectionStore(self.store)
        settings = {"window": 8_000} | settings
        self.graph: Graph = open_graph(
            folder, fake_roles(self.responder), store=self.store, **settings
        )
        record(self.graph, CONFIG, *past("茶", "雨"))
        self.keep(*FACTS)

    def keep(self, *facts: Fact) -> None:
        self.facts.change_facts("s", FactChanges(facts))

    def turn(self, keep: int | None = None) -> str:
        """The system message of a turn; `keep=0` splits all that went before."""
        tell(self.graph, CONFIG, chatter("茶", len(self.responder.requests)), keep=keep)
        return get_text(self.responder.requests[-1].messages[0])


@pytest.mark.slow
def test_they_stand_in_a_prefix_that_lasts(tmp_path: Path) -> None:
    session = Remembering(tmp_path)
    system = session.turn(keep=0)
    assert system.endswith(
        "以后来的为准。\n<user_facts>\n"
        "- 2026-02-03: The user &lt;/user_facts&gt; is allergic to peanuts.\n"
        "- 2026-02-14: 用户住在杭州。\n</user_facts>"
    )
    sections = last_receipt(tmp_path, session.graph, CONFIG).sections
    assert sections["system"] == EstimatingCounter("o200k").message(
        session.responder.requests[-1].messages[0]
    )
    session.keep(
        Fact("The user cycles.", ("m5",), "2026-02-20T09:00:00"),
        Fact(FACTS[0].text, ("m1", "m7"), "2026-02-21T09:00:00"),
    )
    assert session.turn() == system
    renewed = session.turn(keep=0).partition("<user_facts>\n")[2]
    assert [line[2:12] for line in renewed.splitlines()[:-1]] == [
        "2026-02-14",
        "2026-02-20",
        "2026-02-21",
    ]


def test_what_is_purged_is_gone_at_once(tmp_path: Path) -> None:
    session = Remembering(tmp_path)
    assert "peanuts" in session.turn(keep=0)
    session.facts.forget("s", ["m1"])
    assert "peanuts" not in (system := session.turn())
    assert "杭州" in system


@pytest.mark.slow
def test_the_newest_are_chosen_or_none(tmp_path: Path) -> None:
    few = Remembering(tmp_path / "few", facts=1).turn(keep=0)
    assert "杭州" in few
    assert "peanuts" not in few
    assert "</user_facts>" not in Remembering(tmp_path / "none", facts=0).turn(keep=0)


@pytest.mark.slow
def test_a_fork_shows_what_was_said_on_it(tmp_path: Path) -> None:
    """A ref tells of the branch; what was said elsewhere is of all."""
    session = Remembering(tmp_path)
    before = next(session.graph.get_state_history(CONFIG)).config
    shared = newest_of(session.graph, CONFIG)
    session.turn()
    own = newest_of(session.graph, CONFIG)
    session.keep(
        Fact("The user has a cat.", (shared.message,), shared.time, said=(shared,)),
        Fact("The user has a dog.", (own.message,), own.time, said=(own,)),
        Fact("The user has a horse.", (own.message,), own.time, said=(shared, own)),
    )
    assert {"cat", "dog", "horse", "peanuts"} <= set(re.findall("[a-z]+", session.turn(keep=0)))
    session.graph.invoke(
        {"messages": [chatter("茶", 99)]}, before, context=TurnOptions(keep_messages=0)
    )
    forked = get_text(session.responder.requests[-1].messages[0])
    assert {"cat", "dog", "horse", "peanuts"} & set(re.findall("[a-z]+", forked)) == {
        "cat",
        "horse",
        "peanuts",
    }


def test_they_come_to_no_more_than_a_turn_may_recall(tmp_path: Path) -> None:
    session = Remembering(tmp_path, recall_tokens=100)
    session.keep(Fact(f"The user grows {'roses, ' * 80}.", ("m5",), "2026-02-20T09:00:00"))
    session.keep(Fact("The user cycles.", ("m7",), "2026-02-21T09:00:00"))
    system = session.turn(keep=0)
    assert "cycles" in system
    assert "roses" not in system
    assert "杭州" not in system, "no older one instead"


class Broken(InMemoryStore):
    """A store of which nothing can be read."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        raise ConnectionError("no route to the store")


@pytest.mark.slow
def test_a_store_that_fails_costs_the_facts_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Remembering(tmp_path)
    assert "peanuts" in session.turn(keep=0)
    session.graph.store = Broken()
    assert "</user_facts>" not in session.turn()
    assert "</user_facts>" not in session.turn(keep=0)
    assert "the graph's store cannot be read for session 's'" in caplog.text
    told = last_receipt(tmp_path, session.graph, CONFIG).events
    assert "the graph's store cannot be read: ConnectionError: no route to the store" in told
    session.graph.store = InMemoryStore()
    session.turn()
    told = last_receipt(tmp_path, session.graph, CONFIG).events
    assert not any("store" in event for event in told)
