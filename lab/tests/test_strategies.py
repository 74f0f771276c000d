"""What every context strategy has to do, and what tells them apart."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

import pytest
from hypothesis import given, strategies as st
from talks import talk

from topicloom import count_budget_tokens
from topicloom.lab import HashingEmbedder
from topicloom_app import RecordedMessage, load_conversations
from topicloom_lab.strategies import STRATEGIES, Context, Strategy, StrategyOptions
from topicloom_lab.strategies.base import line_of, quoted_in
from topicloom_lab.strategies.search import Lexical, Mixed, Pairs, SearchStrategy, quoted

DATA = Path(os.environ.get("TOPICLOOM_DATA", Path(__file__).parents[3] / "shared" / "data"))
EMBEDDER = HashingEmbedder(256)
TALK = talk()
HERE = [recipe.name for recipe in STRATEGIES.values() if recipe.missing is None]


def desk(folder: Path, budget: int = 400) -> StrategyOptions:
    return StrategyOptions(EMBEDDER, folder, budget)


@pytest.fixture(params=HERE)
def strategy(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Strategy]]:
    """Each strategy that can run here, for 400 tokens."""
    made = STRATEGIES[request.param].make(desk(tmp_path))
    yield request.param, made
    made.close()


class TestAllOfThem:
    @pytest.mark.slow
    def test_it_quotes_word_for_word_within_the_budget(
        self, strategy: tuple[str, Strategy]
    ) -> None:
        name, made = strategy
        made.feed(TALK.messages)
        context = made.context("What did the piano of visit 11 come to?", 400)
        texts = {m.id: m.text for m in TALK.messages}
        assert context.sources
        assert all(texts[i] in context.text for i in context.sources)
        assert list(context.sources) == sorted(set(context.sources), key=list(texts).index)
        assert context.tokens <= 400 or not STRATEGIES[name].limited

    @pytest.mark.slow
    def test_a_question_leaves_nothing_behind(self, strategy: tuple[str, Strategy]) -> None:
        _, made = strategy
        made.feed(TALK.messages[:20])
        asked = [made.context("What about the marathon?", 400) for _ in range(2)]
        made.feed(TALK.messages[20:])
        assert asked[0].text == asked[1].text
        assert asked[0].sources == asked[1].sources
        assert "What about the marathon?" not in made.context("And the tax?", 400).text

    def test_nothing_said_gives_nothing(self, strategy: tuple[str, Strategy]) -> None:
        _, made = strategy
        context = made.context("What did it cost?", 400)
        assert (context.sources, context.text) == ((), "")

    def test_nothing_is_known_before_it_is_said(self, strategy: tuple[str, Strategy]) -> None:
        _, made = strategy
        made.feed(TALK.messages[:20])
        later = {m.id for m in TALK.messages[20:]}
        assert later.isdisjoint(made.context("What about visit 24?", 400).sources)


def heard(name: str, folder: Path, messages: Sequence[RecordedMessage], budget: int) -> Context:
    """What a strategy gives for a question."""
    made = STRATEGIES[name].make(desk(folder, budget))
    made.feed(messages)
    return made.context("What did the piano of visit 11 come to?", budget)


class TestEachOfThem:
    def test_the_strategy_everything_shows_all_messages(self, tmp_path: Path) -> None:
        context = heard("everything", tmp_path, TALK.messages, 10)
        assert context.sources == tuple(m.id for m in TALK.messages)
        assert [m.type for m in context.messages[:2]] == ["human", "ai"]

    def test_the_newest_that_fit(self, tmp_path: Path) -> None:
        context = heard("last", tmp_path, TALK.messages, 100)
        count = len(context.sources)
        assert context.sources == tuple(m.id for m in TALK.messages[-count:])
        longer = [line_of(m) for m in TALK.messages[-count - 1 :]]
        assert count_budget_tokens("\n".join(longer)) > 100 - 2

    def test_first_and_newest_rounds(self, tmp_path: Path) -> None:
        ids = heard("first+last", tmp_path, TALK.messages, 4_000).sources
        assert ids == ("u1", "a1", *(f"{who}{n}" for n in range(20, 25) for who in "ua"))
        few = heard("first+last", tmp_path, TALK.messages, 80).sources
        assert few == ("u1", "a1", "u24", "a24")

    def test_segments_say_more_than_first_and_newest_rounds(self, tmp_path: Path) -> None:
        plain = heard("first+last", tmp_path, TALK.messages, 4_000)
        summed = heard("segments", tmp_path, TALK.messages, 4_000)
        assert set(plain.sources) < set(summed.sources)
        assert "[m3–m18]" in summed.text

    @pytest.mark.slow
    @pytest.mark.parametrize(
        "name", ["bm25", "bm25+1", "bm25-user", "dense", "hybrid", "topicloom"]
    )
    def test_search_finds_what_is_asked_for(self, name: str, tmp_path: Path) -> None:
        assert "u11" in heard(name, tmp_path, TALK.messages, 200).sources

    def test_neighbours_come_along(self, tmp_path: Path) -> None:
        ids = heard("bm25+1", tmp_path, TALK.messages, 55).sources
        assert ids == ("a10", "u11", "a11")

    def test_only_what_the_user_said(self, tmp_path: Path) -> None:
        ids = heard("bm25-user", tmp_path, TALK.messages, 400).sources
        assert all(i.startswith("u") for i in ids)

    def test_a_package_that_is_missing_is_named(self) -> None:
        gone = [r for r in STRATEGIES.values() if r.missing is not None]
        assert all(r.needs is not None and r.needs in str(r.missing) for r in gone)


class TestSearch:
    @given(
        st.lists(st.text("ab \n", min_size=1, max_size=80), max_size=12),
        st.lists(st.integers(-2, 14), max_size=30),
        st.integers(0, 60),
    )
    def test_the_budget_is_never_passed(
        self, texts: list[str], ranked: list[int], budget: int
    ) -> None:
        messages = [RecordedMessage(id=str(n), role="user", text=t) for n, t in enumerate(texts)]
        context = quoted(messages, iter(ranked), budget)
        assert context.tokens <= budget
        assert set(context.sources) <= {str(n) for n in ranked}

    def test_feeding_in_parts_changes_nothing(self) -> None:
        whole, parts = (
            SearchStrategy(Lexical(previous=True)),
            SearchStrategy(Lexical(previous=True)),
        )
        whole.feed(TALK.messages)
        for begin in range(0, len(TALK.messages), 7):
            parts.feed(TALK.messages[begin : begin + 7])
        assert whole.context("piano", 200) == parts.context("piano", 200)

    def test_pairs_carry_the_end_of_the_message_before(self) -> None:
        pairs = Pairs(True)
        assert pairs.texts(["x" * 400 + "end", "b"]) == ["x" * 400 + "end", "x" * 297 + "end | b"]
        assert pairs.texts(["c"]) == ["b | c"]
        assert Pairs(False).texts(["a", "b"]) == ["a", "b"]

    def test_scores_that_are_all_the_same_decide_nothing(self) -> None:
        mixed = Mixed(((1.0, Lexical()), (1.0, Lexical())))
        mixed.add(TALK.messages)
        assert not mixed.scores("zebra").any()


def test_lines_are_quoted_as_wholes() -> None:
    said = [
        RecordedMessage(id=str(n), role="user", text=t) for n, t in enumerate(["yes", "yes, it is"])
    ]
    assert quoted_in("user: yes, it is\nmore", said) == ("1",)


@pytest.mark.parametrize(
    ("name", "floor"), [("last", 0.250), ("bm25+1", 0.853), ("bm25-user", 0.440)]
)
def test_baselines_are_as_good_as_others_measured_them(
    name: str, floor: float, tmp_path: Path
) -> None:
    """Recall of LoCoMo's evidence at 4,000 tokens, measured with other code on the same file."""
    path = DATA / "memory" / "locomo_dev.jsonl"
    if not path.exists():
        pytest.skip(f"no data at {path}; set TOPICLOOM_DATA")
    found = []
    for conversation in load_conversations(path):
        made = STRATEGIES[name].make(desk(tmp_path, 4_000))
        made.feed(conversation.messages)
        for question in conversation.questions:
            if wanted := set(question.evidence):
                sources = made.context(question.question, 4_000).sources
                found.append(len(wanted.intersection(sources)) / len(wanted))
    assert mean(found) == pytest.approx(floor, abs=0.02)
