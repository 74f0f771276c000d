"""Training the rejoiner on a small corpus made here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from topicloom.errors import ConfigurationError
from topicloom.index.hashing import HashingEmbedder
from topicloom.perception.rejoin import Rejoiner
from topicloom.perception.rejoin.lexicon import columns_of
from topicloom.perception.rejoin.weights import load_weights
from topicloom.training.rejoin import Figures, RejoinRecipe, train_rejoin
from topicloom.training.rejoin_corpus import Dialogue, Talk, read_rejoin_corpus
from topicloom.training.rejoin_interleave import interleaved
from topicloom.training.rejoin_lexicon import LexiconRecipe, learn_lexicon
from topicloom.training.rejoin_network import NetworkRecipe
from topicloom.training.rejoin_walk import walk

EMBEDDER = HashingEmbedder(64)
RECIPE = RejoinRecipe(
    lexicon=LexiconRecipe(words=40, dimension=4, epochs=2),
    network=NetworkRecipe(nets=2, hidden=4, epochs=(20, 20)),
    parts=2,
    made=3,
)
SUBJECTS = {
    "tea": ("leaf", "pot", "brew", "cup"),
    "car": ("tyre", "road", "fuel", "brake"),
    "sea": ("wave", "boat", "sail", "tide"),
    "law": ("court", "judge", "claim", "trial"),
    "oak": ("bark", "wood", "root", "acorn"),
}


def turns(subject: str, count: int, rng: np.random.Generator) -> list[str]:
    """Turns about a subject, in words of its own."""
    return [f"{subject} {' '.join(rng.choice(SUBJECTS[subject], size=3))}" for _ in range(count)]


def conversation(number: int, rng: np.random.Generator) -> dict[str, object]:
    """Rounds about the subjects in any order."""
    messages: list[dict[str, object]] = []
    for _ in range(12):
        subject = str(rng.choice(list(SUBJECTS)))
        for speaker, text in zip(("user", "assistant"), turns(subject, 2, rng), strict=True):
            place = f"{len(messages)}"
            messages.append(
                {"id": place, "time": None, "speaker": speaker, "text": text, "thread": subject}
            )
    return {"id": f"{number}", "lang": "en", "messages": messages}


def dialogue(number: int, rng: np.random.Generator) -> dict[str, object]:
    """One subject from beginning to end."""
    texts = turns(str(rng.choice(list(SUBJECTS))), 6, rng)
    said = [{"role": "user", "text": f"{text} {number}"} for text in texts]
    return {"id": f"{number}", "lang": "en", "utterances": said, "segments": [6]}


def write(path: Path, rows: Sequence[object]) -> None:
    """Write a file of JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of data."""
    made = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(5)
    write(made / "threads" / "small_dev.jsonl", [conversation(i, rng) for i in range(4)])
    write(made / "segmentation" / "small_dev.jsonl", [dialogue(i, rng) for i in range(30)])
    return made


@pytest.fixture(scope="module")
def trained(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Figures]:
    """Weights, and what they were judged."""
    out = tmp_path_factory.mktemp("out") / "rejoin.npz"
    figures = train_rejoin(folder, out, seed=1, folds=2, embedder=EMBEDDER, recipe=RECIPE)
    return out, figures


class TestTraining:
    def test_it_is_deterministic(
        self, folder: Path, trained: tuple[Path, Figures], tmp_path: Path
    ) -> None:
        again = tmp_path / "again.npz"
        train_rejoin(folder, again, seed=1, folds=0, embedder=EMBEDDER, recipe=RECIPE)
        with np.load(again) as second, np.load(trained[0]) as first:
            assert first.files == second.files
            for name in first.files:
                np.testing.assert_array_equal(first[name], second[name])

    def test_subjects_are_told_apart_better_than_by_chance(
        self, trained: tuple[Path, Figures]
    ) -> None:
        assert trained[1].out_of_fold["small_dev"]["ari"] > 0.2  # chance is 0
        assert set(trained[1].leave_kind_out["small_dev"]) == {
            "ari", "one_to_one", "vi", "exact", "ari_by_block",
        }  # fmt: skip

    def test_the_account_names_data_and_seed(self, trained: tuple[Path, Figures]) -> None:
        account = json.loads(trained[0].with_suffix(".json").read_text("utf-8"))
        assert account["seed"] == 1
        assert len(account["data"]["small_dev.jsonl"]) == 64
        assert account["embedder"] == EMBEDDER.fingerprint
        load_weights(trained[0], embedder=EMBEDDER.fingerprint)

    def test_a_folder_without_conversations_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="holds no threads"):
            train_rejoin(tmp_path, tmp_path / "w.npz", embedder=EMBEDDER)


class TestParts:
    def test_files_of_one_kind_are_left_out_together(self) -> None:
        vectors = EMBEDDER.embed([])
        talks = [Talk(file, "0", (), (), vectors) for file in ("irc_dev", "irc_train", "zh_dev")]
        assert [talk.kind for talk in talks] == ["irc", "irc", "zh"]
        assert [talk.judged for talk in talks] == [True, False, True]

    def test_made_conversations_hold_each_dialogue_once_in_order(self) -> None:
        rng = np.random.default_rng(0)
        texts = [tuple(turns("tea", 5 + i % 3, rng)) for i in range(20)]
        dialogues = [Dialogue("d", t, EMBEDDER.embed(t)) for t in texts]
        for talk in interleaved(dialogues, 6, seed=2):
            said: dict[str | None, list[str]] = {}
            for message, thread in zip(talk.said, talk.gold, strict=True):
                said.setdefault(thread, []).append(message.text)
            known = Counter(texts)
            assert all(known[tuple(found)] for found in said.values())

    def test_words_of_one_subject_lie_together(self) -> None:
        rng = np.random.default_rng(0)
        dialogues = []
        for i in range(30):
            texts = tuple(turns(list(SUBJECTS)[i % 5], 6, rng))
            dialogues.append(Dialogue("d", texts, EMBEDDER.embed(texts)))
        lexicon = learn_lexicon(dialogues, LexiconRecipe(words=40, dimension=4, epochs=2))
        gists = {word: lexicon.gist(columns_of(word)) for word in ("brew", "cup", "fuel")}
        assert gists["brew"] @ gists["cup"] > gists["brew"] @ gists["fuel"] + 0.3

    def test_a_forced_walk_does_what_is_right(
        self, folder: Path, trained: tuple[Path, Figures]
    ) -> None:
        corpus = read_rejoin_corpus(folder, EMBEDDER, lambda line: None)
        talk = corpus.talks[0]
        rejoiner = Rejoiner(load_weights(trained[0]))
        examples = walk(talk, rejoiner, forced=True)
        opened = sum(example.target == len(example.features.pairs) for example in examples)
        # The first topic opens without a decision; the reply decides once more on each of the two.
        assert opened == 2 * (len(set(talk.gold)) - 1)
        skipped = walk(talk, rejoiner, forced=True, skipped={"tea"})
        assert len(skipped) < len(examples)
