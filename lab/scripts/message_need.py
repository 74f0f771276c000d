"""Fit weights of `topicloom.search.need`, and judge those and the ones that ship, kind by kind.

    python lab/scripts/message_need.py KIND=FILE ... [--questions N] [--conversations N]
        [--encoder NAME [--fixed COSINE]]

Positive are the questions of each file, as far as they have evidence, and the examples that need
something; negative are the examples that need nothing, and the messages of `near_messages.json`,
which were written for conversations of these files: they have words of theirs and need nothing.
Each example is compared with the others alone. Every kind counts the same, and so do its four sorts
of messages, but for the questions: what is wrongly taken to need nothing is forgotten, so they
count eight times. A question that is a turn of the conversation (`asked_at`) is asked in its place,
where the newest messages before it are in view and not looked for.

With `--encoder` one is judged that the weights are not fitted to: `english` or `chinese`, a part of
the one that ships, alone; or `raised`, the English one with cosines of .7 to 1, such as many
encoders have. `--fixed` shows what reading its cosines changes.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from topicloom import Embedder, Settings, default_embedder
from topicloom.lab import (
    BGE_CHINESE,
    MINILM,
    BundledEmbedder,
    NeedExamples,
    Vectors,
    dot_products,
    judge_need,
    load_examples,
    load_need_examples,
    nearness,
    telling_words,
)
from topicloom_app.recordings.conversations import Conversation
from topicloom_lab.comparison.config import load_source
from topicloom_lab.strategies.base import line_of

_STAGES = 0.4, 1.0
"""Shares of a conversation that had been said when an example is put to it."""
_NEAR: dict[str, list[str]] = json.loads(
    Path(__file__).with_name("near_messages.json").read_text("utf-8")
)
"""Messages that need nothing, by the id of their conversation, or by the kind of all of them."""
_ASKED = 8
"""Weight of the questions."""
_IN_VIEW = 20
"""Messages in view where a question is asked in its place."""
_LEAST = Settings.model_fields["recall_least"].default
_NEEDS_NOTHING = "near", "idle"
_EXAMPLES = 80
"""Examples of a kind that are put to it at each of these."""


class Case(NamedTuple):
    """A message that was put to a conversation."""

    kind: str
    sort: str
    """`asked`, `needing`, `near` or `idle`."""
    best: float
    """Cosine of the nearest message."""
    lean: float
    """How much nearer it is to the examples that need something."""
    text: str


class RaisedEmbedder:
    """`Embedder` whose cosines are those of another one, times .3 and .7 more."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.dimension = embedder.dimension + 1
        self.fingerprint = f"raised({embedder.fingerprint})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = self._embedder.embed(texts)
        last = np.full((len(rows), 1), 0.7**0.5, dtype=np.float32)
        raised = np.concatenate([rows * np.float32(0.3**0.5), last], axis=1)
        raised[~rows.any(axis=1).astype(bool)] = 0
        return raised


def open_encoder(name: str) -> Embedder:
    """An encoder by the name that `--encoder` has for it."""
    if name == "default":
        return default_embedder()
    bundled = BundledEmbedder(BGE_CHINESE if name == "chinese" else MINILM)
    return RaisedEmbedder(bundled) if name == "raised" else bundled


def measure(
    kind: str,
    conversation: Conversation,
    examples: NeedExamples,
    texts: Mapping[str, Sequence[str]],
    questions: int,
    embedder: Embedder,
) -> Iterator[Case]:
    """The cases of a conversation."""
    rng = random.Random(conversation.id)
    said = embedder.embed([line_of(m) for m in conversation.messages])
    places = {m.id: place for place, m in enumerate(conversation.messages)}
    asked = [q for q in conversation.questions if q.evidence]
    for question in rng.sample(asked, min(questions, len(asked))):
        (vector,) = embedder.embed([question.question])
        lean = examples.kinds.measure_lean(vector)
        end = places[question.asked_at] - _IN_VIEW if question.asked_at else len(said)
        best = float(dot_products(said[: max(5, end)], vector).max())
        yield Case(kind, "asked", best, lean, question.question)
    near = _NEAR.get(conversation.id) or _NEAR.get(kind, [])
    for text, vector in zip(near, embedder.embed(near), strict=True):
        lean = examples.kinds.measure_lean(vector)
        yield Case(kind, "near", float(dot_products(said, vector).max()), lean, text)
    for share in _STAGES:
        known = said[: max(20, int(share * len(said)))]
        for sort, own, other, sign in (
            ("needing", examples.kinds.first, examples.kinds.second, 1),
            ("idle", examples.kinds.second, examples.kinds.first, -1),
        ):
            for place in rng.sample(range(len(own)), _EXAMPLES):
                lean = sign * lean_of(own[place], np.delete(own, place, axis=0), other)
                best = float(dot_products(known, own[place]).max())
                yield Case(kind, sort, best, lean, texts[sort][place])


