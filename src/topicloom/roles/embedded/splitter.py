"""The embedded splitter: the adsorber's segments, each joined to the nearest topic."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from topicloom.index.embedder import Embedder, Vectors
from topicloom.index.vectors import block_vectors
from topicloom.roles.base import Answer, Local, SplitRequest
from topicloom.roles.embedded.phrases import title_of
from topicloom.state.blocks import LogicalBlock
from topicloom.state.script import cjk_share
from topicloom.state.splitting import Assignment

_JOIN_LATIN, _JOIN_CJK = 0.17, 0.20
"""Nearness from which a segment belongs to a topic, over that of the conversation as a whole; CJK
text, compared by its characters, stands further apart."""


@dataclass(slots=True)
class _Known:
    """A topic that a segment may join."""

    topic: str | None
    name: str
    vectors: list[Vectors]
    """Of the blocks that this call gave it."""


class EmbeddedSplitter(Local[SplitRequest, tuple[Assignment, ...]]):
    """Joins each segment to the nearest topic, or opens one for it.

    The first block goes on with the topic before it unless the adsorber saw one begin there. A
    segment that an arbiter told from what stands before it never goes to the same topic.
    """

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        """Assign every message of the request."""
        vectors = block_vectors(request.blocks, self._embedder)
        common = vectors @ vectors.mean(axis=0)
        known = [_Known(t.id, t.name, []) for t in request.topics]
        assignments: list[Assignment] = []
        home = next((k for k in known if k.topic and k.topic == request.previous), None)
        for first, last in _segments(request.segments):
            blocks = request.blocks[first : last + 1]
            left = home if _is_told_apart(request.blocks, first) else None
            if first > 0 or blocks[0].opens:
                here = slice(first, last + 1)
                near = {topic: float(a[here].mean()) for topic, a in request.affinity.items()}
                others = [k for k in known if k is not left]
                scores = [_score(k, near, vectors[here], common[here]) for k in others]
                home = _nearest(others, scores, blocks)
            if home is None:
                texts = [b.records[0].text[:600] for b in blocks] + [b.text[:1_200] for b in blocks]
                direction = vectors[first : last + 1].mean(axis=0)
                title = title_of(texts, direction, self._embedder)
                home = _Known(None, _distinct(title, {k.name for k in known}), [])
                known.append(home)
            home.vectors.extend(vectors[first : last + 1])
            assignments += _all_to(home, blocks)
        return Answer(tuple(assignments))


def _is_told_apart(blocks: Sequence[LogicalBlock], place: int) -> bool:
    """True if an arbiter says that a block has nothing to do with the one before it here."""
    after = place == 0 or blocks[place - 1].last == blocks[place].first - 1
    return after and blocks[place].ruling == "opens"


def _nearest(
    known: Sequence[_Known], scores: Sequence[float], blocks: Sequence[LogicalBlock]
) -> _Known | None:
    """The topic that is nearest to a segment, if any is near enough."""
    share = cjk_share(" ".join(b.text for b in blocks)[:2_000])
    limit = _JOIN_CJK if share > 0.4 else _JOIN_LATIN
    best = max(range(len(known)), key=scores.__getitem__, default=None)
    return known[best] if best is not None and scores[best] >= limit else None


def _score(
    known: _Known,
    near: Mapping[str, float],
    vectors: Vectors,
    common: NDArray[np.float32],
) -> float:
    """How near a topic is to a segment: by what is stored of it, or by what this call gave it."""
    stored = near.get(known.topic, 0.0) if known.topic else 0.0
    given = [float(v @ w) - c for v, c in zip(vectors, common, strict=True) for w in known.vectors]
    return max(stored, sum(given) / len(given) if given else 0.0)


def _all_to(home: _Known, segment: Sequence[LogicalBlock]) -> list[Assignment]:
    ids = [i for block in segment for i in block.ids]
    return [Assignment(message=i, topic=home.topic, name=home.name) for i in ids]


def _segments(labels: Sequence[int]) -> list[tuple[int, int]]:
    """First and last place of each run of equal labels."""
    starts = [i for i, label in enumerate(labels) if i == 0 or label != labels[i - 1]]
    return list(zip(starts, [s - 1 for s in starts[1:]] + [len(labels) - 1], strict=True))


def _distinct(name: str, taken: set[str]) -> str:
    candidates = itertools.chain([name], (f"{name} ({n})" for n in itertools.count(2)))
    return next(c for c in candidates if c not in taken)
