"""Which messages need something of what was said before."""

from __future__ import annotations

import numpy as np
import pytest

from topicloom.index.contrast import contrast
from topicloom.index.encoders import default_embedder, open_embedder
from topicloom.index.need import NeedExamples, load_need_examples
from topicloom.index.packed_examples import KINDS, load_examples, read_packed
from topicloom.prompts.loader import LANGUAGES, load_rows


@pytest.fixture(scope="module")
def examples() -> NeedExamples:
    found = load_need_examples(default_embedder())
    assert found is not None
    return found


def rate(examples: NeedExamples, text: str, best: float) -> float:
    (vector,) = default_embedder().embed([text])
    return examples.rate(vector, best)


@pytest.mark.parametrize(
    "text",
    [
        "ok", "Thank you, that is all for now!", "What is 31 times 12?", "Who wrote Emma?",
        "Translate \"see you\" into Spanish.", "谢谢，今天先到这儿。", "《三国演义》是谁写的？",
        "47加12等于多少？", "早上好呀！",
    ],
)  # fmt: skip
def test_small_talk_and_common_knowledge_need_nothing(examples: NeedExamples, text: str) -> None:
    assert rate(examples, text, 0.25) < 0.25


@pytest.mark.parametrize(
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


def test_an_encoder_that_cannot_tell_the_kinds_apart_leaves_nothing_out() -> None:
    hashing = open_embedder("hashing")
    found = load_need_examples(hashing)
    assert found is not None
    assert found.rate(hashing.embed(["ok"])[0], 0.1) == 1


def test_another_encoder_is_judged_by_its_own_distances() -> None:
    """Its cosines mean something else: how near a message of the talk is does not count."""
    rng = np.random.default_rng(3)
    idle, needing = (rng.normal(0, 0.2, (20, 8)) + np.eye(8)[axis] for axis in (0, 1))
    kinds = contrast(needing.astype(np.float32), idle.astype(np.float32))
    found = NeedExamples(kinds, fitted=False)
    assert found.rate(np.eye(8, dtype=np.float32)[1], 0.0) > 0.9
    assert found.rate(np.eye(8, dtype=np.float32)[0], 0.9) < found.rate(
        np.eye(8, dtype=np.float32)[1], 0.0
    )


def test_no_example_stands_twice() -> None:
    rows = [
        row.casefold()
        for kind in KINDS
        for language in LANGUAGES
        for row in load_rows(f"cues/{kind}_{language}")
    ]
    assert len(rows) == len(set(rows))
    assert len(rows) > 400


def test_the_vectors_that_ship_are_those_of_the_lists() -> None:
    texts, embedder = load_examples(), default_embedder()
    packed = read_packed(embedder.fingerprint, texts)
    assert packed is not None, "run python scripts/pack_examples.py"
    for kind, rows in packed.items():
        cosines = (rows[::40] * embedder.embed(texts[kind][::40])).sum(axis=1)
        assert len(rows) == len(texts[kind])
        assert cosines.min() > 0.999


def test_vectors_of_other_texts_or_of_another_encoder_are_not_taken() -> None:
    texts, fingerprint = load_examples(), default_embedder().fingerprint
    assert read_packed(f"{fingerprint}x", texts) is None
    assert read_packed(fingerprint, {**texts, "idle": [*texts["idle"], "Bye."]}) is None
