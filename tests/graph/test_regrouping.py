"""Reviews put right what is filed wrong; a person may undo that, and then it stays undone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from agents import ScriptedModel, open_agent, remember
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from sessions import check_kept, kept, open_graph, record, tell, thread

from topicloom import SPLITTER, Memory, Topic, embedded_roles, get_session, review_session
from topicloom.hosting import Graph
from topicloom.search.hashing import HashingEmbedder
from topicloom.testing import TaggedSplitter, fake_roles

CONFIG = thread()
ROLES = embedded_roles(HashingEmbedder(256))
SUBJECTS = {
    "oak": "The oak fronts of the kitchen cupboards, number {n}, and the stone counter.",
    "lisbon": "Flights to Lisbon in May, offer {n}, and a hotel near the river Tejo.",
    "piano": "Piano lesson {n}: scales, the Chopin waltz, and the teacher's fingering.",
}
FILED = [
    ("A", "oak"),
    ("B", "lisbon"),
    ("A", "oak"),
    ("C", "piano"),
    ("B", "piano"),  # filed wrong
    ("A", "oak"),
    ("B", "lisbon"),
    ("C", "piano"),
    ("A", "oak"),
    ("B", "lisbon"),
    ("C", "piano"),
]


def said(filed: Sequence[tuple[str, str]]) -> Iterator[BaseMessage]:
    """Two rounds for each entry; a tag says into which topic they go."""
    for place, (tag, subject) in enumerate(filed):
        for n in (2 * place, 2 * place + 1):
            line = SUBJECTS[subject].format(n=n)
            yield HumanMessage(f"{tag}：{line}")
            yield AIMessage(f"{tag}：Noted: {line}")


class Talk:
    """A session, as a rule one in which two rounds were filed wrong."""

    def __init__(self, folder: Path, filed: Sequence[tuple[str, str]] = tuple(FILED)) -> None:
        self.folder = folder
        roles = ROLES.replace(SPLITTER, TaggedSplitter())
        self.graph: Graph = open_graph(folder, roles, window=16_000)
        record(self.graph, CONFIG, *said(filed))
        tell(self.graph, CONFIG, "…", keep=0)

    def held(self) -> list[set[str]]:
        """Subjects of the messages of each topic; what must always hold is checked."""
        session = get_session(self.graph, CONFIG)
        store = kept(self.folder, session)
        check_kept(store, session)

        def subjects(topic: Topic) -> set[str]:
            texts = [m.text for m in store.topic_messages(session, topic)]
            return {s for s in SUBJECTS for t in texts if SUBJECTS[s][:12] in t}

        return [subjects(t) for t in store.topic_table(session) if t.count]

    @property
    def memory(self) -> Memory:
        return Memory.of(self.graph, CONFIG, author="ann")


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return Talk(tmp_path)


WRONG = [{"oak"}, {"lisbon", "piano"}, {"piano"}]


@pytest.mark.slow
def test_a_review_moves_what_is_filed_wrong(talk: Talk) -> None:
    assert talk.held() == WRONG
    told = review_session(talk.graph, CONFIG, roles=ROLES, dry_run=True).regrouped
    assert len(told) == 1
    assert "moved m17 to m20 into" in told[0]
    assert talk.held() == WRONG

    assert review_session(talk.graph, CONFIG, roles=ROLES).regrouped == told
    assert talk.held() == [{"oak"}, {"lisbon"}, {"piano"}]
    assert review_session(talk.graph, CONFIG, roles=ROLES).regrouped == ()


@pytest.mark.slow
def test_a_review_moves_what_is_filed_wrong_in_an_agents_topics(talk: Talk) -> None:
    agent = open_agent(ScriptedModel(), remember(talk.folder, settings={"window": 16_000}))
    told = review_session(agent, CONFIG, roles=ROLES).regrouped
    assert "moved m17 to m20 into" in told[0]
    assert any("moved m17" in change.event for change in Memory.of(agent, CONFIG).changes())
    assert review_session(agent, CONFIG, roles=ROLES).regrouped == ()
    tell(talk.graph, CONFIG, "…")  # comes behind it, as behind any other writer
    assert talk.held() == [{"oak"}, {"lisbon"}, {"piano"}]


@pytest.mark.slow
def test_what_a_person_undid_stays_undone(talk: Talk) -> None:
    review_session(talk.graph, CONFIG, roles=ROLES)
    memory = talk.memory
    (moved,) = (c for c in memory.changes() if "moved" in c.event)
    assert moved.author == "review"
    memory.undo(moved.id)
    undone = talk.held()
    assert {"lisbon", "piano"} in undone

    record(talk.graph, CONFIG, HumanMessage("A：More oak."), AIMessage("A：Noted."))
    tell(talk.graph, CONFIG, "…", keep=0)
    review_session(talk.graph, CONFIG, roles=ROLES)
    assert {"lisbon", "piano"} in talk.held()


@pytest.mark.slow
def test_what_a_person_settled_stays(talk: Talk) -> None:
    talk.memory.pin("t2")
    assert review_session(talk.graph, CONFIG, roles=ROLES).regrouped == ()
    assert {"lisbon", "piano"} in talk.held()


@pytest.mark.slow
def test_what_a_person_merged_stays_together(talk: Talk) -> None:
    assert talk.memory.merge("t3", into="t2").by_hand == ("sorted",)
    merged = talk.held()
    review_session(talk.graph, CONFIG, roles=ROLES)
    assert talk.held() == merged
    record(talk.graph, CONFIG, HumanMessage("A：More oak."), AIMessage("A：Noted."))
    tell(talk.graph, CONFIG, "…", keep=0)
    assert {"lisbon", "piano"} in talk.held()


@pytest.mark.slow
def test_what_a_person_parted_again_is_not_merged(tmp_path: Path) -> None:
    """One subject in two topics, which a review would merge, had it not been undone."""
    talk = Talk(tmp_path, [("A", "oak"), ("B", "oak"), ("C", "piano")] * 3)
    talk.memory.merge("t2", into="t1")
    talk.memory.undo()
    assert talk.held() == [{"oak"}, {"oak"}, {"piano"}]
    review_session(talk.graph, CONFIG, roles=ROLES)
    assert talk.held() == [{"oak"}, {"oak"}, {"piano"}]


@pytest.mark.slow
def test_a_review_merges_what_nobody_parted(tmp_path: Path) -> None:
    talk = Talk(tmp_path, [("A", "oak"), ("B", "oak"), ("C", "piano")] * 3)
    review_session(talk.graph, CONFIG, roles=ROLES)
    assert talk.held() == [{"oak"}, {"piano"}]


@pytest.mark.slow
def test_where_a_model_splits_nothing_is_put_right(talk: Talk) -> None:
    assert review_session(talk.graph, CONFIG).regrouped == ()  # the graph's own splitter
    assert talk.held() == WRONG
    assert review_session(talk.graph, CONFIG, roles=fake_roles()).regrouped == ()
