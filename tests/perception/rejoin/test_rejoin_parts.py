"""What rejoining is made from: signs of a message, the trace of a topic, features, weights."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topicloom.boundary.cues import Utterance
from topicloom.errors import ConfigurationError
from topicloom.index.hashing import HashingEmbedder
from topicloom.perception.rejoin import Scene, TopicTrace, Traces
from topicloom.perception.rejoin.features import features_of, leads_of
from topicloom.perception.rejoin.lexicon import Lexicon, columns_of
from topicloom.perception.rejoin.network import Network, Scorer
from topicloom.perception.rejoin.signs import Signs, joined, signs_of
from topicloom.perception.rejoin.trace import NAMES
from topicloom.perception.rejoin.traces import KEPT, NEWEST, SUM, THREE
from topicloom.perception.rejoin.weights import (
    RejoinWeights,
    as_stored,
    load_weights,
    save_weights,
)

EMBEDDER = HashingEmbedder()


def lexicon() -> Lexicon:
    """Tea on one axis, cars on the other."""
    tea, car = columns_of("tea")[0], columns_of("car")[0]
    vectors = {int(tea): [1.0, 0.0], int(car): [0.0, 2.0]}
    table = np.array([vectors[column] for column in sorted(vectors)], dtype=np.float32)
    return Lexicon(np.array(sorted(vectors), dtype=np.int64), table)


def signs(
    text: str, speaker: str | None = None, *, role: str | None = None, hours: float | None = None
) -> Signs:
    """A message taken apart."""
    said = Utterance(role=role, speaker=speaker, text=text, hours=hours)
    return signs_of(said, EMBEDDER.embed([text])[0], lexicon())


def trace(*messages: Signs, at: int = 0, traces: Traces | None = None) -> TopicTrace:
    """A topic of these, numbered from `at`."""
    made = TopicTrace(traces)
    for number, message in enumerate(messages, at):
        made.add(message, number)
    return made


class TestSigns:
    def test_a_name_before_a_colon_or_comma_is_addressed(self) -> None:
        assert signs("Bob: try it again").addressed == "bob"
        assert signs("bob, try it again").addressed == "bob"
        assert signs("http://example.org is down").addressed == ""

    @pytest.mark.parametrize("text", ["is it so?", "你知道吗", "在哪里？"])
    def test_questions(self, text: str) -> None:
        assert signs(text).question

    def test_beginnings_that_go_on(self) -> None:
        assert signs("it works").continues
        assert signs("那门票呢").continues
        assert not signs("My printer is broken").continues

    def test_a_speaker_of_one_letter_cannot_be_called(self) -> None:
        assert signs("hello", "A").name == ""
        assert signs("hello", "Anna").name == "anna"

    def test_the_gist_is_where_the_words_lie(self) -> None:
        np.testing.assert_allclose(signs("the tea").gist, [1, 0])
        np.testing.assert_allclose(signs("nothing of it").gist, [0, 0])

    def test_replies_are_joined(self) -> None:
        replies = [signs("tea?", role="assistant", hours=1.0), signs("a car", role="assistant")]
        whole = joined(replies, lexicon())
        assert whole.question
        assert whole.hours == 1.0
        assert np.linalg.norm(whole.vector) == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(whole.gist, np.array([1, 2]) / np.sqrt(5), rtol=1e-5)


class TestTrace:
    def test_rows_are_the_mean_the_last_three_and_the_newest(self) -> None:
        texts = ["green tea", "black tea", "a tea pot", "tea leaves"]
        vectors = EMBEDDER.embed(texts)
        made = trace(*map(signs, texts))
        rows = made.traces.vectors[made.place]
        np.testing.assert_allclose(rows[KEPT : KEPT + 4], vectors)
        total, three = vectors.sum(axis=0), vectors[1:].sum(axis=0)
        np.testing.assert_allclose(rows[SUM], total / np.linalg.norm(total), atol=1e-6)
        np.testing.assert_allclose(rows[THREE], three / np.linalg.norm(three), atol=1e-6)

    @settings(deadline=None, max_examples=30)
    @given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=3)), max_size=120))
    def test_it_is_bounded(self, messages: list[tuple[str, str]]) -> None:
        made = trace(*(signs(f"{voice}: {text}", voice) for text, voice in messages))
        assert made.size == len(messages)
        assert made.kept <= NEWEST
        assert len(made.traces.sizes) == 1
        for known in (made.spoken, made.called):
            assert len(known) <= NAMES

    def test_a_copy_goes_on_alone(self) -> None:
        made = trace(signs("green tea"), signs("a pot"))
        copied = deepcopy(made)
        copied.add(signs("a cup"), 2)
        assert (copied.size, made.size) == (3, 2)
        features_of(signs("tea"), None, [made, copied], Scene(number=3))
        assert (copied.size, made.size) == (3, 2)
        assert made.traces is copied.traces

    def test_counts_of_words_saturate(self) -> None:
        made = trace(*[signs("tea")] * 300)
        assert made.traces.words[made.place, columns_of("tea")] == 255

    def test_a_place_that_is_given_back_is_blank(self) -> None:
        traces = Traces()
        first, second = (trace(signs("green tea", hours=2.0), traces=traces) for _ in range(2))
        assert first.place != second.place
        given_back = first.place
        del first
        third = TopicTrace(traces)
        assert third.place == given_back
        assert third.size == 0
        assert np.isnan(traces.hours[third.place])
        assert not traces.vectors[third.place].any()
        assert not traces.words[third.place].any()


class TestFeatures:
    def named(self, message: Signs, *traces: TopicTrace, scene: Scene) -> dict[str, np.ndarray]:
        found = features_of(message, None, traces, scene)
        return dict(zip(found.pair_names, found.pairs.T, strict=True))

    def test_the_topic_of_the_same_words_leads(self) -> None:
        tea, cars = trace(signs("green tea"), signs("a tea pot")), trace(signs("a red car"), at=2)
        found = self.named(signs("more tea"), tea, cars, scene=Scene(number=3))
        for name in ("most_lead", "telling_lead", "subject_all_lead"):
            assert found[name][0] > 0 > found[name][1]
        assert found["newest"].tolist() == [0, 1]

    def test_who_is_addressed_points_to_where_they_last_spoke(self) -> None:
        first = trace(signs("a tea pot", "anna"))
        second = trace(signs("a red car", "bob"), signs("and a blue one", "anna"), at=1)
        found = self.named(signs("anna: yes", "carl"), first, second, scene=Scene(number=3))
        assert found["addressed_in"].tolist() == [1, 1]
        assert found["addressed_latest"].tolist() == [0, 1]

    def test_without_names_and_times_their_features_are_zero(self) -> None:
        found = self.named(signs("tea"), trace(signs("car")), scene=Scene(number=1))
        for name in ("voice_in", "addressed_in", "named_in", "called_last", "minutes", "timed"):
            assert found[name].tolist() == [0]

    def test_a_reply_fills_its_features(self) -> None:
        tea = trace(signs("green tea"))
        message, reply = signs("how much is it", role="user"), signs("the tea", role="assistant")
        before = features_of(message, None, [tea], Scene(number=1))
        after = features_of(message, reply, [tea], Scene(number=1))
        at = after.pair_names.index("reply_telling")
        assert before.pairs[0, at] == 0 < after.pairs[0, at]

    @settings(deadline=None, max_examples=25)
    @given(
        st.lists(st.sampled_from(range(7)), min_size=1, max_size=30),
        st.sets(st.integers(0, 6), max_size=5),
    )
    def test_it_does_not_matter_where_topics_are_kept(
        self, order: list[int], closed: set[int]
    ) -> None:
        traces = Traces()
        apart: dict[int, TopicTrace] = {}
        shared: dict[int, TopicTrace] = {}
        texts = ("green tea", "a red car", "the tea is hot?", "bob: thanks", "a pot")
        for number, topic in enumerate(order):
            said = signs(texts[number % 5], "AB"[number % 2], hours=number if topic else None)
            apart.setdefault(topic, TopicTrace()).add(said, number)
            shared.setdefault(topic, TopicTrace(traces)).add(said, number)
        kept = [topic for topic in apart if topic not in closed] or [order[0]]
        message, reply = signs("more tea", "B", hours=40.0), signs("bob: a car", "A")
        scene = Scene(number=len(order))
        one = features_of(message, reply, [apart[topic] for topic in kept], scene)
        two = features_of(message, reply, [shared[topic] for topic in kept], scene)
        assert len({id(apart[topic].traces) for topic in kept}) == 1
        np.testing.assert_allclose(one.pairs, two.pairs, atol=1e-4)
        np.testing.assert_allclose(one.alone, two.alone, atol=1e-4)

    @given(st.lists(st.floats(-1, 1), min_size=1, max_size=9))
    def test_at_most_one_leads(self, values: list[float]) -> None:
        (leads,) = leads_of(np.array([values]))
        assert (leads > 0).sum() <= 1


class TestScene:
    def test_an_assistant_answers_and_a_user_does_not(self) -> None:
        scene = Scene()
        assert not scene.answers("assistant", "assistant")
        scene.heard(signs("hello", role="user"))
        assert scene.answers("assistant", "assistant")
        assert not scene.answers("user", "user")

    def test_between_two_who_take_turns_the_one_who_did_not_begin_answers(self) -> None:
        scene = Scene()
        for voice in "ABA":
            scene.heard(signs("hello", voice))
        assert scene.answers(None, "b")
        assert not scene.answers(None, "a")
        scene.heard(signs("hello", "B"))
        assert not scene.answers(None, "c")

    def test_two_who_just_came_may_each_be_on_a_matter_of_their_own(self) -> None:
        scene = Scene()
        for voice in "aab":
            scene.heard(signs("hello", voice))
            assert not scene.answers(None, "b")


def weights(features: tuple[tuple[str, ...], tuple[str, ...]] = (("gap",), ())) -> RejoinWeights:
    """Small weights with numbers that float16 holds."""

    def scorer(width: int) -> Scorer:
        ones = np.ones(width, dtype=np.float32)
        inner = np.full((2, width + 1, 3), 0.5, dtype=np.float32)
        line = np.full((2, width + 1), 0.25, dtype=np.float32)
        return Scorer(0 * ones, ones, inner, np.ones((2, 3), dtype=np.float32), line)

    pair, alone = features
    network = Network(pair, alone, scorer(len(pair) + len(alone)), scorer(len(alone)))
    return RejoinWeights("hashing", lexicon(), network)


class TestWeights:
    def test_what_is_saved_is_loaded(self, tmp_path: Path) -> None:
        path = tmp_path / "w.npz"
        save_weights(path, weights(), {"seed": 3})
        loaded = load_weights(path, embedder="hashing")
        np.testing.assert_allclose(loaded.lexicon.table, lexicon().table, atol=0.02)
        np.testing.assert_array_equal(loaded.lexicon.columns, lexicon().columns)
        np.testing.assert_array_equal(loaded.network.topic.inner, weights().network.topic.inner)
        assert json.loads(path.with_suffix(".json").read_text("utf-8"))["seed"] == 3

    def test_what_is_judged_is_what_is_loaded(self, tmp_path: Path) -> None:
        rounded = as_stored(weights())
        save_weights(tmp_path / "w.npz", rounded, {})
        loaded = load_weights(tmp_path / "w.npz")
        np.testing.assert_array_equal(loaded.lexicon.table, rounded.lexicon.table)
        np.testing.assert_array_equal(loaded.network.new.line, rounded.network.new.line)

    def test_another_embedder_is_refused(self, tmp_path: Path) -> None:
        save_weights(tmp_path / "w.npz", weights(), {})
        with pytest.raises(ConfigurationError, match="trained on vectors of 'hashing'"):
            load_weights(tmp_path / "w.npz", embedder="other")

    def test_another_version_of_the_features_is_refused(self, tmp_path: Path) -> None:
        save_weights(tmp_path / "w.npz", weights(), {})
        beside = tmp_path / "w.json"
        beside.write_text(json.dumps({**json.loads(beside.read_text()), "features": 0}))
        with pytest.raises(ConfigurationError, match="version 0 of the rejoining features"):
            load_weights(tmp_path / "w.npz")

    @pytest.mark.parametrize("name", ["w.npz", "w.json"])
    def test_a_broken_file_is_named(self, tmp_path: Path, name: str) -> None:
        save_weights(tmp_path / "w.npz", weights(), {})
        (tmp_path / name).write_text("{}")
        with pytest.raises(ConfigurationError, match=name):
            load_weights(tmp_path / "w.npz")

    def test_probabilities_add_up(self) -> None:
        tea, message = trace(signs("green tea")), signs("tea")
        found = features_of(message, None, [tea, tea], Scene(number=1))
        made = weights((found.pair_names, found.alone_names)).network.probabilities(found)
        assert made.shape == (3,)
        assert made.sum() == pytest.approx(1)

    def test_a_lexicon_without_words_is_fine(self) -> None:
        empty = replace(
            weights(), lexicon=Lexicon(np.zeros(0, np.int64), np.zeros((0, 2), np.float32))
        )
        assert empty.lexicon.gist(columns_of("tea")).tolist() == [0, 0]
