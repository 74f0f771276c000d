"""What rejoining is learned from: interleaved conversations, and dialogues to interleave."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import numpy as np

from topicloom.boundary.cues import Utterance
from topicloom.errors import ConfigurationError
from topicloom.evaluation.segmentation import load_dialogues
from topicloom.evaluation.threads import load_threads
from topicloom.index.embedder import Embedder, Vectors
from topicloom.state.script import cjk_share

Report = Callable[[str], None]
"""Takes a line about how far things are."""

MOST_MESSAGES = 4_000
"""Messages read of one file that is only trained on, from conversations spread over it."""
_ONLY_TRAIN = "train"
"""In the name of a file: it is never judged on."""
STITCHED = ("dialseg711", "stitched")
"""Beginnings of the names of files whose segments are dialogues on their own."""
_TELLING = 8
"""Characters of a text above which two dialogues that share it are taken to be one."""
_BATCH = 256


@dataclass(frozen=True, slots=True)
class Talk:
    """An interleaved conversation."""

    file: str
    """Name of the file it is from, without endings."""
    id: str
    """Its id there."""
    said: tuple[Utterance, ...]
    """Its messages [n]."""
    gold: tuple[str | None, ...]
    """The topic of each [n]; None where nobody labelled it."""
    vectors: Vectors
    """Their vectors [n, d]."""

    @property
    def kind(self) -> str:
        """What it is one of: the name of its file without the part that is for."""
        return self.file.rsplit("_", 1)[0]

    @property
    def judged(self) -> bool:
        """Whether its file is judged on, and not only trained on."""
        return _ONLY_TRAIN not in self.file

    @property
    def texts(self) -> frozenset[str]:
        """Its messages that could tell a dialogue."""
        return telling(said.text for said in self.said)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """A talk about one subject."""

    file: str
    """Name of the file it is from, without endings."""
    texts: tuple[str, ...]
    """What is said, in turns [n]."""
    vectors: Vectors
    """Their vectors [n, d]."""

    @property
    def key(self) -> int:
        """A number that tells it, by how it begins."""
        return crc32("\n".join(self.texts[:2]).encode("utf-8", "surrogatepass"))

    @property
    def cjk(self) -> bool:
        """Whether it is mostly Chinese, Japanese or Korean."""
        return cjk_share("".join(self.texts)) > 0.5

    def shares(self, texts: frozenset[str] | set[str]) -> bool:
        """Whether one of these texts is said in it."""
        return not texts.isdisjoint(telling(self.texts))


@dataclass(frozen=True, slots=True)
class RejoinCorpus:
    """All there is to learn from."""

    talks: tuple[Talk, ...]
    dialogues: tuple[Dialogue, ...]
    """Of the segmentation files; each stands here once."""
    hashes: dict[str, str]
    """SHA-256 of each file that was read, by file name."""


def read_rejoin_corpus(folder: Path, embedder: Embedder, report: Report) -> RejoinCorpus:
    """Read and embed a folder with `threads` and, if it is there, `segmentation` in it.

    Raises:
        ConfigurationError: If there is nothing to learn from.
        NotAConversationError: If a file holds something else.
    """
    paths = {kind: _files(folder / kind) for kind in ("threads", "segmentation")}
    if not paths["threads"]:
        raise ConfigurationError(f"{folder} holds no threads/*.jsonl to learn rejoining from")
    talks: list[Talk] = []
    for path in paths["threads"]:
        talks += _talks(path, embedder)
        report(f"read {path.name}: {len(talks)} conversations so far")
    dialogues: dict[int, Dialogue] = {}
    for path in paths["segmentation"]:
        for dialogue in _dialogues(path, embedder):
            dialogues.setdefault(dialogue.key, dialogue)
        report(f"read {path.name}: {len(dialogues)} dialogues so far")
    hashes = {p.name: sha256(p.read_bytes()).hexdigest() for kind in paths.values() for p in kind}
    return RejoinCorpus(tuple(talks), tuple(dialogues.values()), hashes)


def telling(texts: Iterator[str] | Sequence[str]) -> frozenset[str]:
    """Texts that are long enough to tell a dialogue."""
    return frozenset(text for text in texts if len(text) > _TELLING)


def embed_all(texts: Sequence[str], embedder: Embedder) -> Vectors:
    """Vectors [n, d], embedded in batches of like length: padding costs time."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    vectors = np.zeros((len(texts), embedder.dimension), dtype=np.float32)
    for start in range(0, len(order), _BATCH):
        batch = order[start : start + _BATCH]
        vectors[batch] = embedder.embed([texts[place] for place in batch])
    return vectors


def _talks(path: Path, embedder: Embedder) -> list[Talk]:
    conversations = list(load_threads(path))
    messages = sum(len(conversation.messages) for conversation in conversations)
    stride = -(-messages // MOST_MESSAGES) if _ONLY_TRAIN in path.name else 1
    found: list[Talk] = []
    for conversation in conversations[::stride]:
        said = tuple(conversation.said())
        gold = tuple(message.thread for message in conversation.messages)
        vectors = embed_all([message.text for message in said], embedder)
        found.append(Talk(_name(path), conversation.id, said, gold, vectors))
    return found


def _dialogues(path: Path, embedder: Embedder) -> Iterator[Dialogue]:
    read = list(load_dialogues(path))
    texts = [utterance.text for dialogue in read for utterance in dialogue.utterances]
    vectors = embed_all(texts, embedder)
    at = 0
    for dialogue in read:
        whole = (len(dialogue.utterances),)
        for length in dialogue.segments if path.name.startswith(STITCHED) else whole:
            yield Dialogue(_name(path), tuple(texts[at : at + length]), vectors[at : at + length])
            at += length


def _files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.xz")])


def _name(path: Path) -> str:
    return path.name.split(".", 1)[0]
