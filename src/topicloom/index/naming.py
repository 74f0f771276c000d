"""Names of topics without a language model: the phrase that tells a topic from the others.

A candidate is a run of nouns with the adjectives before them. Which words are nouns, and where
Chinese words end, is in a list (`lexicon.txt.gz`, made by `scripts/build_lexicon.py`). A candidate
is worth more the more rounds hold it, the earlier the user said it, the fewer other topics hold its
words, and the nearer its vector is to the topic's. A short one is joined to a second one.
"""

from __future__ import annotations

import gzip
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from itertools import chain, count

import numpy as np
from numpy.typing import NDArray

from topicloom.index.embedder import Embedder, dot_products
from topicloom.index.words import FUNCTION_WORDS, stem
from topicloom.prompts.loader import load_rows, load_words
from topicloom.prompts.wording import strip_own_replies
from topicloom.state.language import CJK_RUN, Language, detect_language

NAME_LIMIT = 80
"""Characters of a topic's name."""
_NUMBER = 8
"""Characters that are left for a number behind a name."""
_SETTLED = 10
"""Rounds from which a topic keeps its name, while half as many rounds hold it as hold a new one."""
_SAID_LENGTH, _REPLIED_LENGTH = 600, 600
"""Characters of what the user said, and of a reply, that are read."""
_REPLIED = 0.4
"""Weight of a round whose reply alone holds a phrase, against 1 where the user says it."""
_OPENING_ROUNDS, _OPENING = 3, 0.35
"""The rounds in which one says what a topic is about, and what a phrase is worth more there."""
_NEWEST = 100
"""Rounds that are read, beside those."""
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
_LONGEST_WORD, _LONGEST_HAN, _LONGEST_KNOWN = 30, 8, 5
"""Letters of a word, characters of a Chinese phrase, and of a word in the list of words."""


@dataclass(frozen=True, slots=True)
class SpokenRound:
    """A round of a topic, as far as names go."""

    said: str
    """What the user said."""
    replied: str = ""
    """The reply."""


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    key: str
    """Lower case, without English endings."""
    kind: str
    """`n` noun, `a` adjective, `v` verb, `p` -ing form or participle, `o` preposition; of Chinese
    also `1` single character that is a noun, `u` characters that are no known word."""


_Key = tuple[str, ...]


@dataclass(slots=True)
class _Candidate:
    key: _Key
    grade: float
    """How much of a name it is by the classes of its words, 0 to 1."""
    unknown: bool
    rounds: float = 0.0
    early: float = 0.0
    spellings: Counter[str] = field(default_factory=Counter)
    worth: float = 0.0
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


def pair_rounds(messages: Sequence[tuple[bool, str]]) -> list[SpokenRound]:
    """Rounds of messages, in order: each is True and its text if the user said it."""
    pairs: list[tuple[str, str]] = []
    for by_user, text in messages:
        if by_user or not pairs:
            pairs.append((text, "") if by_user else ("", text))
        else:
            said, replied = pairs[-1]
            if len(replied) < _REPLIED_LENGTH:
                pairs[-1] = (said, f"{replied}\n{text}" if replied else text)
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
        direction: Mean vector [d] of what the user said.
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
    used = {key for name in within for key in _words_of(name)}
    ranked = [c for c in _rank(rounds, direction, embedder, others) if not used.issuperset(c.key)]
    avoided = {name.casefold() for name in (*taken, *within)}
    names = [_compose(c, ranked) for c in ranked] or [_quote(rounds)]
    if former and former.casefold() not in avoided and _stays(former, rounds, names[0]):
        return former
    numbered = (f"{names[0]} ({n})" for n in count(2))
    return next(n for n in chain(names, numbered) if n.casefold() not in avoided)


def _stays(former: str, rounds: Sequence[SpokenRound], name: str = "") -> bool:
    """True if a topic keeps its former name, whatever comes or against a new name."""
    holding, new = (_count_holding(n, rounds) for n in (former, name))
    return not holding if not name else len(rounds) >= _SETTLED and 2 * holding >= new


