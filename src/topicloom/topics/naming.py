"""Names of topics without a language model: the noun phrase that tells a topic from the others.

One figure rates every phrase (`rank_phrases`): how many rounds hold it, times how rare its words
are in the other topics and in everyday language (class-based TF-IDF). People begin by saying what
they are about, so a name is near the first message, and best a phrase of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, count

from topicloom.search.embedder import Embedder, dot_products
from topicloom.state.folding import fold
from topicloom.state.language import CJK_RUN, detect_language
from topicloom.state.safe_text import cut
from topicloom.state.stored_message import StoredMessage
from topicloom.topics.phrases import DATA, LONGEST_WORD, PIECE, Phrase, find_phrases, phrase_words

NAME_LIMIT = 80
"""Characters of a topic's name."""
_NUMBER = 8
"""Characters that are left for a number behind a name."""
_READ = 600
"""Characters that are read of the user's text, and of a reply."""
_NEWEST = 100
"""Rounds that are read in addition to the first one."""
_REPLIED = 0.5
"""Weight of a round whose reply alone holds a phrase, against 1 where the user says it."""
_OPENING = 5
"""Times by which a phrase counts more if the user says it in the first round."""
_EVERYDAY = 1_000
"""Words of the text of everyday language that counts as one more topic."""
_WEIGHED = 16
"""Candidates whose vectors are compared with the first message's: what naming costs most."""
_COVERS = 2
"""Times by which a new name has to be held by more rounds than the former one."""
_FOREIGN = 0.5
"""Worth of a phrase that is not in the topic's language."""


@dataclass(frozen=True, slots=True)
class SpokenRound:
    """A round of a topic, as far as names go."""

    asked: str
    """The user's text."""
    replied: str = ""
    """The reply."""


def pair_rounds(messages: Iterable[StoredMessage]) -> list[SpokenRound]:
    """Pair messages, which are in order, as rounds: the user's text and the reply."""
    pairs: list[tuple[str, str]] = []
    for message in messages:
        by_user = message.role == "user"
        if by_user or not pairs:
            pairs.append((message.text, "") if by_user else ("", message.text))
        else:
            asked, replied = pairs[-1]
            if len(replied) < _READ:
                text = f"{replied}\n{message.text}" if replied else message.text
                pairs[-1] = (asked, text)
    return [SpokenRound(*pair) for pair in pairs]


def make_name(
    rounds: Sequence[SpokenRound],
    embedder: Embedder,
    *,
    former: str = "",
    others: Sequence[str] = (),
    taken: Collection[str] = (),
    within: Sequence[str] = (),
) -> str:
    """One noun phrase that tells what a topic is about, on one line of `NAME_LIMIT` at most.

    Args:
        rounds: The topic's rounds, in order; of many, the first and the last ones are read.
        embedder: Compares phrases with the first message.
        former: The name so far, "" if there is none. It stays unless at least twice as many rounds
            hold the new one. A name of which the rounds hold no word stays: whoever gave it did
            not take it from them.
        others: What other topics are about, a text each, such as their briefs.
        taken: Names that the topic may not get.
        within: Names of the topics that it is a part of; it is not called after their words alone.
    """
    rounds = [*rounds[:1], *rounds[1:][-_NEWEST:]]
    held = _count_holding(former, rounds, 0.5)
    if former and not held:
        return former
    used = {key for name in within for key in phrase_words(name)}
    ratings = rank_phrases(rounds, others, opening=_OPENING)
    candidates = {p: r for p, r in ratings.items() if used.isdisjoint(p.key)}
    first = next((text for r in rounds for text in (r.asked, r.replied) if text), "")
    ranked = _put_nearest_first(candidates, first, embedder)
    names = [_format(phrase) for phrase in ranked] or [former or _quote(rounds)]
    avoided = {fold(name) for name in (*taken, *within)}
    lasts = _COVERS * held > _count_holding(names[0], rounds, 1)
    if former and fold(former) not in avoided and lasts:
        return former
    numbered = (f"{names[0]} ({n})" for n in count(2))
    return next(n for n in chain(names, numbered) if fold(n) not in avoided)


