"""What an arbiter says decides what is split, and nobody waits for it before a reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from sessions import check_kept, kept, open_graph, tell, thread

from topicloom import (
    ARBITER,
    Answer,
    BoundaryQuestion,
    LocalRole,
    Roles,
    Session,
    SessionStore,
    Splitter,
    default_embedder,
    get_session,
)
from topicloom.roles.splitter import EmbeddedSplitter
from topicloom.testing import ScriptedResponder, TaggedSplitter, fake_roles

pytestmark = pytest.mark.slow

CONFIG = thread()
_TALK = (
    "Write me a snake game in Python please, with a score and a speed that grows.",
    "Add walls at the border and let the snake die when it hits them.",
    "Now put it on a server so that my friends can play it.",
    "Which provider is cheapest for a small VPS?",
    "Set up nginx with a certificate for the domain.",
    "My sister's birthday is next week, what could I give her?",
    "She likes gardening and old maps.",
    "How deep do I plant tulips?",
    "Is compost any good for roses?",
    "Back to the game: let the apples be red.",
    "What is the capital of Peru?",
    "How long is a flight from Madrid to Lima?",
)
TALK = (*_TALK, *(f"Once more: {text}" for text in _TALK))
REPLY = "Sure. " + "Here is what I would do about it, step by step. " * 6
PRESETS: dict[str, dict[str, Any]] = {
    "trained": {},
    "trained, wide": {"low": 0.05},
    "spec": {"preset": "spec"},
}


@dataclass
class Steadfast(LocalRole[BoundaryQuestion, float]):
    """An arbiter that always says the same, or fails."""

    answer: float | Exception
    questions: list[BoundaryQuestion] = field(default_factory=list)

    def call(self, request: BoundaryQuestion) -> Answer[float]:
        self.questions.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Answer(self.answer)


def roles_with(arbiter: Steadfast | None, splitter: Splitter | None = None) -> Roles:
    """Roles with an arbiter; the splitter is the embedded one if none is given."""
    splitter = splitter or EmbeddedSplitter(default_embedder())
    roles = fake_roles(ScriptedResponder(otherwise=REPLY), splitter=splitter)
    return roles.replace(ARBITER, arbiter)


def held(folder: Path, roles: Roles, preset: str) -> tuple[Session, SessionStore]:
    """The session and its storage after the talk."""
    graph = open_graph(folder, roles, window=1_500, adsorber=PRESETS[preset])
    tell(graph, CONFIG, *TALK)
    session = get_session(graph, CONFIG)
    store = kept(folder, session)
    check_kept(store, session)
    return session, store


def homes_of(session: Session, store: SessionStore) -> dict[str, str]:
    """The topic of each message that was split, by short ids; "loose" for loose ends."""
    table = store.topic_table(session)
    homes = {t.id: "loose" if t.loose else t.id for t in table}
    return {m.id: homes[t.id] for t in table for m in store.topic_messages(session, t)}


@pytest.mark.parametrize("preset", PRESETS)
def test_yes_and_no_give_different_topics(tmp_path: Path, preset: str) -> None:
    """A message that is told apart leaves the topic before it; one that is not stays with it."""
    topics: dict[float, int] = {}
    for answer in (1.0, 0.0):
        arbiter = Steadfast(answer)
        home = homes_of(*held(tmp_path / str(answer), roles_with(arbiter), preset))
        assert len(arbiter.questions) >= 5
        for question in arbiter.questions:
            number = 2 * TALK.index(question.request) + 1
            here, before = home[f"m{number}"], home[f"m{number - 1}"]
            if "loose" not in (here, before):  # in it nothing belongs together
                assert (here == before) == (answer > 0.5), question.request
        topics[answer] = len(set(home.values()))
    assert topics[0.0] > topics[1.0]


def test_it_is_asked_where_something_is_split_and_nowhere_else(tmp_path: Path) -> None:
    arbiter = Steadfast(0.0)
    session, store = held(tmp_path, roles_with(arbiter), "trained, wide")
    roles = [[c.role for c in receipt.calls] for receipt in store.receipts(session)]
    assert [] != [r for r in roles if "arbiter" in r] != roles
    for asked in (r for r in roles if "arbiter" in r):
        first, last = asked.index("arbiter"), len(asked) - asked[::-1].index("arbiter")
        assert set(asked[first:last]) == {"arbiter"}, "one batch"
        assert asked[last] == "splitter"
    assert sum(r.count("arbiter") for r in roles) == len(arbiter.questions)


def test_where_it_fails_the_likelier_answer_stands(tmp_path: Path) -> None:
    failing = Steadfast(RuntimeError("no such model"))
    found = homes_of(*held(tmp_path / "failing", roles_with(failing), "trained"))
    assert found == homes_of(*held(tmp_path / "none", roles_with(None), "trained"))
    assert failing.questions


def test_any_splitter_is_told_of_its_rulings(tmp_path: Path) -> None:
    told: dict[float, list[float]] = {}
    for answer in (1.0, 0.0):
        splitter = TaggedSplitter()
        held(tmp_path / str(answer), roles_with(Steadfast(answer), splitter), "trained")
        told[answer] = [odds for request in splitter.requests for odds in request.continues]
    assert len(told[1.0]) == len(told[0.0])
    assert sum(told[1.0]) > sum(told[0.0])


async def test_on_an_event_loop(tmp_path: Path) -> None:
    arbiter = Steadfast(0.0)
    graph = open_graph(tmp_path / "loop", roles_with(arbiter), window=1_500)
    for text in TALK:
        await graph.ainvoke({"messages": [HumanMessage(text)]}, CONFIG)
    session = get_session(graph, CONFIG)
    again = Steadfast(0.0)
    expected = homes_of(*held(tmp_path / "thread", roles_with(again), "trained"))
    assert homes_of(session, kept(tmp_path / "loop", session)) == expected
    # It is asked side by side, in whatever order threads and tasks come to their turn.
    assert sorted(map(repr, arbiter.questions)) == sorted(map(repr, again.questions))
