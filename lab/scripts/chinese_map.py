"""Fit the map that brings the Chinese encoder's vectors into the space of the English one.

    python -m scripts.build_chinese --plain plain.onnx
    python lab/scripts/chinese_map.py plain.onnx cmn.txt \\
        DATA/segmentation/{crosswoz,stitched_zh}_dev.jsonl \\
        --leave-out DATA/retrieval_zh/{hand_zh,hand_en2zh,tatoeba_en2zh,tatoeba_zh2en}.json

The pairs are sentences of Tatoeba with translations, `English TAB Chinese TAB credit` a line, as
`cmn-eng.zip` of manythings.org has them; the dialogues say what Chinese talk has in common. None of
them ships. What stands in a file of `topicloom eval retrieval` that is left out is not fitted on.

A vector x becomes (x - mean) @ matrix. The matrix is the rotation (Procrustes) that brings
sentences to their translations, which leaves likeness among Chinese texts as it is, with a share of
the ridge regression, which brings the languages nearer. The same files give the same map.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnxruntime import InferenceSession, SessionOptions
from tokenizers import Tokenizer

from topicloom.lab import MINILM, BundledEmbedder
from topicloom_lab.retrieval import load_retrieval
from topicloom_lab.segmentation import load_dialogues

TARGET = Path(__file__).parents[2] / "scripts" / "chinese_map.npz"
PAIRS, TALK = 16_000, 2_000
"""Sentences with translations, and sentences of dialogues."""
RIDGE, PENALTY = 0.25, 2.0
"""Share of the regression in the matrix, and its penalty."""
BATCH = 32

Array = NDArray[np.float32]


def read_pairs(file: Path, left_out: Collection[str]) -> list[tuple[str, str]]:
    """English and Chinese sentences, none of which is left out, evenly from a file."""
    rows = (line.split("\t") for line in file.read_text("utf-8").splitlines())
    pairs = [(en, zh) for en, zh, *_ in rows if {plain(en), plain(zh)}.isdisjoint(left_out)]
    return [pairs[place] for place in evenly(len(pairs), PAIRS)]


def read_talk(files: Sequence[Path]) -> list[str]:
    """Distinct sentences of dialogues, evenly from all files."""
    said = (u.text for file in files for one in load_dialogues(file) for u in one.utterances)
    texts = [text for text in dict.fromkeys(said) if 4 <= len(text) <= 80]
    return [texts[place] for place in evenly(len(texts), TALK)]


def evenly(count: int, most: int) -> list[int]:
    """At most so many places of so many."""
    return [int(place) for place in np.linspace(0, count - 1, min(count, most))]


def plain(text: str) -> str:
    """A text without punctuation and case."""
    return re.sub(r"[\W_]+", "", text.casefold())


def texts_of(files: Sequence[Path]) -> Iterator[str]:
    """All texts and queries of retrieval files, without punctuation."""
    for found in map(load_retrieval, files):
        yield from map(plain, (*found.docs, *(query for query, _ in found.queries)))


def embed(file: Path, texts: Sequence[str]) -> Array:
    """Vectors [n, 512] by the Chinese encoder before its map."""
    options = SessionOptions()
    options.intra_op_num_threads = 1
    session = InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(file.with_suffix(".json")))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()
    order = sorted(range(len(texts)), key=lambda row: (len(texts[row]), row))
    found = np.zeros((len(texts), 512), dtype=np.float32)
    for begin in range(0, len(order), BATCH):
        rows = order[begin : begin + BATCH]
        encoded = tokenizer.encode_batch([texts[row] for row in rows])
        ids = np.array([item.ids for item in encoded])
        mask = np.array([item.attention_mask for item in encoded])
        found[rows] = session.run(None, {"input_ids": ids, "attention_mask": mask})[0]
    return found


def fit(chinese: Array, english: Array) -> Array:
    """The matrix [512, 384] that brings vectors [n, 512] to those of translations [n, 384]."""
    x, y = chinese - chinese.mean(axis=0), english - english.mean(axis=0)
    product = x.T @ y
    ridge = np.linalg.solve(x.T @ x + PENALTY * np.eye(x.shape[1]), product)
    left, _, right = np.linalg.svd(product, full_matrices=False)
    rotation = left @ right
    ridge *= np.linalg.norm(rotation) / np.linalg.norm(ridge)
    return np.asarray(RIDGE * ridge + (1 - RIDGE) * rotation, dtype=np.float32)


def main() -> None:
    """Read, embed, fit and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("encoder", type=Path, help="as build_chinese.py --plain wrote it")
    parser.add_argument("pairs", type=Path, help="English TAB Chinese, a line each")
    parser.add_argument("dialogues", type=Path, nargs="+", help="Chinese, as for training")
    parser.add_argument("--leave-out", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    pairs = read_pairs(given.pairs, frozenset(texts_of(given.leave_out)))
    talk = read_talk(given.dialogues)
    print(f"{len(pairs)} pairs, {len(talk)} sentences of dialogues", flush=True)
    chinese = embed(given.encoder, [chinese for _, chinese in pairs])
    mean = (chinese.mean(axis=0) + embed(given.encoder, talk).mean(axis=0)) / 2
    matrix = fit(chinese, BundledEmbedder(MINILM).embed([english for english, _ in pairs]))
    np.savez(given.out, mean=mean, matrix=matrix.astype(np.float16))
    print(f"{given.out}: {matrix.shape}")


if __name__ == "__main__":
    main()