def _count_holding(name: str, rounds: Sequence[SpokenRound]) -> int:
    """Rounds that hold at least half of the words of a name."""
    words = _words_of(name) or {name.lower()}
    texts = (f"{r.said[:_SAID_LENGTH]}\n{r.replied[:_REPLIED_LENGTH]}".lower() for r in rounds)
    return sum(2 * sum(w in text for w in words) >= len(words) for text in texts)


def _rank(
    rounds: Sequence[SpokenRound],
    direction: NDArray[np.float32],
    embedder: Embedder,
    others: Sequence[str],
) -> list[_Candidate]:
    """The best candidates, with what they are worth, the best first."""
    held = Counter(word for text in others for word in _words_of(text))
    language = detect_language([r.said for r in rounds])
    for candidate in (found := _collect(rounds)):
        often = math.log1p(candidate.rounds) / math.log(len(rounds) + 2)
        candidate.worth = (
            (often + _OPENING * candidate.early)
            * (1 - _CONTRAST * (1 - _contrast(candidate, held, len(others))))
            * _shape(candidate, language)
        )
    ranked = sorted(found, key=lambda c: (-c.worth, c.key))[:_WEIGHED]
    if not ranked:
        return []
    for candidate in ranked:
        if candidate.unknown:
            _mend(candidate, rounds)
    vectors = embedder.embed([c.text for c in ranked])
    near = np.maximum(dot_products(vectors, direction), 0)
    best, nearest = ranked[0].worth, float(near.max()) or 1.0
    for candidate, vector, nearness in zip(ranked, vectors, near, strict=True):
        candidate.vector = vector
        candidate.worth = candidate.worth / best + float(nearness) / nearest
    return sorted(ranked, key=lambda c: (-c.worth, c.key))


def _contrast(candidate: _Candidate, held: Counter[str], others: int) -> float:
    """How alone a topic is with the words of a phrase, 0 to 1: their mean inverse frequency."""
    words = [w for w in candidate.key if w not in _LINKS]
    telling = (math.log((others + 2) / (held[w] + 1)) for w in words)
    return sum(telling) / len(words) / math.log(others + 2)


def _shape(candidate: _Candidate, language: Language) -> float:
    """Worth of a phrase by its form: classes, length, language."""
    worth = candidate.grade
    if worth < 1 and candidate.rounds <= 1:
        worth *= _DOUBTFUL
    if candidate.cjk:
        worth *= _WORDS[1] if len(candidate.text) < 3 else 1.0
    else:
        worth *= _WORDS[len(candidate.key)]
    return worth if candidate.cjk == (language == "zh") else worth * _FOREIGN


def _collect(rounds: Sequence[SpokenRound]) -> list[_Candidate]:
    """The candidates of some rounds, without those that are nearly always part of a longer one."""
    found: dict[_Key, _Candidate] = {}
    for place, round_ in enumerate(rounds):
        weights: dict[_Key, float] = {}
        replied, said = round_.replied[:_REPLIED_LENGTH], round_.said[:_SAID_LENGTH]
        for text, weight in ((replied, _REPLIED), (said, 1.0)):
            for key, spelling, grade, unknown in _find_phrases(text):
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
    """Lengthen a phrase of unknown characters by what stands beside it wherever it is said."""
    text, whole = candidate.text, "\n".join(f"{r.said}\n{r.replied}" for r in rounds)
    for _ in range(_LONGEST_HAN - len(text)):
        seen = [m.span() for m in re.finditer(re.escape(text), whole)]
        before = {whole[max(0, a - 1) : a] for a, _ in seen}
        after = {whole[b : b + 1] for _, b in seen}
        if len(seen) > 1 and len(before) == 1 and _HAN_INNER.fullmatch(min(before)):
            text = min(before) + text
        elif len(seen) > 1 and len(after) == 1 and _HAN_INNER.fullmatch(min(after)):
            text += min(after)
        else:
            break
    candidate.spellings = Counter((text,))


