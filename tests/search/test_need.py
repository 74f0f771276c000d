"""Which messages need something of what was said before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tables import each_row

from topicloom import Settings
from topicloom.prompts.loader import LANGUAGES, load_rows
from topicloom.search.bundled import MINILM, BundledEmbedder
from topicloom.search.contrast import contrast
from topicloom.search.embedder import Vectors, dot_products
from topicloom.search.encoders import default_embedder, open_embedder
from topicloom.search.need import NeedExamples, load_need_examples
from topicloom.search.packed_examples import KINDS, load_examples, read_packed

LEAST = Settings.model_fields["recall_least"].default
"""Probability from which a message needs something."""


@pytest.fixture(scope="module")
def examples() -> NeedExamples:
    found = load_need_examples(default_embedder(), "ok")
    assert found is not None
    return found


def rate(examples: NeedExamples, text: str, best: float) -> float:
    (vector,) = default_embedder().embed([text])
    return examples.rate(text, vector, best)


@each_row(
    "text",
    [
        "ok", "Thank you, that is all for now!", "What is 31 times 12?", "Who wrote Emma?",
        "Translate \"see you\" into Spanish.", "谢谢，今天先到这儿。", "《三国演义》是谁写的？",
        "47加12等于多少？", "早上好呀！",
    ],
)  # fmt: skip
def test_small_talk_and_common_knowledge_need_nothing(examples: NeedExamples, text: str) -> None:
    assert rate(examples, text, 0.25) < LEAST


@each_row(
    "text",
    [
        "What did the plumber say?", "And the other room?", "How much was it again?",
        "What can't my mother eat?", "Same as last time, please.", "那家店叫什么来着？",
        "她上次说了什么？", "跟上次一样。", "我女儿的生日是哪天？",
    ],
)  # fmt: skip
def test_what_refers_to_earlier_talk_needs_it(examples: NeedExamples, text: str) -> None:
    assert rate(examples, text, 0.25) > 0.6


def test_it_is_likelier_the_nearer_something_said_is(examples: NeedExamples) -> None:
    rates = [rate(examples, "The beans are in the ground.", best) for best in (0.1, 0.4, 0.7)]
    assert rates == sorted(rates)
    assert rates[0] < 0.25 < rates[2]


@pytest.mark.slow
def test_an_encoder_that_cannot_tell_the_kinds_apart_leaves_nothing_out() -> None:
    hashing = open_embedder("hashing")
    found = load_need_examples(hashing, "ok")
    assert found is not None
    assert found.rate("ok", hashing.embed(["ok"])[0], 0.1) == 1


class RaisedEmbedder:
    """`Embedder` with the cosines of the English one, which reads no Chinese, from .7 to 1."""

    dimension = 385
    fingerprint = "raised"

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = BundledEmbedder(MINILM).embed(texts)
        last = np.full((len(rows), 1), 0.7**0.5, dtype=np.float32)
        return np.concatenate([rows * np.float32(0.3**0.5), last], axis=1)


@pytest.mark.slow
def test_cosines_of_another_encoder_are_read_as_those_of_the_one_that_ships() -> None:
    raised, default = RaisedEmbedder(), default_embedder()
    said = "We sowed beans behind the shed in April.", "My sister flies to Oslo on Monday."
    for asked, needs in (("Which beans did I sow?", True), ("Thanks, good night!", False)):
        rated = []
        for embedder in (raised, default):
            found = load_need_examples(embedder, asked)
            assert found is not None
            vector, *rows = embedder.embed([asked, *said])
            rated.append(
                found.rate(asked, vector, float(dot_products(np.array(rows), vector).max()))
            )
        assert [rate >= LEAST for rate in rated] == [needs, needs], (asked, rated)
    ours = load_need_examples(default, "ok")
    assert ours is not None
    assert ours.read_cosine(0.4) == pytest.approx(0.4)


def test_an_encoder_that_has_one_distance_for_all_leaves_nothing_out() -> None:
    kinds = contrast(np.eye(40, dtype=np.float32)[:20], np.eye(40, dtype=np.float32)[20:])
    assert kinds.spread == 0
    assert NeedExamples(kinds, kinds).rate("ok", np.eye(40, dtype=np.float32)[0], 0.0) == 1


def test_no_example_stands_twice() -> None:
    rows = [
        row.casefold()
        for kind in KINDS
        for language in LANGUAGES
        for row in load_rows(f"cues/{kind}_{language}")
    ]
    assert len(rows) == len(set(rows))
    assert len(rows) > 400


@pytest.mark.slow
def test_the_vectors_that_ship_are_those_of_the_lists() -> None:
    texts, embedder = load_examples(), default_embedder()
    packed = read_packed(embedder.fingerprint, texts)
    assert packed is not None, "run: bin/generate"
    for kind, rows in packed.items():
        cosines = (rows[::40] * embedder.embed(texts[kind][::40])).sum(axis=1)
        assert len(rows) == len(texts[kind])
        assert cosines.min() > 0.999


def test_vectors_of_other_texts_or_of_another_encoder_are_not_taken() -> None:
    texts, fingerprint = load_examples(), default_embedder().fingerprint
    assert read_packed(f"{fingerprint}x", texts) is None
    assert read_packed(fingerprint, {**texts, "idle": [*texts["idle"], "Bye."]}) is None
