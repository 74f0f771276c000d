"""The boundary adsorber: the funnel, over a detector that is known."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from agents import ScriptedModel, open_agent, remember
from hypothesis import given, strategies as st
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import ValidationError
from sessions import thread
from tables import each_row

from topicloom.graph.session import build_session_graph
from topicloom.memory.stored import find_deps
from topicloom.prompts.loader import load_cues
from topicloom.search.embedder import CachedEmbedder, Vectors
from topicloom.search.encoders import default_embedder
from topicloom.settings import Settings
from topicloom.state.rounds import Round, Ruling, group_rounds
from topicloom.state.stored_message import StoredMessage
from topicloom.testing import ScriptedResponder, fake_roles
from topicloom.topics.adsorber import Adsorber
from topicloom.topics.boundary_detector import Rating
from topicloom.topics.boundary_policy import AdsorberPolicy

TEA = ["green tea and black tea", "how hot should the tea be", "a pot for the tea"]


class Known:
    """A detector that says what it is told, and remembers what it was asked about."""

    def __init__(self, score: float = 0.9, continues: float | None = None) -> None:
        self.rating = Rating(score, score if continues is None else continues)
        self.asked: list[list[str]] = []

    def rate(self, before: Sequence[Round], round_: Round) -> Rating:
        self.asked.append([b.rewritten_query for b in (*before, round_)])
        return self.rating

    def look_back(self, rounds: Sequence[Round], fillers: Collection[int] = ()) -> list[Rating]:
        return [Rating(self.rating.score, 0.0 if b.opens else 1.0) for b in rounds]

    def expect(self, messages: Sequence[StoredMessage]) -> None:
        """Nothing needs to be prepared."""


def adsorber(detector: Known, **policy: object) -> Adsorber:
    """The funnel over it."""
    return Adsorber(detector, load_cues("fillers"), AdsorberPolicy.model_validate(policy))


def said(
    text: str, *, number: int = 99, opens: bool = False, query: str | None = None
) -> StoredMessage:
    """A message of the user."""
    time = "2026-03-02T10:00:00"
    return StoredMessage(seq=number, role="user", text=text, time=time, opens=opens, query=query)


def rounds(texts: Sequence[str], opening: Sequence[int] = ()) -> list[Round]:
    """A round a text, each with a reply."""
    messages: list[StoredMessage] = []
    for place, text in enumerate(texts):
        messages.append(said(text, number=2 * place + 1, opens=place in opening))
        time = "2026-03-02T09:59:00"
        reply = f"about {text}"
        messages.append(StoredMessage(seq=2 * place + 2, role="assistant", text=reply, time=time))
    return group_rounds(messages)


class TestFunnel:
    @each_row(
        ("score", "zone", "opens"),
        [(0.9, "adsorb", False), (0.6, "grey", False), (0.4, "grey", True), (0.1, "split", True)],
    )
    def test_a_score_gives_a_zone_and_only_the_grey_one_asks_an_arbiter(
        self, score: float, zone: str, opens: bool
    ) -> None:
        verdict = adsorber(Known(score)).judge(rounds(TEA), said("and the milk for it"))
        assert (verdict.zone, verdict.opens) == (zone, opens)
        asked = adsorber(Known(score)).doubts([], rounds(TEA))
        assert bool(asked) == (zone == "grey")

    def test_the_thresholds_are_those_of_the_score(self) -> None:
        verdict = adsorber(Known(0.9, continues=0.2)).judge(rounds(TEA), said("and the milk too"))
        assert (verdict.zone, verdict.continues) == ("adsorb", 0.2)

    def test_the_first_message_opens_nothing(self) -> None:
        assert not adsorber(Known(0.0)).judge([], said(TEA[0])).opens


class TestDoubts:
    def test_an_arbiter_is_asked_in_the_grey_zone_alone(self) -> None:
        assert list(adsorber(Known(0.4)).doubts([], rounds(TEA))) == [3, 5]
        assert adsorber(Known(0.9)).doubts([], rounds(TEA)) == {}
        assert adsorber(Known(0.1)).doubts([], rounds(TEA)) == {}

    def test_what_an_arbiter_is_told(self) -> None:
        talk = rounds(["bread", *TEA, "that one"])
        last = talk[-1].messages[0].model_copy(update={"query": "the big tea pot there"})
        talk[-1] = replace(talk[-1], messages=(last,))
        question = adsorber(Known(0.5, continues=0.4)).doubts([], talk)[last.seq]
        assert question.summary == "\n".join(TEA)
        assert question.request == "the big tea pot there"
        assert question.reply == f"about {TEA[2]}"
        assert (question.prior, question.language) == (1.0, "en")

    def test_of_the_first_block_by_what_stands_before_it(self) -> None:
        detector = Known(0.5)
        talk = rounds([*TEA, "ok", "and the milk for it"])
        question = adsorber(detector).doubts(talk[:4], talk[4:])[talk[4].first]
        assert question.summary == "\n".join(TEA)
        assert question.prior == 0.5
        assert detector.asked == [[*TEA, "and the milk for it"]]

    def test_never_about_a_filler(self) -> None:
        talk = rounds([*TEA, "ok"])
        assert talk[3].first not in adsorber(Known(0.5)).doubts([], talk)
        assert adsorber(Known(0.5)).doubts(talk[:3], talk[3:]) == {}

    def test_no_more_than_a_setting_says_those_of_the_greatest_doubt(self) -> None:
        class Growing(Known):
            def look_back(
                self, rounds: Sequence[Round], fillers: Collection[int] = ()
            ) -> list[Rating]:
                return [Rating(0.3 + 0.1 * place, 0.0) for place in range(len(rounds))]

        talk = rounds([f"the tea pot of day number {n}" for n in range(5)])
        assert list(adsorber(Growing()).doubts([], talk)) == [3, 5, 7, 9]
        assert list(adsorber(Growing(), questions=2).doubts([], talk)) in ([3, 5], [5, 7])
        assert list(adsorber(Growing(), questions=1).doubts([], talk)) == [5]
        assert adsorber(Growing(), questions=0).doubts([], talk) == {}


class TestFillers:
    @each_row("filler", ["ok", "Thanks!", "好的", "", "  ", "?", "go on", "deploy it"])
    def test_a_filler_continues_unseen(self, filler: str) -> None:
        detector = Known(0.0)
        verdict = adsorber(detector).judge(rounds(TEA), said(filler))
        assert (verdict.zone, verdict.opens, detector.asked) == ("filler", False, [])

    def test_fillers_are_not_compared_with(self) -> None:
        detector = Known()
        adsorber(detector).judge(rounds([*TEA, "ok", "go on"]), said("and the milk for it"))
        assert detector.asked == [[*TEA, "and the milk for it"]]
        assert not adsorber(Known(0.0)).judge(rounds(["ok"]), said(TEA[0])).opens

    def test_how_short_is_a_setting(self) -> None:
        judge = adsorber(Known(0.0), filler_tokens=5).judge
        assert judge(rounds(TEA), said("one two three four")).zone == "filler"
        assert judge(rounds(TEA), said("一二三四")).zone == "filler"
        assert judge(rounds(TEA), said("one two three 四五")).zone == "split"


class TestPolicy:
    def test_the_spec_is_a_preset(self) -> None:
        spec = AdsorberPolicy(preset="spec")
        assert (spec.screening, spec.low, spec.high, spec.anchor) == (
            "cosine",
            0.4,
            0.75,
            "context",
        )
        assert AdsorberPolicy(preset="spec", low=0.5).low == 0.5

    def test_thresholds_out_of_order_are_refused(self) -> None:
        with pytest.raises(ValidationError, match="exchange them"):
            AdsorberPolicy(low=0.8)


def segments(talk: Sequence[Round]) -> list[int]:
    """The segment of each round, counted from 0: one ends where the next round does not go on."""
    parts = (
        odds < 0 and place > 0 for place, odds in enumerate(adsorber(Known()).continuity(talk))
    )
    return list(accumulate(parts, initial=0))[1:]


class TestSegments:
    def test_a_segment_begins_where_a_topic_begins(self) -> None:
        assert segments(rounds([*TEA, *TEA], opening=[3])) == [0, 0, 0, 1, 1, 1]

    def test_the_first_block_begins_the_first_segment(self) -> None:
        assert segments([]) == []
        assert segments(rounds(TEA[:2], opening=[0])) == [0, 0]

    def test_a_filler_begins_none(self) -> None:
        assert segments(rounds([TEA[0], "ok"], opening=[1])) == [0, 0]

    def test_an_imported_conversation_begins_one_for_certain(self) -> None:
        talk = beginning(rounds([*TEA, "ok", *TEA], opening=[2]), 0, 3)
        assert segments(talk) == [0, 0, 1, 2, 2, 2, 2]
        assert talk[3].context == ""
        assert list(adsorber(Known(0.4)).doubts([], talk[:4])) == [3, 5]
        assert list(adsorber(Known(0.4)).doubts([], beginning(talk[:3], 1))) == [5]

    def test_the_ruling_of_an_arbiter_decides(self) -> None:
        talk = rounds([*TEA, *TEA], opening=[3])
        assert ruled(talk, opens=[1]) == [0, 1, 1, 2, 2, 2]
        assert ruled(talk, continues=[3]) == [0] * 6
        assert ruled(talk, opens=[0, 2], continues=[1, 3]) == [0, 0, 1, 1, 1, 1]


def beginning(talk: Sequence[Round], *places: int) -> list[Round]:
    """The rounds; at some of them, by their places, a conversation begins for certain."""
    first = {talk[place].first for place in places}
    return group_rounds(
        m.model_copy(update={"begins": m.begins or m.seq in first})
        for b in talk
        for m in b.messages
    )


def ruled(
    talk: Sequence[Round], opens: Sequence[int] = (), continues: Sequence[int] = ()
) -> list[int]:
    """Segments, with rulings on some rounds by their places."""
    rulings: dict[int, Ruling] = {
        **dict.fromkeys(opens, "opens"),
        **dict.fromkeys(continues, "continues"),
    }
    return segments([replace(b, ruling=rulings.get(place)) for place, b in enumerate(talk)])


@given(
    st.lists(st.sampled_from([*TEA, "ok", "", "西红柿怎么种"]), max_size=12),
    st.sets(st.integers(0, 12)),
)
def test_every_block_has_a_segment_and_they_count_up(texts: list[str], opening: set[int]) -> None:
    labels = segments(rounds(texts, opening=sorted(opening)))
    assert len(labels) == len(texts)
    assert labels[:1] in ([], [0])
    assert all(b - a in (0, 1) for a, b in pairwise(labels))


BACKGROUND = "topicloom-ahead"
"""The name of its threads."""


class Noting:
    """The encoder that ships, which notes who wants something of it, and what."""

    def __init__(self) -> None:
        self.inner = default_embedder()
        self.fingerprint, self.dimension = self.inner.fingerprint, self.inner.dimension
        self.asked: list[tuple[str, list[str]]] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        background = threading.current_thread().name == BACKGROUND
        self.asked.append((BACKGROUND if background else "waited for", list(texts)))
        return self.inner.embed(texts)


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> Noting:
    """Stands behind all that the graph embeds."""
    noting = Noting()
    cached = CachedEmbedder(noting)
    monkeypatch.setattr("topicloom.graph.deps.default_embedder", lambda: cached)
    monkeypatch.setattr("topicloom.graph.deps.open_embedder", lambda _: cached)
    return noting


def begin(folder: Path, **settings: Any) -> Callable[[str], None]:
    """What says something in a session, and waits until all is embedded ahead."""
    roles = fake_roles(ScriptedResponder(otherwise=lambda r: f"About {r.query}"))
    given = Settings(folder=folder, fsync=False, **settings)
    graph = build_session_graph(settings=given, roles=roles).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "s"}}

    def say(text: str) -> None:
        graph.invoke({"messages": [HumanMessage(text)]}, config)
        find_deps(graph).ahead.submit(lambda: None).result(10)

    return say


def test_a_reply_is_embedded_while_it_is_read(tmp_path: Path, noting: Noting) -> None:
    say, texts = begin(tmp_path), ["What does a cabbage need?", "How much water does a fir need?"]
    say(texts[0])
    assert noting.asked == [(BACKGROUND, [texts[0], f"About {texts[0]}"])]
    say(texts[1])
    assert noting.asked[1:] == [("waited for", [texts[1]]), (BACKGROUND, [f"About {texts[1]}"])]


def test_so_is_an_agents(tmp_path: Path, noting: Noting) -> None:
    agent = open_agent(ScriptedModel(), remember(tmp_path))
    agent.invoke({"messages": [HumanMessage("What does a fir need?")]}, thread())
    find_deps(agent).ahead.submit(lambda: None).result(10)
    assert noting.asked[-1] == (BACKGROUND, ["What does a fir need?", "All right, noted."])


@pytest.mark.slow
def test_so_is_what_will_leave_the_view_once_a_session_is_split(
    tmp_path: Path, noting: Noting
) -> None:
    say = begin(tmp_path, window=1_500)
    for number in range(20):
        say(f"Note {number:02} on the cabbage beds: " + "water them every day. " * 8)
    lines = [(who, t) for who, texts in noting.asked for t in texts if t.startswith("user: ")]
    early = [t for who, t in lines if who == "waited for"]
    later = [t for who, t in lines if who == BACKGROUND]
    assert early, "no split at all"
    assert [*early, *later] == sorted(t for _, t in lines), "a split waits for what came before it"
    assert len(later) > len(early)
