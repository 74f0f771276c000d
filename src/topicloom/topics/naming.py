"""Names of topics without a language model: the phrase that tells a topic from the others.

The candidates are the noun phrases of the rounds (`phrases.py`). One is worth more the more
rounds hold it, the earlier the user used it, the fewer other topics hold its words, and the nearer
its vector is to the topic's. A short one is joined to a second one.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from topicloom.search.embedder import Embedder, dot_products
from topicloom.state.folding import fold
from topicloom.state.language import CJK_RUN, Language, detect_language
from topicloom.state.safe_text import cut
from topicloom.state.stored_message import StoredMessage
from topicloom.topics.phrases import (
    DATA,
    HAN_INNER,
    LINKS,
    LONGEST_HAN,
    LONGEST_WORD,
    PIECE,
    Key,
    find_phrases,
    phrase_words,
    trim_edges,
)

NAME_LIMIT = 80
"""Characters of a topic's name."""
_NUMBER = 8
"""Characters that are left for a number behind a name."""
_SETTLED = 10
"""Rounds from which a topic keeps its name, while half as many rounds hold it as hold a new one."""
_ASKED_LENGTH, _REPLIED_LENGTH = 600, 600
"""Characters that are read of the user's text, and of a reply."""
_REPLIED = 0.4
"""Weight of a round whose reply alone holds a phrase, against 1 where the user says it."""
_OPENING_ROUNDS = 3
"""First rounds of a topic, in which one says what it is about."""
_OPENING = 0.35
"""What is added to the score of a phrase in these."""
_NEWEST = 100
"""Rounds that are read in addition to those."""
_CONTRAST = 0.7
"""Share of a phrase's worth that it loses if every other topic holds its words."""
_WEIGHED = 16
"""Candidates whose vectors are compared with the topic's: what naming costs most."""
_LONGER = 0.82
"""Worth, as a share of a phrase's, from which a longer one that holds it takes its place."""
_PARTNER = 0.75
"""Worth, as a share of a short phrase's, from which another one is joined to it."""
_ALIKE = 0.5
"""Weight of two phrases' likeness, against their worth, where one is to add to the other."""
_SAME = 0.7
"""Share of a phrase's rounds that hold a longer one, from which it is no candidate itself."""
_DOUBTFUL = 0.7
"""Worth of a phrase that begins with an adjective, say, where only one round holds it."""
_WORDS = {1: 0.75, 2: 1.0, 3: 0.95, 4: 0.75}
"""Worth of a phrase by its words: two tell more than one, four are half a sentence."""
_FOREIGN = 0.5
"""Worth of a phrase that is not in the topic's language."""


@dataclass(frozen=True, slots=True)
class SpokenRound:
    """A round of a topic, as far as names go."""

    asked: str
    """The user's text."""
    replied: str = ""
    """The reply."""


@dataclass(slots=True)
class _Candidate:
    key: Key
    grade: float
    """Its quality as a name by the classes of its words, 0 to 1."""
    unknown: bool
    rounds: float = 0.0
    early: float = 0.0
    spellings: Counter[str] = field(default_factory=Counter)
    score: float = 0.0
    vector: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))

    @property
    def text(self) -> str:
        return max(self.spellings.items(), key=lambda s: (s[1], s[0]))[0]

    @property
    def cjk(self) -> bool:
        return CJK_RUN.search("".join(self.key)) is not None

    @property
    def short(self) -> bool:
        return len(self.text) <= 4 if self.cjk else len(self.key) == 1

    def overlaps(self, other: _Candidate) -> bool:
        one, two = self.text.lower(), other.text.lower()
        return bool({*self.key} & {*other.key}) or one in two or two in one


def pair_rounds(messages: Iterable[StoredMessage]) -> list[SpokenRound]:
    """Pair messages, which are in order, as rounds: the user's text and the reply."""
    pairs: list[tuple[str, str]] = []
    for message in messages:
        by_user = message.role == "user"
        if by_user or not pairs:
            pairs.append((message.text, "") if by_user else ("", message.text))
        else:
            asked, replied = pairs[-1]
            if len(replied) < _REPLIED_LENGTH:
                text = f"{replied}\n{message.text}" if replied else message.text
                pairs[-1] = (asked, text)
    return [SpokenRound(*pair) for pair in pairs]


