"""Messages of a conversation as columns of numbers, from which runs of rounds are cut."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Embedder, Vectors
from topicloom.search.words import words_of
from topicloom.state.rounds import Round
from topicloom.state.stored_message import StoredMessage, parse_iso_seconds

KNOWN = 1.5
"""Log odds of a stored message, of which only the detector's yes or no was kept."""
KNOWN_APART = 6.0
"""Log odds by the ruling of an arbiter."""
NO_TOPIC, LOOSE_TOPIC = -1, -2
"""Codes for no topic yet, and for loose ends."""


@dataclass(frozen=True, slots=True)
class VectorRows:
    """Vectors of messages [n, d], read where they lie: copies of all would be most of a split."""

    parts: tuple[Vectors, ...]
    """Tables that they are rows of."""
    place: NDArray[np.intp]
    """Where each is, counted through all parts [n]."""

    @property
    def dimension(self) -> int:
        return int(self.parts[0].shape[1])

    def read(self, some: slice) -> Vectors:
        """A copy of some of them [k, d]."""
        place = self.place[some]
        vectors, first = np.empty((len(place), self.dimension), dtype=np.float32), 0
        for part in self.parts:
            own = (place >= first) & (place < first + len(part))
            vectors[own] = part[place[own] - first]
            first += len(part)
        return vectors


def join_rows(rows: Sequence[VectorRows]) -> VectorRows:
    """Join rows, one table after another."""
    sizes = np.cumsum([0, *(sum(map(len, r.parts)) for r in rows)])
    place = [r.place + size for r, size in zip(rows, sizes, strict=False)]
    return VectorRows(tuple(p for r in rows for p in r.parts), np.concatenate(place))


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """Messages in the order of the conversation, as columns [n]."""

    number: NDArray[np.int64]
    begins: NDArray[np.bool_]
    """True for the first message of a round."""
    topic: NDArray[np.int64]
    """Code of its topic; `NO_TOPIC` or `LOOSE_TOPIC` for none."""
    seconds: NDArray[np.float64]
    """Since the epoch; NaN if unknown."""
    voice: NDArray[np.int64]
    """Code of its speaker."""
    continues: NDArray[np.float64]
    """Log odds that the round that it begins goes on with the one before."""
    vectors: VectorRows
    """Vector of each message."""
    word_at: NDArray[np.int64]
    """The message that each word below is in, as its row."""
    word: NDArray[np.int64]
    """Codes of words."""
    times: NDArray[np.float64]
    """The number of times that each stands in its message."""

    def __len__(self) -> int:
        return len(self.number)


def join_columns(parts: Sequence[MessageColumns]) -> MessageColumns:
    """Join columns into one table; the messages of each come behind those of the ones before."""
    offsets = np.cumsum([0, *map(len, parts)])[:-1]
    names = ("number", "begins", "topic", "seconds", "voice", "continues", "word", "times")
    return MessageColumns(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
        vectors=join_rows([part.vectors for part in parts]),
        word_at=np.concatenate([p.word_at + o for p, o in zip(parts, offsets, strict=True)]),
    )


class Codes(dict[str, int]):
    """Codes of names; a new name gets the next code."""

    def __missing__(self, name: str) -> int:
        self[name] = len(self)
        return self[name]

    def of(self, names: Iterable[str]) -> list[int]:
        """The codes of those names that have one."""
        return [self[name] for name in names if name in self]


def read_rounds(
    rounds: Sequence[Round],
    continues: Sequence[float],
    embedder: Embedder,
    words: dict[str, int],
    voices: dict[str, int],
) -> MessageColumns:
    """Make columns of rounds that are in no topic yet; new words and voices get codes."""
    messages = [m for b in rounds for m in b.messages]
    begins = np.array([m is b.messages[0] for b in rounds for m in b.messages], dtype=np.bool_)
    odds = np.array([c for b, c in zip(rounds, continues, strict=True) for _ in b.messages])
    counts = [Counter(words_of(message.line)) for message in messages]
    return MessageColumns(
        number=np.array([m.seq for m in messages], dtype=np.int64),
        begins=begins,
        topic=np.full(len(messages), NO_TOPIC, dtype=np.int64),
        seconds=np.array([read_seconds(m) for m in messages], dtype=np.float64),
        voice=np.array([voices[m.label] for m in messages], dtype=np.int64),
        continues=odds.astype(np.float64),
        vectors=VectorRows((embedder.embed([m.line for m in messages]),), np.arange(len(messages))),
        word_at=np.repeat(np.arange(len(messages)), [len(c) for c in counts]),
        word=np.array([words[w] for c in counts for w in c], dtype=np.int64),
        times=np.array([n for c in counts for n in c.values()], dtype=np.float64),
    )


def read_seconds(message: StoredMessage) -> float:
    """Seconds since the epoch at which a message was written; NaN if it has no time."""
    seconds = parse_iso_seconds(message.time)
    return float("nan") if seconds is None else seconds
