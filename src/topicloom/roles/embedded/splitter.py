"""The embedded splitter: the adsorber's segments, each joined to the nearest topic."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from topicloom.perception.embedder import Embedder, Vectors, unit_rows
from topicloom.roles.base import Answer, Local, SplitRequest
from topicloom.roles.embedded.phrases import title_of
from topicloom.state.blocks import LogicalBlock
from topicloom.state.script import cjk_share
from topicloom.state.splitting import Assignment

_JOIN_LATIN, _JOIN_CJK = 0.45, 0.20
"""Similarity from which a segment belongs to a topic. Paraphrases of either script score
differently in the mixed space: about .7 against .2 for Latin text, .34 against .02 for CJK."""


@dataclass(slots=True)
class _Known:
    """A topic that a segment may join."""

    topic: str | None
    name: str
    vector: Vectors


class EmbeddedSplitter(Local[SplitRequest, tuple[Assignment, ...]]):
    """Joins each segment to the most similar topic, or opens one for it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        """Assign every message of the request."""
        briefs = self._embedder.embed([f"{t.name}. {t.brief}" for t in request.topics])
        known = [_Known(t.id, t.name, v) for t, v in zip(request.topics, briefs, strict=True)]
        assignments: list[Assignment] = []
        for place, segment in enumerate(_segments(request)):
            if place == 0 and request.previous is not None and not segment[0].opens:
                home = next(k for k in known if k.topic == request.previous)
                assignments += _all_to(home, segment)
            else:
                assignments += self._assign(segment, known)
        return Answer(tuple(assignments))

    def _assign(self, segment: Sequence[LogicalBlock], known: list[_Known]) -> list[Assignment]:
        texts = [block.text[:1_000] for block in segment]
        vector = unit_rows(self._embedder.embed(texts).mean(axis=0, keepdims=True))[0]
        limit = _JOIN_CJK if cjk_share(" ".join(texts)[:2_000]) > 0.4 else _JOIN_LATIN
        scores = [float(k.vector @ vector) for k in known]
        best = int(np.argmax(scores)) if scores else -1
        if best >= 0 and scores[best] >= limit:
            home = known[best]
        else:
            taken = {k.name for k in known}
            home = _Known(None, _distinct(title_of(segment, self._embedder), taken), vector)
            known.append(home)
        return _all_to(home, segment)


def _all_to(home: _Known, segment: Sequence[LogicalBlock]) -> list[Assignment]:
    ids = [i for block in segment for i in block.ids]
    return [Assignment(message=i, topic=home.topic, name=home.name) for i in ids]


def _segments(request: SplitRequest) -> list[list[LogicalBlock]]:
    groups: dict[int, list[LogicalBlock]] = {}
    for block, label in zip(request.blocks, request.segments, strict=True):
        groups.setdefault(label, []).append(block)
    return list(groups.values())


def _distinct(name: str, taken: set[str]) -> str:
    candidates = itertools.chain([name], (f"{name} ({n})" for n in itertools.count(2)))
    return next(c for c in candidates if c not in taken)