def lean_of(message: Vectors, own: Vectors, other: Vectors) -> float:
    """How much nearer a message [d] is to some vectors [n, d] than to others [m, d]."""
    near, far = (nearness(dot_products(rows, message)) for rows in (own, other))
    return float(near - far)


def features_of(case: Case) -> tuple[float, float, float]:
    """What the model is told of a case."""
    return case.best, case.lean, math.log(1 + len(telling_words(case.text)))


def fit(cases: Sequence[Case]) -> LogisticRegression:
    """The model of some cases."""
    sorts = [(c.kind, c.sort) for c in cases]
    share = {s: (_ASKED if s[1] == "asked" else 1) / sorts.count(s) for s in set(sorts)}
    weights = np.array([share[s] for s in sorts])
    features = np.array(list(map(features_of, cases)))
    model = LogisticRegression(C=1e6)
    model.fit(
        features,
        [c.sort not in _NEEDS_NOTHING for c in cases],
        weights * len(cases) / weights.sum(),
    )
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", metavar="KIND=FILE")
    parser.add_argument("--questions", type=int, default=40, help="of a conversation, at most")
    parser.add_argument("--conversations", type=int, default=5, help="of a file, at most")
    encoders = "default", "english", "chinese", "raised"
    parser.add_argument("--encoder", choices=encoders, default="default")
    parser.add_argument("--fixed", type=float, help="a cosine for all, in the place of their own")
    given = parser.parse_args()
    embedder = open_encoder(given.encoder)
    examples = load_need_examples(embedder, "中文" if given.encoder == "chinese" else "English")
    if examples is None:
        raise SystemExit("the encoder has no vectors")
    texts, kinds = load_examples(), examples.kinds
    if given.encoder == "chinese":  # the others stand before these
        counts = {"needing": len(kinds.first), "idle": len(kinds.second)}
        texts = {sort: texts[sort][-count:] for sort, count in counts.items()}
    cases: list[Case] = []
    for entry in given.files:
        kind, _, file = entry.partition("=")
        for conversation in islice(load_source(file), given.conversations):
            cases += measure(kind, conversation, examples, texts, given.questions, embedder)
    model = fit(cases)
    (best, lean, words), (bias,) = model.coef_[0], model.intercept_
    middle, half = kinds.middle, kinds.half
    if not half:
        raise SystemExit("the encoder cannot tell the two kinds apart")
    fitted = best, lean * half, bias + lean * middle, words
    print("fitted:", *(f"{weight:.1f}" for weight in fitted), f"of {len(cases):,} cases")
    print("kind        AUC   under .05: questions, needing   over .05: near, idle")
    for kind in dict.fromkeys(c.kind for c in cases):
        judged = [c for c in cases if c.kind == kind]
        without = fit([c for c in cases if c.kind != kind])
        features = list(map(features_of, judged))
        show(f"{kind}, left out", judged, without.predict_proba(features)[:, 1])
        near = [examples.read_cosine(c.best) for c in judged]
        if given.fixed is not None:
            near = [given.fixed] * len(judged)
        places = [(c.lean - middle) / half for c in judged]
        shipped = np.array(list(map(judge_need, near, places, [c.text for c in judged])))
        show(f"{kind}, as shipped", judged, shipped)


def show(name: str, judged: Sequence[Case], scores: NDArray[np.float64]) -> None:
    """Print what the threshold gets wrong."""
    sorts = np.array([c.sort for c in judged])
    auc = roc_auc_score(~np.isin(sorts, _NEEDS_NOTHING), scores)
    under = [f"{(scores[sorts == sort] < _LEAST).mean():.3f}" for sort in ("asked", "needing")]
    over = [f"{(scores[sorts == sort] >= _LEAST).mean():.3f}" for sort in _NEEDS_NOTHING]
    print(f"{name:22}  {auc:.3f}", *under, *over, sep="  ")


if __name__ == "__main__":
    main()
