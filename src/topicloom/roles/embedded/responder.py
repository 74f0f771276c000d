"""The embedded responder: it quotes, it does not compose."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import ClassVar

import numpy as np
from langchain_core.messages import AIMessageChunk

from topicloom.index.embedder import Embedder
from topicloom.index.words import words_of
from topicloom.roles.base import ReplyRequest
from topicloom.state.records import Record
from topicloom.state.script import cjk_share

_WORDS = {
    "en": (
        "Here is what was said:",
        "I have nothing about that. (No model is set: I can only quote what was said.)",
    ),
    "zh": ("之前是这样说的：", "没有找到相关的内容。（未设置模型：我只能引用说过的话。）"),
}
_SENTENCE = re.compile(r"(?<=[.!?。！？\n])\s*")
_READ, _COMPARED, _QUOTED, _LONGEST = 80, 24, 3, 300
_RELEVANT = 0.2
"""Similarity from which a sentence has to do with the question."""


class EmbeddedResponder:
    """Answers with the sentences of the recalled originals that are nearest to the question."""

    model = "embedded"
    by_index: ClassVar[bool] = True
    """It answers from what is nearest to the query, and reads nothing else."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The reply, word by word."""
        for piece in re.findall(r"\S+\s*|\s+", self._text(request)):
            yield AIMessageChunk(content=piece)

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The reply, word by word."""
        for chunk in self.stream(request):
            yield chunk

    def _text(self, request: ReplyRequest) -> str:
        found = self._best(request.query, request.sources)
        lead, nothing = _WORDS["zh" if cjk_share(request.query) > 1 / 3 else "en"]
        if not found:
            return nothing
        return "\n".join([lead, *(_line(r, s) for r, s in found)])

    def _best(self, query: str, sources: Sequence[Record]) -> list[tuple[Record, str]]:
        pairs = _likely(query, [(r, s) for r in sources[:_READ] for s in _sentences(r.text)])
        if not pairs:
            return []
        vectors = self._embedder.embed([query, *(s for _, s in pairs)])
        scores = vectors[1:] @ vectors[0]
        ranked = [int(i) for i in np.argsort(-scores, kind="stable") if scores[i] >= _RELEVANT]
        return [pairs[i] for i in ranked[:_QUOTED]]


def _likely(query: str, pairs: Sequence[tuple[Record, str]]) -> list[tuple[Record, str]]:
    """The sentences that share most words with the query: embedding all would take too long."""
    asked = set(words_of(query))
    shared = [len(asked & set(words_of(sentence))) for _, sentence in pairs]
    ranked = sorted(range(len(pairs)), key=lambda i: -shared[i])
    return [pairs[i] for i in ranked[:_COMPARED]]


def _sentences(text: str) -> list[str]:
    return [s.strip()[:_LONGEST] for s in _SENTENCE.split(text) if len(s.strip()) > 8]


def _line(record: Record, sentence: str) -> str:
    return f"– {record.day}, {record.label}: “{sentence}”"
