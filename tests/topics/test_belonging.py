"""The model of belonging: which rounds are one run, and how likely runs are of one topic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topicloom.search.embedder import unit_rows
from topicloom.search.encoders import default_embedder
from topicloom.search.hashing import HashingEmbedder
from topicloom.search.message_columns import (
    NO_TOPIC,
    Codes,
    VectorRows,
    join_rows,
    read_rounds,
)
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import StoredMessage
from topicloom.topics.belonging import compare_pairs, rate_rounds
from topicloom.topics.runs import SHRINK, Runs, cut_runs, find_sittings

KITCHEN = (
    "We redo the kitchen: oak fronts or white ones for the cupboards?",
    "The kitchen counter should be of stone, the cupboards of oak.",
    "The fridge of the kitchen has to fit under the oak cupboards.",
)
LISBON = (
    "We want to fly to Lisbon in May, are there cheap flights?",
    "A hotel in Lisbon near the river would be nice for the flights in May.",
    "The flights to Lisbon got cheaper, and the hotel has a room.",
)


def said(
    texts: Sequence[str], times: Sequence[str] = (), speaker: str | None = None
) -> list[Round]:
    """A round a text, a minute apart if nothing else is given."""
    known = times or [f"2026-03-02T10:{n:02d}:00" for n in range(len(texts))]
    pairs = zip(texts, known, strict=True)
    return group_rounds(
        StoredMessage(seq=n, role="user", text=text, time=time, speaker=speaker)
        for n, (text, time) in enumerate(pairs, 1)
    )


def runs_of(rounds: Sequence[Round], continues: Sequence[float]) -> Runs:
    words, voices = Codes(), Codes()
    columns = read_rounds(rounds, continues, HashingEmbedder(64), words, voices)
    return cut_runs(columns, words, voices)


def test_runs_of_one_matter_are_likelier_together_than_others() -> None:
    texts = [t for pair in zip(KITCHEN, LISBON, strict=True) for t in pair]
    affinities = rate_rounds(said(texts), [-3.0] * 6, default_embedder())
    assert affinities.run.tolist() == list(range(6))
    same = np.array([[(a - b) % 2 == 0 and a != b for b in range(6)] for a in range(6)])
    other = np.array([[(a - b) % 2 == 1 for b in range(6)] for a in range(6)])
    assert affinities.among[same].min() > affinities.among[other].max()


def test_a_run_ends_where_the_detector_sees_a_topic_begin() -> None:
    runs = runs_of(said(KITCHEN + LISBON), [-3.0, 3.0, 3.0, -3.0, 3.0, 3.0])
    assert runs.first.tolist() == [1, 4]
    assert runs.rounds.tolist() == [3, 3]
    assert runs.follows[1] == -3.0


def test_a_run_ends_after_a_pause_that_is_longer_than_usual() -> None:
    times = [f"2026-03-{d:02d}T{h}:00:00" for d in (2, 3, 9) for h in ("09", "10", "11")]
    runs = runs_of(said(["word"] * 9, times), [3.0] * 9)
    assert runs.first.tolist() == [1, 4, 7]
    assert runs.sits.tolist() == [False, True, True]
    assert np.isnan(runs.follows).all()


def test_what_is_usual_is_seen_from_the_pauses_and_not_set() -> None:
    minutes = said(
        ["word"] * 6, [f"2026-03-02T{h}:00:00" for h in ("09", "10", "11", "12", "13", "14")]
    )
    columns = read_rounds(minutes, [3.0] * 6, HashingEmbedder(16), Codes(), Codes())
    assert find_sittings(columns).tolist() == [True] + [False] * 5
    without = said(["word"] * 3, [""] * 3)
    columns = read_rounds(without, [3.0] * 3, HashingEmbedder(16), Codes(), Codes())
    assert find_sittings(columns).tolist() == [True, False, False]


def test_in_short_sittings_a_topic_is_likelier_to_go_on() -> None:
    short = [f"2026-03-{d:02d}T{h}:00:00" for d in range(1, 7) for h in ("09", "10", "11")]
    long = [f"2026-03-02T{9 + n // 60:02d}:{n % 60:02d}:00" for n in range(18)]
    assert len(runs_of(said(["word"] * 18, short), [-1.0] * 18)) == 6
    assert len(runs_of(said(["word"] * 18, long), [-1.0] * 18)) == 18


def test_where_many_speak_those_who_speak_and_are_named_tell_topics() -> None:
    lines = [
        ("ann", "bob: try again"),
        ("bob", "ann: done"),
        ("cy", "dee: hm"),
        ("dee", "cy: well"),
    ]
    rounds = group_rounds(
        StoredMessage(seq=n, role="user", text=text, time="", speaker=speaker)
        for n, (speaker, text) in enumerate(lines * 3, 1)
    )
    runs = runs_of(rounds, [0.0] * 12)
    assert len(runs) == 12
    speakers = compare_pairs(runs, np.arange(12)).speakers
    assert speakers[0, 5] > 2 * speakers[0, 6] >= 0
    two = runs_of(said(["word"] * 4, speaker="ann"), [3.0] * 4)
    assert two.voices.shape[1] == 0


def test_likelihoods_are_the_same_by_an_encoder_of_another_scale() -> None:
    class Squeezed(HashingEmbedder):
        """All vectors lie close together, as those of some encoders do."""

        def embed(self, texts: Sequence[str]) -> np.ndarray:
            rows = super().embed(texts) * 0.3
            rows[:, 0] += 2
            return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    texts = [t for n in range(10) for t in (f"{KITCHEN[n % 3]} {n}", f"{LISBON[n % 3]} {n}")]
    plain = rate_rounds(said(texts), [-3.0] * 20, HashingEmbedder(64)).among
    squeezed = rate_rounds(said(texts), [-3.0] * 20, Squeezed(64)).among
    assert np.corrcoef(plain.ravel(), squeezed.ravel())[0, 1] > 0.9


def test_one_round_alone_and_none_are_rated_too() -> None:
    one = rate_rounds(said(KITCHEN[:1]), [0.0], HashingEmbedder(16))
    assert one.among.shape == (1, 1)
    assert np.isfinite(one.among).all()
    assert rate_rounds([], [], HashingEmbedder(16)).among.shape == (0, 0)
    assert one.best() == {}
    silent = rate_rounds(said(["…", "…"]), [-3.0] * 2, HashingEmbedder(16))
    assert np.isfinite(silent.among).all()


def test_runs_of_rounds_in_no_topic_have_no_topic() -> None:
    assert set(runs_of(said(KITCHEN), [3.0] * 3).topic.tolist()) == {NO_TOPIC}


def test_joined_rows_are_those_of_their_parts_in_order() -> None:
    first = np.arange(12, dtype=np.float32).reshape(6, 2)
    second = -np.arange(4, dtype=np.float32).reshape(2, 2)
    rows = join_rows(
        [VectorRows((first,), np.array([4, 0, 2])), VectorRows((second,), np.arange(2))]
    )
    expected = np.concatenate([first[[4, 0, 2]], second])
    assert (rows.read(slice(0, 5)) == expected).all()
    assert (rows.read(slice(2, 4)) == expected[2:4]).all()


def test_the_vectors_of_a_long_conversation_are_those_of_a_short_one() -> None:
    """They are read some hundred at a time; runs of 7 messages do not end where that does."""
    texts = [f"{text} {n}" for n in range(240) for text in (*KITCHEN, *LISBON, "And now?")]
    continues = [-3.0 if n % 7 == 0 else 3.0 for n in range(len(texts))]
    runs = runs_of(said(texts), continues)
    assert len(runs) == 240
    said_vectors = HashingEmbedder(64).embed([f"user: {text}" for text in texts])
    sums = unit_rows(said_vectors.reshape(240, 7, 64).sum(axis=1))
    expected = unit_rows(sums - sums.sum(axis=0) / (240 + SHRINK))
    assert np.allclose(runs.vectors, expected, atol=1e-5)
