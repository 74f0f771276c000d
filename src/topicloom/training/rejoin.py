"""Training the rejoiner: which open topic a block belongs to, or that it opens another."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from topicloom.evaluation.threads import (
    By,
    ThreadScores,
    thread_scores,
    topics_of,
)
from topicloom.index.embedder import Embedder
from topicloom.index.encoders import default_embedder
from topicloom.perception.rejoin.lexicon import Lexicon
from topicloom.perception.rejoin.network import Network, Scorer
from topicloom.perception.rejoin.rejoiner import Rejoiner
from topicloom.perception.rejoin.threads import Threads
from topicloom.perception.rejoin.weights import RejoinWeights, as_stored, save_weights
from topicloom.training.rejoin_corpus import (
    Dialogue,
    RejoinCorpus,
    Report,
    Talk,
    read_rejoin_corpus,
    telling,
)
from topicloom.training.rejoin_interleave import interleaved
from topicloom.training.rejoin_lexicon import LexiconRecipe, learn_lexicon
from topicloom.training.rejoin_network import NetworkRecipe, fit_network
from topicloom.training.rejoin_walk import Example, walk

_SHORTEST = 4
"""Messages of the shortest topic of a conversation that words are learned from."""


@dataclass(frozen=True, slots=True)
class RejoinRecipe:
    """How the rejoiner is trained; one recipe serves all files."""

    lexicon: LexiconRecipe = field(default_factory=LexiconRecipe)
    network: NetworkRecipe = field(default_factory=NetworkRecipe)
    parts: int = 3
    """Parts of the data: what a net learns from is read with words learned from other parts."""
    made: int = 40
    """Conversations made of whole dialogues, for each part."""


@dataclass(frozen=True, slots=True)
class Figures:
    """How well it does on what it was not trained on, by file; means over conversations."""

    out_of_fold: dict[str, dict[str, float]]
    """Other conversations of the same file were trained on."""
    leave_kind_out: dict[str, dict[str, float]]
    """None of the kind was: neither the file nor others of its kind."""


def train_rejoin(
    folder: Path,
    out: Path,
    *,
    seed: int = 0,
    report: Report = lambda line: None,
    folds: int = 3,
    embedder: Embedder | None = None,
    recipe: RejoinRecipe | None = None,
) -> Figures:
    """Train on a folder of data, judge on what was left out, and write the weights.

    Args:
        folder: With `threads/*.jsonl[.xz]`, and perhaps `segmentation/*.jsonl`, in it.
        out: `.npz` to write; a `.json` beside it says what it is.
        seed: Of all that is drawn.
        report: Takes a line about how far things are.
        folds: Parts to judge by; each is a training of its own, and so is each kind left out. 0
            trains without judging.
        embedder: Makes vectors; None for the one that ships.
        recipe: How; None for the one that ships.

    Raises:
        ConfigurationError: If there is nothing to learn from.
        NotAConversationError: If a file holds something else.
    """
    embedder = embedder or default_embedder()
    recipe = recipe or RejoinRecipe()
    corpus = read_rejoin_corpus(folder, embedder, report)
    figures = Figures(
        _judged(corpus, _by_fold(corpus, folds), embedder, recipe, seed, report),
        _judged(corpus, _by_kind(corpus) if folds else [], embedder, recipe, seed, report),
    )
    weights = learn(corpus, (), embedder.fingerprint, recipe, seed, report)
    save_weights(out, weights, _account(corpus, figures, recipe, seed))
    return figures


def learn(
    corpus: RejoinCorpus,
    left_out: Sequence[Talk],
    fingerprint: str,
    recipe: RejoinRecipe,
    seed: int,
    report: Report,
) -> RejoinWeights:
    """Learn from everything but some conversations, and the dialogues that they hold."""
    closed = frozenset().union(*(talk.texts for talk in left_out))
    without = {id(talk) for talk in left_out}
    talks = [talk for talk in corpus.talks if id(talk) not in without]
    dialogues = [dialogue for dialogue in corpus.dialogues if not dialogue.shares(closed)]
    subjects = dialogues + [d for talk in talks for d in _subjects(talk) if not d.shares(closed)]
    parts = _parts(talks, dialogues, recipe, seed)
    readers: list[Lexicon] = []
    for part in parts:
        texts = frozenset().union(*(talk.texts for talk in part))
        others = [subject for subject in subjects if not subject.shares(texts)]
        readers.append(learn_lexicon(others, recipe.lexicon, seed=seed))
    report(f"learned words for {len(parts)} parts, without {len(left_out)} conversations")
    network: Network | None = None
    examples: list[Example] = []
    for number, epochs in enumerate(recipe.network.epochs):
        for part, lexicon in zip(parts, readers, strict=True):
            rejoiner = Rejoiner(RejoinWeights(fingerprint, lexicon, network or _nothing()))
            for talk in part:
                skipped = _shared(talk, left_out)
                examples += walk(talk, rejoiner, forced=network is None, skipped=skipped)
        network = fit_network(examples, recipe.network, seed=seed, epochs=epochs)
        report(f"round {number}: learned from {len(examples)} decisions")
    lexicon = learn_lexicon(subjects, recipe.lexicon, seed=seed)
    return as_stored(RejoinWeights(fingerprint, lexicon, network or _nothing()))


def _parts(
    talks: Sequence[Talk], dialogues: Sequence[Dialogue], recipe: RejoinRecipe, seed: int
) -> list[list[Talk]]:
    """What nets learn from, in parts, with conversations made of the dialogues of each part."""
    parts = [list(talks[part :: recipe.parts]) for part in range(recipe.parts)]
    for number, part in enumerate(parts):
        own = [dialogue for dialogue in dialogues if dialogue.key % recipe.parts == number]
        part += interleaved(own, recipe.made, seed * 1_000 + number)
    return [part for part in parts if part]


def _subjects(talk: Talk) -> list[Dialogue]:
    """The topics of a conversation, as dialogues."""
    members: defaultdict[str, list[int]] = defaultdict(list)
    for place, thread in enumerate(talk.gold):
        if thread is not None:
            members[thread].append(place)
    return [
        Dialogue(talk.file, tuple(talk.said[i].text for i in places), talk.vectors[places])
        for places in members.values()
        if len(places) >= _SHORTEST
    ]


def _shared(talk: Talk, left_out: Sequence[Talk]) -> set[str | None]:
    """Topics that a conversation has in common with those left out: by name, and half its text."""
    texts: defaultdict[str | None, set[str]] = defaultdict(set)
    for other in left_out:
        for said, thread in zip(other.said, other.gold, strict=True):
            texts[thread].add(said.text)
    own: defaultdict[str | None, set[str]] = defaultdict(set)
    for said, thread in zip(talk.said, talk.gold, strict=True):
        own[thread].add(said.text)
    return {
        thread
        for thread, said in own.items()
        if thread in texts and 2 * len(telling(list(said & texts[thread]))) > len(said)
    }


def _judged(
    corpus: RejoinCorpus,
    splits: Sequence[Sequence[Talk]],
    embedder: Embedder,
    recipe: RejoinRecipe,
    seed: int,
    report: Report,
) -> dict[str, dict[str, float]]:
    """Mean scores by file, each conversation judged by a rejoiner that never saw it."""
    found: defaultdict[str, list[dict[str, float]]] = defaultdict(list)
    for split in splits:
        weights = learn(corpus, split, embedder.fingerprint, recipe, seed, report)
        for talk in (talk for talk in split if talk.judged):
            found[talk.file].append(_scores(talk, Rejoiner(weights)))
        report(f"judged so far: {_means(found)}")
    return _means(found)


def _scores(talk: Talk, rejoiner: Rejoiner) -> dict[str, float]:
    threads = Threads(rejoiner)
    placed = [threads.place(*pair) for pair in zip(talk.said, talk.vectors, strict=True)]
    labelled = [i for i, thread in enumerate(talk.gold) if thread is not None]

    def judged(by: By) -> ThreadScores:
        topics = topics_of(placed, by)
        return thread_scores([talk.gold[i] for i in labelled], [topics[i] for i in labelled])

    online = judged("message")
    return {
        "ari": online.ari,
        "one_to_one": online.one_to_one,
        "vi": online.vi,
        "exact": online.exact,
        "ari_by_block": judged("block").ari,
    }


def _means(found: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    return {
        file: {name: round(float(np.mean([s[name] for s in scores])), 3) for name in scores[0]}
        for file, scores in sorted(found.items())
    }


def _by_fold(corpus: RejoinCorpus, folds: int) -> list[list[Talk]]:
    """Every file's conversations dealt out in turn."""
    found: list[list[Talk]] = [[] for _ in range(folds)]
    for split in _by_file(corpus):
        for place, talk in enumerate(split):
            if len(split) > 1 and folds:
                found[place % folds].append(talk)
    return [split for split in found if split]


