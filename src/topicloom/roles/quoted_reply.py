"""Replies that no model writes: the sentences of recalled originals that are nearest to a question,
and a word or two to anything else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from topicloom.context.tokens import count_budget_tokens
from topicloom.prompts.loader import load_cues, load_patterns
from topicloom.prompts.wording import Wording, get_wording, strip_own_replies
from topicloom.search.bm25 import LexicalIndex
from topicloom.search.embedder import Embedder, Vectors
from topicloom.search.encoders import is_chinese
from topicloom.search.ranking import standardize, trust_words
from topicloom.state.language import detect_language
from topicloom.state.safe_text import clip, shorten_query
from topicloom.state.stored_message import StoredMessage

if TYPE_CHECKING:
    from topicloom.roles.responder import ReplyRequest

_SENTENCE = re.compile(
    r"(?<=[.!?])(?<!\b[A-Z]\.)(?<!\b[A-Z][a-z]\.)(?<!\bMrs\.)(?<!\be\.g\.)(?<!\bi\.e\.)\s+"
    r"|\n+|(?<=[。！？])(?![”』」）])"
)
"""Ends of sentences; no number, file name or title ends one."""
_READ = 80
"""Messages whose sentences are ranked by words."""
_COMPARED = 24
"""Sentences that are embedded: the best by words."""
_QUOTED = 3
"""Sentences that are quoted at most."""
_LONGEST, _SHORTEST = 300, 4
"""Characters of a sentence."""
_LOOKED_AT = 40
"""Messages that are embedded."""
_NEAREST = 12
"""The nearest of these, of which all sentences are embedded too."""
_TELLING = 30
"""Tokens past which a longer sentence says no more."""
_SAME, _SAME_CHINESE = 0.8, 0.65
"""Similarity from which two sentences are versions of one statement; Chinese ones lie apart."""
_RELEVANT = 0.2
"""Similarity from which a sentence has to do with the question."""
_NEAR = 0.4
"""Share of the best sentence's similarity from which another one is quoted beside it."""
_KINDS = [(kind, re.compile(form, re.I)) for kind, form in load_patterns("cues/kinds")[1]]


def compose_reply(request: ReplyRequest, embedder: Embedder) -> str:
    """The reply: quotes of what was said, or a word or two where nothing is to be quoted."""
    asked = shorten_query(request.query)
    language = detect_language([asked])
    words = get_wording(language)
    otherwise = "question" if load_cues("amnesia").found_in(asked) else "statement"
    kind = next((k for k, form in _KINDS if form.search(asked.strip())), otherwise)
    if kind == "abilities":
        return words.abilities
    found = list[tuple[StoredMessage, str]]()
    if kind == "beginning":
        found = [(m, clip(m.text, _LONGEST)) for m in request.first if m.text.strip()]
    elif kind == "question":
        found = _find_best(request, embedder)
    if found:
        lines = (f"– {m.day}, {_name_speaker(m, words)}: “{s}”" for m, s in found)
        return "\n".join([words.quotes_follow, *lines])
    said = {
        "question": words.nothing_said,
        "beginning": words.nothing_said,
        "writing": words.no_writing,
        "greeting": words.greeted,
        "thanks": words.thanked,
        "farewell": words.farewell,
    }.get(kind, words.noted)
    if any(words.quoting_only in m.text for m in request.sources):
        return said
    return said + (" " if language == "en" else "") + words.quoting_only


def _find_best(request: ReplyRequest, embedder: Embedder) -> list[tuple[StoredMessage, str]]:
    query, (first, last) = request.query, request.days or ("", "")
    # What was said on days that are asked for need not be like the question.
    of_days = [m for m in request.sources if first <= m.day <= last]
    said = {  # each sentence once, by whom it was said first of these
        s: m
        for m in reversed((of_days or request.sources)[:_READ])
        for s in _split_sentences(strip_own_replies(m.text))
        if not s.endswith(("?", "？"))
    }
    if not said:
        return []
    pairs, index = [(m, s) for s, m in reversed(said.items())], LexicalIndex()
    vector = embedder.embed([query])[0]
    for _, sentence in pairs:
        index.add("", sentence)
    lexical, cover = index.scores(query)
    # What its message was recalled for counts beside it; as a short sentence is near to much,
    # so does its length.
    places = {m.seq: place for place, m in enumerate(request.sources[: request.ranked])}
    behind = np.log1p([places.get(m.seq, request.ranked / 2) for m, _ in pairs])
    # Embedding all would take too long: those that words and recall put first, and those of the
    # messages that are nearest in meaning, which may share no word with the query.
    likely = np.argsort(behind - standardize(lexical), kind="stable")[:_COMPARED]
    near = _find_nearest([m for m, _ in pairs], vector, embedder)
    chosen = sorted({*likely.tolist(), *(i for i, (m, _) in enumerate(pairs) if m.seq in near)})
    found = [pairs[i] for i in chosen]
    vectors = embedder.embed([s for _, s in found])
    likeness = (vectors @ vector).astype(float)
    shared = lexical[chosen]
    # What is said in another language shares no words: that says nothing of it.
    chinese = [is_chinese(s) for _, s in found]
    other = np.array(chinese) != is_chinese(query)
    shared[other] = np.maximum(shared[other], shared.mean())
    scores = standardize(likeness) + trust_words(cover) * standardize(shared)
    lengths = [min(count_budget_tokens(s), _TELLING) for _, s in found]
    scores += np.log(lengths) - behind[chosen]
    least = -1.0 if of_days else max(_RELEVANT, _NEAR * float(likeness.max()))
    ranked = [int(i) for i in np.argsort(-scores, kind="stable") if likeness[i] >= least]
    best = ranked[:_QUOTED]
    return _put_newest_first([found[i] for i in best], vectors[best])


def _find_nearest(
    messages: Sequence[StoredMessage], vector: Vectors, embedder: Embedder
) -> set[int]:
    """Numbers of the messages that are nearest to a vector [d]."""
    lines = {m.seq: m.line for m in messages}  # the best of recall first
    lines = dict(islice(lines.items(), _LOOKED_AT))
    likeness = embedder.embed(list(lines.values())) @ vector
    numbers = list(lines)
    return {numbers[i] for i in np.argsort(-likeness, kind="stable")[:_NEAREST].tolist()}


def _put_newest_first(
    found: Sequence[tuple[StoredMessage, str]], vectors: Vectors
) -> list[tuple[StoredMessage, str]]:
    """Sentences [n], of which a later one that says the same goes before an earlier one."""
    chinese = [is_chinese(sentence) for _, sentence in found]
    ordered = list[int]()
    for place, (message, _) in enumerate(found):
        for at, other in enumerate(ordered):
            same = _SAME_CHINESE if chinese[place] and chinese[other] else _SAME
            older = found[other][0].seq < message.seq
            if older and float(vectors[other] @ vectors[place]) >= same:
                ordered.insert(at, place)
                break
        else:
            ordered.append(place)
    return [found[place] for place in ordered]


def _split_sentences(text: str) -> list[str]:
    return [clip(s, _LONGEST) for s in _SENTENCE.split(text) if len(s.strip()) >= _SHORTEST]


def _name_speaker(message: StoredMessage, words: Wording) -> str:
    roles = {"user": words.you, "assistant": words.assistant}
    return message.speaker or roles.get(message.role, message.role)
