"""Replies that no model writes: what was said that is closest to a message, as a search finds it.

Such a reply speaks of the search and never of the past, so it is true where the search misses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topicloom.prompts.loader import load_rows
from topicloom.prompts.wording import get_wording, strip_own_replies
from topicloom.search.bm25 import LexicalIndex
from topicloom.search.embedder import Embedder
from topicloom.search.encoders import is_chinese
from topicloom.search.sentences import passages_of
from topicloom.search.words import telling_words
from topicloom.state.language import detect_language
from topicloom.state.safe_text import clip, shorten_query
from topicloom.state.stored_message import StoredMessage

if TYPE_CHECKING:
    from topicloom.roles.responder import ReplyRequest

_CLOSE = 0.37
"""Closeness from which a passage is shown (`docs/research/replies.md`)."""
_WORDS, _ABROAD = 0.1, 0.2
"""What is added to a cosine: for all of a message's words, and for another language, which lies
farther away."""
_SHOWN, _PASSAGE = 3, 240
"""Passages that are shown at most, and characters of the whole sentences of one."""
_SAME = 0.65
"""Cosine from which two messages are versions of one statement."""
_ASKS = "?", "？"
_WISH_TO_FORGET = re.compile("|".join(load_rows("cues/wish_to_forget")), re.I)


class _Passage(NamedTuple):
    """Whole sentences of a message."""

    message: StoredMessage
    text: str


def compose_reply(request: ReplyRequest, embedder: Embedder) -> str:
    """What is closest to the message among what was said, or that the search found nothing."""
    asked = shorten_query(request.query)
    words = get_wording(detect_language([asked]))
    speakers = {"user": words.you, "assistant": words.assistant}
    found = _find_closest(request, embedder)
    lines = [words.closest if found else words.nothing_close]
    for (message, text), older in found:
        who = message.speaker or speakers.get(message.role, message.role)
        if topic := request.topics.get(message.seq):
            who += words.in_topic.format(topic=topic)
        line = words.said_before if older else words.said
        lines.append(line.format(day=message.day, who=who, text=clip(text)))
    if _WISH_TO_FORGET.search(asked):
        shown = dict.fromkeys(f" {message.id}" for (message, _), _ in found)
        lines.append(words.to_forget.format(messages="".join(shown)))
    return "\n".join(lines)


def _find_closest(request: ReplyRequest, embedder: Embedder) -> list[tuple[_Passage, bool]]:
    """The closest passages, best first, each before its older versions, for which it says so."""
    first, last = request.days or ("", "9")
    # What was said on days that are asked for need not be like the message.
    of_days = [m for m in request.sources if first <= m.day <= last]
    least = -1.0 if request.days and of_days else _CLOSE
    passages = _cut_passages(of_days or request.sources, telling_words(request.query))
    asked = embedder.embed([request.query])[0]
    vectors = embedder.embed([p.message.line for p in passages])
    closeness = vectors @ asked + _rate_words(request.query, passages)
    best = dict[int, int]()  # of each message, its closest passage
    for i in np.argsort(-closeness, kind="stable").tolist():
        best.setdefault(passages[i].message.seq, i)
    close = [i for i in best.values() if closeness[i] >= least][:_SHOWN]
    if not close:
        return []
    like = (vectors[close] @ vectors[close].T >= _SAME).argmax(axis=1).tolist()
    # Versions of one statement stand together, the newest first.
    order = sorted(range(len(close)), key=lambda n: (like[n], -passages[close[n]].message.seq))
    return [
        (passages[close[n]], like[n] in [like[o] for o in order[:at]]) for at, n in enumerate(order)
    ]


def _cut_passages(messages: Sequence[StoredMessage], asked: frozenset[str]) -> list[_Passage]:
    """The passages of messages, each text once, without questions that say no more than `asked`."""
    said = {
        " ".join(text.split()): message
        for message in reversed(messages)  # of one text, the first of them has it
        for text in passages_of(strip_own_replies(message.text), _PASSAGE)
    }
    return [
        _Passage(message, text)
        for text, message in reversed(said.items())
        if text and not (text.endswith(_ASKS) and telling_words(text) <= asked)
    ]


def _rate_words(query: str, passages: Sequence[_Passage]) -> NDArray[np.float64]:
    """What passages [n] have beside their message's meaning: words, and another language."""
    index = LexicalIndex()
    for passage in passages:
        index.add("", passage.text)
    scores, cover = index.scores(query)
    abroad = np.array([is_chinese(p.text) != is_chinese(query) for p in passages])
    return np.asarray(_WORDS * cover * scores / scores.max(initial=1e-9) + _ABROAD * abroad)