def _compose(best: _Candidate, ranked: Sequence[_Candidate]) -> str:
    """A candidate as a name: the longer phrase that says it more exactly, or two joined."""
    for other in ranked:
        if {*best.key} < {*other.key} and other.worth >= _LONGER * best.worth:
            return _compose(other, ranked)
    name, joint = best.text, "与" if best.cjk else " and "
    if best.short:
        partners = [
            c
            for c in ranked
            if c.worth >= _PARTNER * best.worth
            and c.cjk == best.cjk
            and (c.short or (len(c.key) == 2 and c.rounds > 1))
            and not c.overlaps(best)
        ]
        if partners:
            other = max(partners, key=lambda c: c.worth - _ALIKE * float(c.vector @ best.vector))
            name = f"{name}{joint}{other.text}"
    return (name[0].upper() + name[1:])[: NAME_LIMIT - _NUMBER].strip()


def _quote(rounds: Sequence[SpokenRound]) -> str:
    """The first words that were said, for a topic without any phrase."""
    for text in (text for r in rounds for text in (r.said, r.replied)):
        if pieces := _PIECE.findall(_DATA.sub(" ", text)[:_SAID_LENGTH])[:4]:
            words = " ".join(p[:12] if CJK_RUN.match(p) else p[:_LONGEST_WORD] for p in pieces)
            return (words[0].upper() + words[1:])[:40].strip()
    return "…"


# Phrases of a text

_LINKS = frozenset(("of", "to", "for", "in"))
"""Prepositions that a phrase may hold: "trip to Lagos"."""
_KEPT = frozenset(("first", "second", "new", "half"))
"""Empty words that make names all the same: "first aid"."""
_EMPTY = (FUNCTION_WORDS | load_words("empty_words") | load_words("name_fillers_en")) - _KEPT
_EMPTY_HAN = load_words("name_fillers_zh")
_NOUNS_HAN = load_words("name_nouns_zh")
_HAN_BREAK = frozenset("".join(load_rows("cues/han_breaks")))
_HAN_STOP = _HAN_BREAK | frozenset("".join(load_rows("cues/han_edges"))) | _EMPTY_HAN
_BEFORE_VERBS = load_words("before_verbs")
_BEFORE_OBJECTS = load_words("before_objects")

_ASIDES = re.compile("|".join(load_rows("cues/asides")), re.I)
_DATA = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+|www\.\S+|<[^<>\n]*>", re.S)
_ADDRESSEE = re.compile(r"^\s*[\w|\[\]-]{2,20}: ", re.M)
_TITLE = re.compile(r"《([\w·：，！？ -]{2,14})》")
_CLAUSE = re.compile(r"[^\w\s'’-]+|_|\n|(?<!\w)['’-]+|['’-]+(?!\w)|(?<=\s)-+\s")
_PIECE = re.compile(rf"{CJK_RUN.pattern}|(?:(?!{CJK_RUN.pattern})[\w'’-])+")
_HAN = re.compile(r"([\u3400-\u9fff]+)")
_UNSPACED = re.compile(r"(?![\u1100-\u11ff\uac00-\ud7ff])" + CJK_RUN.pattern)
"""Writing without spaces: all CJK but Hangul."""
_HAN_INNER = re.compile(f"(?![{''.join(_HAN_BREAK)}])[\u3400-\u9fff]")


@cache
def _lexicon(language: Language) -> dict[str, str]:
    """Classes of words; in Chinese each with the power of two of its count, `n7`."""
    packed = (files("topicloom.index") / "lexicon.txt.gz").read_bytes()
    found: dict[str, str] = {}
    for line in gzip.decompress(packed).decode().splitlines():
        kind, *words = line.split(" ")
        if kind.startswith(language):
            found.update(dict.fromkeys(words, kind.removeprefix(language)))
    return found


