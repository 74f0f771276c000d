"""Replies that no model writes: what was said that is closest to a message, as a search finds it.

Such a reply speaks of the search and never of the past, so it is true where the search misses.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from topicloom.prompts.loader import load_rows
from topicloom.prompts.wording import get_wording, strip_own_replies
from topicloom.search.embedder import Embedder
from topicloom.search.sentences import only_asks, passages_of
from topicloom.search.words import telling_words
from topicloom.state.language import detect_language
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage

if TYPE_CHECKING:
    from topicloom.roles.responder import ReplyRequest

_CLOSE = 0.37
"""Closeness from which a message is shown (`docs/research/replies.md`)."""
_WORDS, _ABROAD = 0.1, 0.2
"""What is added to a cosine: for all of the words that are asked for, and for another language,
which lies farther away."""
_SHOWN, _PASSAGE = 3, 150
"""Messages that are shown at most, and characters of a passage, which is whole up to twice that."""
_SAME = 0.5
"""Cosine from which two passages are versions of one statement."""
_WISH_TO_FORGET = re.compile("|".join(load_rows("cues/wish_to_forget")), re.I)


def compose_reply(request: ReplyRequest, embedder: Embedder) -> str:
    """What is closest to the message among what was said, or that the search found nothing."""
    words = get_wording(detect_language([request.query]))
    speakers = {"user": words.you, "assistant": words.assistant}
    found = _find_closest(request, embedder)
    lines = [words.closest if found else words.nothing_close]
    for message, text, older in found:
        who = message.speaker or speakers.get(message.role, message.role)
        if topic := request.topics.get(message.seq):
            who += words.in_topic.format(topic=topic)
        line = words.said_before if older else words.said
        lines.append(line.format(day=message.day, who=who, text=clip(text)))
    if _WISH_TO_FORGET.search(request.query):
        shown = "".join(f" {message.id}" for message, *_ in found)
        lines.append(words.to_forget.format(messages=shown))
    return "\n".join(lines)


def _find_closest(
    request: ReplyRequest, embedder: Embedder
) -> list[tuple[StoredMessage, str, bool]]:
    """The closest messages with a passage of each, and whether it is an older version.

    The best is first, and what only asks is last. Versions of one statement stand together, the
    newest first.
    """
    # What was said on days that are asked for need not be like the message.
    of_days = [
        m for m in request.sources if request.days and request.days[0] <= m.day <= request.days[1]
    ]
    asked = telling_words(request.query)
    passages = {  # each text once, as the first of these has it; no question that says no more
        " ".join(text.split()): message
        for message in reversed(of_days or request.sources)
        for text in passages_of(strip_own_replies(message.text), _PASSAGE)
        if text.strip() and not (only_asks(text) and telling_words(text) <= asked)
    }
    said = [(message, text, only_asks(text)) for text, message in passages.items()]
    vectors = embedder.embed([request.query, *(m.line for m, *_ in said)])
    closeness = vectors[1:] @ vectors[0] + [
        _WORDS * len(asked & telling_words(text)) / max(1, len(asked))
        + _ABROAD * (detect_language([text]) != detect_language([request.query]))
        for _, text, _ in said
    ]
    best = {said[i][0].seq: i for i in np.argsort(closeness, kind="stable").tolist()}
    close = sorted(
        (i for i in best.values() if of_days or closeness[i] >= _CLOSE),
        key=lambda i: (said[i][2], -closeness[i]),
    )[:_SHOWN]
    shown = embedder.embed([said[i][1] for i in close])
    same = shown @ shown.T >= _SAME
    like = [n if said[i][2] else int(same[n].argmax()) for n, i in enumerate(close)]
    order = sorted(range(len(close)), key=lambda n: (like[n], -said[close[n]][0].seq))
    return [
        (*said[close[n]][:2], like[n] in [like[o] for o in order[:at]])
        for at, n in enumerate(order)
    ]