def _by_file(corpus: RejoinCorpus) -> list[list[Talk]]:
    files = sorted({talk.file for talk in corpus.talks if talk.judged})
    return [[talk for talk in corpus.talks if talk.file == file] for file in files]


def _by_kind(corpus: RejoinCorpus) -> list[list[Talk]]:
    """The conversations of each kind, those only for training too."""
    kinds = sorted({talk.kind for talk in corpus.talks})
    return [[talk for talk in corpus.talks if talk.kind == kind] for kind in kinds]


def _nothing() -> Network:
    """A net before it has learned anything."""
    dimensions = (1, 1, 3, 2, 2)
    empty = Scorer(*(np.zeros((0,) * count, dtype=np.float32) for count in dimensions))
    return Network((), (), empty, empty)


def _account(
    corpus: RejoinCorpus, figures: Figures, recipe: RejoinRecipe, seed: int
) -> dict[str, Any]:
    counts: defaultdict[str, int] = defaultdict(int)
    for talk in corpus.talks:
        counts[talk.file] += 1
    return {
        "seed": seed,
        "recipe": asdict(recipe),
        "conversations": dict(counts) | {"made": recipe.parts * recipe.made},
        "figures": asdict(figures),
        "versions": {"python": platform.python_version(), "numpy": np.__version__},
        "data": corpus.hashes,
    }