@lru_cache(2_048)
def _words_of(text: str) -> frozenset[str]:
    """The words of a text that names hold."""
    return frozenset(word for key, *_ in _find_phrases(text[:2_000]) for word in key) - _LINKS


def _find_phrases(text: str) -> Iterator[tuple[_Key, str, float, bool]]:
    """Candidates of a text: key, spelling, grade, and True if it holds unknown characters."""
    plain = _ADDRESSEE.sub("", _ASIDES.sub("\n", _DATA.sub("\n", strip_own_replies(text))))
    for title in _TITLE.findall(plain):
        yield (title.lower(),), f"《{title}》", 1.0, False
    for clause in _CLAUSE.split(_TITLE.sub("\n", plain)):
        run: list[_Token] = []
        for token in chain(_tokens(clause), (None,)):
            if token is not None:
                run.append(token)
                continue
            yield from _phrases_of(run)
            run = []


def _phrases_of(run: Sequence[_Token]) -> Iterator[tuple[_Key, str, float, bool]]:
    longest = max(_WORDS)
    for stop in range(1, len(run) + 1):
        last = run[stop - 1].text
        cjk, ing = not last.isascii() and CJK_RUN.search(last) is not None, last.endswith("ing")
        for start in range(max(0, stop - longest), stop):
            tokens = run[start:stop]
            kinds = "".join([t.kind for t in tokens])
            fits = not cjk or 2 <= sum(len(t.text) for t in tokens) <= _LONGEST_HAN
            grade = _grade_cjk(kinds) if cjk else _grade(kinds, ing)
            if fits and grade:
                yield tuple([t.key for t in tokens]), _spell(tokens), grade, "u" in kinds


@lru_cache(4_096)
def _grade(kinds: str, ing: bool) -> float:
    """How much of a name a run of words is by their classes, 0 to 1.

    `ing` is True if the last word ends so.
    """
    if "o" in kinds:
        return 0.8 if re.fullmatch(r"[anp]*non?n", kinds) else 0.0
    if kinds.endswith("p"):
        return 0.8 if ing and re.fullmatch("n+p", kinds) else 0.0
    if not kinds.endswith("n"):
        return 0.0
    if kinds == "n":
        return 0.75 if ing else 1.0
    return {"a": 0.9, "p": 0.7}.get(kinds[0], 1.0)


@lru_cache(4_096)
def _grade_cjk(kinds: str) -> float:
    """As `_grade`, of a run that ends in Chinese."""
    if not re.fullmatch("[navu][navu]{0,2}|[navu]{1,2}1", kinds) or kinds[-1] == "a":
        return 0.0
    if kinds[-2:] in ("a1", "v1"):
        return 0.0
    last = {"v": 0.75 if len(kinds) > 1 else 0.5, "1": 0.8}.get(kinds[-1], 1.0)
    return last * {"v": 0.5, "a": 0.9}.get(kinds[0] if len(kinds) > 1 else "", 1.0)


def _spell(tokens: Sequence[_Token]) -> str:
    text = ""
    if all(t.text.isascii() for t in tokens):
        return " ".join([t.text for t in tokens])
    for token in tokens:
        close = _UNSPACED.match(text[-1:]) and _UNSPACED.match(token.text)
        text += token.text if close or not text else f" {token.text}"
    return text


def _tokens(clause: str) -> Iterator[_Token | None]:
    """The words of a clause; None for one that no name holds."""
    pieces = _PIECE.findall(clause)
    for place, piece in enumerate(pieces):
        if not piece.isascii() and CJK_RUN.match(piece):
            yield from _cjk_tokens(piece)
        else:
            before = pieces[place - 1].lower() if place else ""
            after = pieces[place + 1].lower() if place + 1 < len(pieces) else ""
            yield _latin_token(piece, before, after)


