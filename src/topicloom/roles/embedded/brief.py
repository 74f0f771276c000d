"""The embedded brief writer: keywords, dates and the most central things said."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from topicloom.index.embedder import Embedder
from topicloom.roles.base import Answer, Brief, BriefRequest, Local
from topicloom.roles.embedded.phrases import keywords, title_of
from topicloom.state.records import Record

_SIZE = 1_000
"""Characters of a brief, about (spec 000, 4.6: about 1 KB)."""
_READ = 200
"""Newest messages that are weighed."""
_QUOTED = 8
"""Messages that are quoted at most."""


class EmbeddedBriefWriter(Local[BriefRequest, Brief]):
    """Extracts, and names a topic by what is most said in it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def call(self, request: BriefRequest) -> Answer[Brief]:
        """Write one brief."""
        said = [r for r in request.records if r.role == "user" and r.text.strip()]
        said = (said or [r for r in request.records if r.text.strip()])[-_READ:]
        if not said:
            return Answer(Brief(request.topic.name, request.topic.name))
        texts = [r.text[:600] for r in said]
        direction = self._embedder.embed(texts).mean(axis=0)
        heard = [r.text[:1_200] for r in request.records[-_READ:]]
        name = title_of([*texts, *heard], direction, self._embedder, request.topic.name)
        lines = [
            f"{said[0].day} – {said[-1].day}, {len(request.records)}",
            ", ".join(keywords(texts, 12)),
            *(r.text.strip()[:240] for r in central(said, self._embedder, _QUOTED)),
        ]
        text = ""
        for line in lines:
            if text and len(text) + len(line) > _SIZE:
                break
            text = f"{text}\n{line}" if text else line
        return Answer(Brief(name, text))


def central(records: Sequence[Record], embedder: Embedder, most: int) -> list[Record]:
    """Some of the records, the most central first, each unlike the ones before it."""
    vectors = embedder.embed([r.text[:600] for r in records])
    worth = vectors @ vectors.mean(axis=0)
    chosen: list[int] = []
    for _ in range(min(most, len(records))):
        near = vectors @ vectors[chosen].T if chosen else np.zeros((len(records), 1))
        best = int(np.argmax(worth - 0.5 * near.max(axis=1)))
        if best in chosen:
            break
        chosen.append(best)
    return [records[i] for i in chosen]