def make_name(
    rounds: Sequence[SpokenRound],
    direction: NDArray[np.float32],
    embedder: Embedder,
    *,
    former: str = "",
    others: Sequence[str] = (),
    taken: Collection[str] = (),
    within: Sequence[str] = (),
) -> str:
    """Two to four words that tell what a topic is about, on one line of `NAME_LIMIT` at most.

    Args:
        rounds: The topic's rounds, in order; of many, the first and the last ones are read.
        direction: Mean vector [d] of the user's messages.
        embedder: Encoder of `direction`.
        former: The name so far, "" if there is none. A name of which the rounds hold no word stays:
            whoever gave it did not take it from them. A topic that has settled keeps its name as
            long as half as many rounds hold it as hold the new one.
        others: What other topics are about, a text each, such as their briefs.
        taken: Names that the topic may not get.
        within: Names of the topics that it is a part of; it is not called after their words alone.
    """
    if len(rounds) > _OPENING_ROUNDS + _NEWEST:
        rounds = [*rounds[:_OPENING_ROUNDS], *rounds[-_NEWEST:]]
    if former and _stays(former, rounds):
        return former
    used = {key for name in within for key in phrase_words(name)}
    ranked = [c for c in _rank(rounds, direction, embedder, others) if not used.issuperset(c.key)]
    avoided = {fold(name) for name in (*taken, *within)}
    names = [_compose(c, ranked) for c in ranked] or [_quote(rounds)]
    settled = not ranked or _stays(former, rounds, names[0])
    if former and fold(former) not in avoided and settled:
        return former
    numbered = (f"{names[0]} ({n})" for n in count(2))
    return next(n for n in chain(names, numbered) if fold(n) not in avoided)


def _stays(former: str, rounds: Sequence[SpokenRound], name: str = "") -> bool:
    """True if a topic keeps its former name, whatever comes or against a new name."""
    holding, new = (_count_holding(n, rounds) for n in (former, name))
    return not holding if not name else len(rounds) >= _SETTLED and 2 * holding >= new


def _count_holding(name: str, rounds: Sequence[SpokenRound]) -> int:
    """Rounds that hold at least half of the words of a name."""
    words = phrase_words(name) or {name.lower()}
    texts = (f"{r.asked[:_ASKED_LENGTH]}\n{r.replied[:_REPLIED_LENGTH]}".lower() for r in rounds)
    return sum(2 * sum(w in text for w in words) >= len(words) for text in texts)


def _rank(
    rounds: Sequence[SpokenRound],
    direction: NDArray[np.float32],
    embedder: Embedder,
    others: Sequence[str],
) -> list[_Candidate]:
    """The best candidates, with what they are worth, the best first."""
    held = Counter(word for text in others for word in phrase_words(text))
    language = detect_language([r.asked for r in rounds])
    for candidate in (found := _collect(rounds)):
        often = math.log1p(candidate.rounds) / math.log(len(rounds) + 2)
        candidate.score = (
            (often + _OPENING * candidate.early)
            * (1 - _CONTRAST * (1 - _contrast(candidate, held, len(others))))
            * _shape(candidate, language)
        )
    ranked = sorted(found, key=lambda c: (-c.score, c.key))[:_WEIGHED]
    if not ranked:
        return []
    for candidate in ranked:
        if candidate.unknown:
            _mend(candidate, rounds)
    vectors = embedder.embed([c.text for c in ranked])
    near = np.maximum(dot_products(vectors, direction), 0)
    best, nearest = ranked[0].score, float(near.max()) or 1.0
    for candidate, vector, nearness in zip(ranked, vectors, near, strict=True):
        candidate.vector = vector
        candidate.score = candidate.score / best + float(nearness) / nearest
    return sorted(ranked, key=lambda c: (-c.score, c.key))


def _contrast(candidate: _Candidate, held: Counter[str], others: int) -> float:
    """The mean inverse frequency of a phrase's words in other topics, 0 to 1."""
    words = [w for w in candidate.key if w not in LINKS]
    telling = (math.log((others + 2) / (held[w] + 1)) for w in words)
    return sum(telling) / len(words) / math.log(others + 2)