def _latin_token(word: str, before: str, after: str) -> _Token | None:
    word = word.replace("’", "'")
    low = word.lower()
    owner = low.removesuffix("'s")
    if low in _LINKS:
        return _Token(low, low, "o")
    if len(owner) < 2 or len(word) > _LONGEST_WORD or word.count("-") > 2:
        return None
    if owner in _EMPTY or "'" in owner or not word[0].isalpha():
        return None
    if owner != low or low in _KEPT:
        return _Token(word, stem(owner), "a")
    kind = _classify(low)
    if kind == "a" and before in _BEFORE_OBJECTS and _ends_phrase(after):
        kind = "n"  # "the token"
    if kind == "b":  # "the sink", "kitchen sink"
        kind = "n" if before in _BEFORE_OBJECTS or _is_noun(before) else "v"
    as_verb = before in _BEFORE_VERBS and not low.endswith("s")
    with_object = after in _BEFORE_OBJECTS and before in ("", "to", "and", "or", "then")
    if kind in "xv" or (kind == "n" and (as_verb or with_object)):
        return None
    return _Token(word, stem(low), kind)


def _is_noun(before: str) -> bool:
    """True if a word is a singular noun, so that what follows it may be one as well."""
    return (
        before not in _EMPTY
        and not before.endswith("s")
        and _classify(before) == "n"
        and before.isalpha()
    )


def _ends_phrase(after: str) -> bool:
    """True if a word that comes after a noun phrase, or none, is no part of it."""
    return not after or after in _EMPTY or len(after) > _LONGEST_WORD or _classify(after) in "xvb"


def _classify(word: str) -> str:
    """Class of an English word, by the list or by its ending."""
    known = _lexicon("en").get(word)
    if known:
        return known
    if "-" in word:
        first, _, last = word.partition("-")
        compound = _lexicon("en").get(last) or _lexicon("en").get(first)
        return "a" if compound in ("a", "p") else "n"
    if len(word) > 5 and word.endswith("ly"):
        return "x"
    return "p" if len(word) > 5 and word.endswith("ed") else "n"


def _cjk_tokens(run: str) -> Iterator[_Token | None]:
    for part in filter(None, _HAN.split(run)):
        if _HAN.match(part):
            yield from _join_unknown(_segment(part))
        else:  # kana or Hangul, which is not cut
            yield _Token(part, part, "n") if 1 < len(part) <= _LONGEST_HAN else None


def _segment(run: str) -> list[tuple[str, str]]:
    """The likeliest words of a run of Han with their classes, by the counts of the words alone."""
    lexicon = _lexicon("zh")
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(run) + 1):
        options = []
        for start in range(max(0, end - _LONGEST_KNOWN), end):
            known = lexicon.get(run[start:end])
            if known or end - start == 1:
                power = int(known[1:]) if known else 0
                options.append((best[start][0] + power - _WHOLE, start))
        best.append(max(options))
    words: list[tuple[str, str]] = []
    end = len(run)
    while end:
        start = best[end][1]
        words.append((run[start:end], lexicon.get(run[start:end], "u0")))
        end = start
    return words[::-1]


_WHOLE = 25.5
"""Power of two of all counts in the dictionary that the list is from, 60 million, less a half."""


def _join_unknown(words: Sequence[tuple[str, str]]) -> Iterator[_Token | None]:
    """Tokens of Han words; two to four single characters in a row may be a name."""
    run: list[tuple[str, str]] = []
    for word, kind in (*words, ("", "x0")):
        if len(word) == 1 and word not in _HAN_STOP:
            run.append((word, kind))
            continue
        if 2 <= len(run) <= 4:
            joined = "".join(w for w, _ in run)
            yield _Token(joined, joined, "u")
        else:
            for single, single_kind in run:
                yield _Token(single, single, "1") if single_kind[0] == "n" else None
        run = []
        if word in _NOUNS_HAN:
            yield _Token(word, word, "n")
        elif len(word) < 2 or kind[0] == "x" or "的" in word or word in _EMPTY_HAN:
            yield None
        else:
            yield _Token(word, word, kind[0])