def _put_nearest_first(ratings: Mapping[Phrase, float], text: str, embedder: Embedder) -> list[str]:
    """The best phrases, those first that are also near to a text."""
    phrases = [*ratings][:_WEIGHED]
    if not phrases:
        return []
    vectors = embedder.embed([*(p.text for p in phrases), text[:_READ]])
    near = dot_products(vectors[:-1], vectors[-1])
    order = sorted(zip(phrases, near, strict=True), key=lambda p: -ratings[p[0]] * max(0, p[1]))
    return [phrase.text for phrase, _ in order]


def find_keywords(texts: Sequence[str], most: int, others: Sequence[str] = ()) -> list[str]:
    """The phrases that tell what some texts are about, the best first, none a part of another.

    Args:
        texts: What the user said.
        most: Phrases at most.
        others: What other topics are about, a text each.
    """
    found, used = list[str](), set[str]()
    for phrase in rank_phrases([SpokenRound(text) for text in texts], others):
        words = {word.key for word in phrase.words if word.kind != "o"}
        if used.isdisjoint(words):
            found.append(phrase.text.lower())
            used |= words
        if len(found) == most:
            break
    return found


def rank_phrases(
    rounds: Sequence[SpokenRound], others: Sequence[str], opening: float = 1
) -> dict[Phrase, float]:
    """The noun phrases of some rounds with their ratings, the best first.

    Best are those that many of the rounds hold and little else does.

    Args:
        rounds: What is read.
        others: What other topics are about, a text each.
        opening: Times by which a phrase of the user's counts more in the first round.
    """
    weights: Counter[tuple[str, ...]] = Counter()
    seen: Counter[Phrase] = Counter()
    for round_ in rounds:
        held: dict[tuple[str, ...], float] = {}
        for text, weight in ((round_.replied, _REPLIED), (round_.asked, 1.0)):
            for phrase in find_phrases(text[:_READ]):
                held[phrase.key] = weight
                seen[phrase] += 1
        weights.update(held)
    first = {p.key for r in rounds[:1] for p in find_phrases(r.asked[:_READ])}
    spread = Counter(word for text in others for word in phrase_words(text))
    chinese = detect_language([r.asked for r in rounds]) == "zh"

    @cache
    def rate_word(key: str, bits: float) -> float:
        return -math.log(min(1, spread[key] / (len(others) + 1) + _EVERYDAY * 2.0**-bits))

    def rate(key: tuple[str, ...], phrase: Phrase) -> float:
        rarity = sum([rate_word(w.key, w.bits) for w in phrase.words])
        often = weights[key] * (opening if key in first else 1)
        return often * rarity * phrase.grade * (1 if phrase.cjk == chinese else _FOREIGN)

    usual: dict[tuple[str, ...], Phrase] = {}
    for phrase, times in seen.items():
        other = usual.get(phrase.key)
        if other is None or (times, phrase.text) > (seen[other], other.text):
            usual[phrase.key] = phrase
    rated = sorted((-rate(key, phrase), key, phrase) for key, phrase in usual.items())
    return {phrase: -rating for rating, _, phrase in rated if rating}


def _count_holding(name: str, rounds: Sequence[SpokenRound], share: float) -> int:
    words = phrase_words(name) or {name.lower()}
    texts = (f"{r.asked[:_READ]}\n{r.replied[:_READ]}".lower() for r in rounds)
    return sum(sum(w in text for w in words) >= share * len(words) for text in texts)


def _format(phrase: str) -> str:
    return cut(phrase[0].upper() + phrase[1:], NAME_LIMIT - _NUMBER).strip()


def _quote(rounds: Sequence[SpokenRound]) -> str:
    """The first words of the rounds, for a topic without any phrase."""
    for text in (text for r in rounds for text in (r.asked, r.replied)):
        pieces = PIECE.findall(DATA.sub(" ", text)[:_READ])
        if pieces := [p for p in pieces if CJK_RUN.match(p) or len(p) <= LONGEST_WORD][:4]:
            words = " ".join(p[:12] if CJK_RUN.match(p) else p for p in pieces)
            return cut(words[0].upper() + words[1:], 40).strip()
    return "…"