def _shape(candidate: _Candidate, language: Language) -> float:
    """Worth of a phrase by its form: classes, length, language."""
    score = candidate.grade
    if score < 1 and candidate.rounds <= 1:
        score *= _DOUBTFUL
    if candidate.cjk:
        score *= _WORDS[1] if len(candidate.text) < 3 else 1.0
    else:
        score *= _WORDS[len(candidate.key)]
    return score if candidate.cjk == (language == "zh") else score * _FOREIGN


def _collect(rounds: Sequence[SpokenRound]) -> list[_Candidate]:
    """The candidates of some rounds, without those that are nearly always part of a longer one."""
    found: dict[Key, _Candidate] = {}
    for place, round_ in enumerate(rounds):
        weights: dict[Key, float] = {}
        replied, asked = round_.replied[:_REPLIED_LENGTH], round_.asked[:_ASKED_LENGTH]
        for text, weight in ((replied, _REPLIED), (asked, 1.0)):
            for key, spelling, grade, unknown in find_phrases(text):
                candidate = found.setdefault(key, _Candidate(key, grade, unknown))
                candidate.spellings[spelling] += 1
                if weight == 1:
                    candidate.early = max(candidate.early, 1 - place / _OPENING_ROUNDS)
                weights[key] = weight
        for key, weight in weights.items():
            found[key].rounds += weight
    found = {k: c for k, c in found.items() if not c.unknown or c.rounds > 1}
    parts = {
        part
        for key, whole in found.items()
        for part in (key[1:], key[:-1])
        if part in found
        and whole.rounds >= _SAME * found[part].rounds
        and whole.grade >= found[part].grade
    }
    return [c for key, c in found.items() if key not in parts]


def _mend(candidate: _Candidate, rounds: Sequence[SpokenRound]) -> None:
    """Lengthen a phrase of unknown characters by the characters that always stand next to it."""
    text, whole = candidate.text, "\n".join(f"{r.asked}\n{r.replied}" for r in rounds)
    for _ in range(LONGEST_HAN - len(text)):
        seen = [m.span() for m in re.finditer(re.escape(text), whole)]
        before = {whole[max(0, a - 1) : a] for a, _ in seen}
        after = {whole[b : b + 1] for _, b in seen}
        if len(seen) > 1 and len(before) == 1 and HAN_INNER.fullmatch(min(before)):
            text = min(before) + text
        elif len(seen) > 1 and len(after) == 1 and HAN_INNER.fullmatch(min(after)):
            text += min(after)
        else:
            break
    candidate.spellings = Counter((trim_edges(text, candidate.text),))


def _compose(best: _Candidate, ranked: Sequence[_Candidate]) -> str:
    """A candidate as a name: the longer phrase that says it more exactly, or two joined."""
    for other in ranked:
        if {*best.key} < {*other.key} and other.score >= _LONGER * best.score:
            return _compose(other, ranked)
    name, joint = best.text, "与" if best.cjk else " and "
    if best.short:
        partners = [
            c
            for c in ranked
            if c.score >= _PARTNER * best.score
            and c.cjk == best.cjk
            and (c.short or (len(c.key) == 2 and c.rounds > 1))
            and not c.overlaps(best)
        ]
        if partners:
            other = max(partners, key=lambda c: c.score - _ALIKE * float(c.vector @ best.vector))
            name = f"{name}{joint}{other.text}"
    return cut(name[0].upper() + name[1:], NAME_LIMIT - _NUMBER).strip()


def _quote(rounds: Sequence[SpokenRound]) -> str:
    """The first words of the rounds, for a topic without any phrase."""
    for text in (text for r in rounds for text in (r.asked, r.replied)):
        if pieces := PIECE.findall(DATA.sub(" ", text)[:_ASKED_LENGTH])[:4]:
            words = " ".join(p[:12] if CJK_RUN.match(p) else p[:LONGEST_WORD] for p in pieces)
            return cut(words[0].upper() + words[1:], 40).strip()
    return "…"
