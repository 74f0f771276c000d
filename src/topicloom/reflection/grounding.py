"""Keeps the claims of a reflector that the user's own words bear out, and drops the others."""

from __future__ import annotations

import re
from calendar import monthrange
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from topicloom.reflection.facts import Claim, Fact, Said
from topicloom.reflection.statements import find_assertions, is_of_another, is_wish
from topicloom.search.encoders import default_embedder
from topicloom.search.words import words_of
from topicloom.state.language import CJK_RUN
from topicloom.state.safe_text import clip
from topicloom.state.stored_message import StoredMessage, parse_iso_seconds

_LEAST_LIKENESS = 0.47
"""Likeness from which a sentence says what a claim says.

Chosen with the encoder that ships on 90 pairs of a user's words and a claim, 40 of them Chinese, in
`tests/reflection/test_grounding.py`: 84 are judged rightly, and at no other value more; then 30 of
32 others. Other encoders have other scales, so it is always this one."""
_CHARACTER_SHARE = 0.3
"""Weight of the share of a claim's Chinese characters that were said. Without it, 83 of the 90 are
judged rightly; from .25 to .35 it is 84."""
_USER = (
    (re.compile(r"\b(?:the )?user's\b", re.IGNORECASE), "my"),
    (re.compile(r"\b(?:the )?user\b", re.IGNORECASE), "I"),
    (re.compile(r"用户的?|对方的?|本人的?"), "我"),
)
"""Names of the user in claims, and what the user says instead."""
_NEGATION = re.compile(r"\b(?:not|no|never|cannot|without)\b|n['’]t\b|[不没未别]", re.IGNORECASE)

_NAMED = re.compile(r"\d+(?:[.,:/-]\d+)*|(?<=[a-z0-9,;'’)] )[A-Z][A-Za-z'’-]+")
"""Numbers, and words that are capitalised within a sentence."""


@dataclass(frozen=True, slots=True)
class GroundedClaims:
    """The claims of a reflector that may be stored."""

    facts: tuple[tuple[Fact, tuple[str, ...]], ...]
    """Facts in order, each with the keys of those that it contradicts."""
    dropped: Mapping[str, int]


def ground_claims(
    claims: Sequence[Claim],
    messages: Sequence[StoredMessage],
    ids: Mapping[str, str],
    refs: Mapping[str, str],
) -> GroundedClaims:
    """Keep the claims that rest on the user's own messages.

    `ids` are the lasting ids of the messages that the reflector was shown, and `refs` their refs
    in the transcript, if they are in it, both by short id.
    """
    by_id = {m.id: m for m in messages}
    dropped: Counter[str] = Counter()
    facts: list[tuple[Fact, tuple[str, ...]]] = []
    for claim in claims:
        if reason := find_flaw(claim, by_id):
            dropped[reason] += 1
            continue
        newest = max((by_id[i] for i in claim.messages), key=_get_time_key)
        lasting = tuple(dict.fromkeys(ids[i] for i in claim.messages))
        since, until = _read_span(claim)
        own = [by_id[i] for i in claim.messages if by_id[i].of_user]
        fact = Fact(
            claim.text,
            lasting,
            newest.time,
            said=(Said(newest.time, ids[newest.id], refs.get(newest.id, "")),),
            since=since,
            until=until,
            quote=_find_quote(claim.text, own),
            origin=newest.origin or "",
        )
        facts.append((fact, claim.supersedes))
    return GroundedClaims(tuple(facts), dict(dropped))


_DAY = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2}))?)?")
_QUOTE = 160
"""Characters of the user's own words that stand beside a fact."""


def _read_span(claim: Claim) -> tuple[str, str]:
    """The first and the last day on which a claim holds; "" where its words do not say."""
    since, until = read_date(claim.since), read_date(claim.until, last=True)
    return ("", "") if since and until and since > until else (since, until)


def read_date(text: str, *, last: bool = False) -> str:
    """The first day that a date names, `2026`, `2026-05` or `2026-05-03`, or the last; ISO 8601.

    "" if it names none.
    """
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return ""
    year, month, day = (int(part) if part else 0 for part in found.groups())
    month = month or (12 if last else 1)
    try:
        day = day or (monthrange(year, month)[1] if last else 1)
        return date(year, month, day).isoformat()
    except ValueError:
        return ""


def _find_quote(text: str, own: Sequence[StoredMessage]) -> str:
    """The user's own words that say what a claim says; "" if they are the claim's."""
    said = _say_as_user(text, own)
    clauses = [c for m in own for c in find_assertions(m.text)]
    if any(said in clause for clause in clauses):
        return ""
    best = next(iter(_select_alike(said, clauses)), "")
    return clip(best.strip(), _QUOTE)


def find_flaw(claim: Claim, shown: Mapping[str, StoredMessage]) -> str:
    """The reason why a claim may not be kept; "" if it may. `shown` is by short id."""
    if not claim.messages:
        return "rests on no message"
    if any(i not in shown for i in claim.messages):
        return "rests on a message that was not shown"
    own = [shown[i] for i in claim.messages if shown[i].of_user]
    if not own:
        return "rests on no message of the user"
    if find_unsaid(claim.text, own):
        return "names what the user did not"
    text = _say_as_user(claim.text, own)
    return "" if any(_bears_out(m.text, text) for m in own) else "is not what the user said"


def _bears_out(said: str, text: str) -> bool:
    """True if a message says what a text in the first person says."""
    assertions = [s for s in find_assertions(said) if is_wish(text) or not is_wish(s)]
    if text and any(text in sentence for sentence in assertions):
        return True
    alike = _select_alike(text, assertions)
    ours = any(not is_of_another(sentence, text) for sentence in alike)
    return ours and not any(_negates(text, sentence) for sentence in alike)


def _say_as_user(text: str, own: Sequence[StoredMessage]) -> str:
    """A claim about the user in the first person, without the name of who speaks."""
    for speaker in {m.speaker for m in own if m.speaker}:
        text = text.removeprefix(f"{speaker}: ")
    for pattern, word in _USER:
        text = pattern.sub(word, text)
    return text


def _select_alike(text: str, sentences: Sequence[str]) -> list[str]:
    """The sentences that mean what a text means, whether they deny it or not."""
    vectors = default_embedder().embed([text, *sentences])
    cosines = vectors[1:] @ vectors[0]
    shares = [_share_characters(text, sentence) for sentence in sentences]
    likeness = cosines + [_CHARACTER_SHARE * share for share in shares]
    return [s for s, value in zip(sentences, likeness, strict=True) if value >= _LEAST_LIKENESS]


def _share_characters(text: str, sentence: str) -> float:
    """Share of the Chinese characters of a text that are in a sentence; 0 if it has none."""
    own = {c for run in CJK_RUN.findall(text) for c in run}
    return len(own & set(sentence)) / len(own) if own else 0.0


def _negates(text: str, sentence: str) -> bool:
    """True if the one says in the same words that it is so, and the other that it is not."""
    bare, said = (_NEGATION.sub("", t) for t in (text, sentence))
    odd = (len(_NEGATION.findall(text)) - len(_NEGATION.findall(sentence))) % 2
    return bool(odd) and set(words_of(bare)) <= set(words_of(said))


def _get_time_key(message: StoredMessage) -> tuple[float, int]:
    return parse_iso_seconds(message.time) or 0.0, message.seq


def find_unsaid(text: str, messages: Sequence[StoredMessage]) -> list[str]:
    """The numbers of a text, and its names in Latin letters, that stand in none of the messages.

    A capitalised word counts as a name within a sentence only. What a message is dated by counts
    as said: the day, its weekday, the month's name and the year.
    """
    named = dict.fromkeys(match[0] for match in _NAMED.finditer(text))
    if not named:
        return []
    days = {m.day for m in messages if parse_iso_seconds(m.day) is not None}
    dates = map(date.fromisoformat, days)
    dated = [f"{d:%Y %m %d %B %b %A %a} {d.month} {d.day}" for d in dates]
    said = _join_numbers("\n".join([*(m.line for m in messages), *dated])).lower()
    return [name for name in named if not all(_stands_in(w, said) for w in _split_words(name))]


def _split_words(text: str) -> list[str]:
    """Runs of letters and of digits in lower case, without a number's commas and a name's `'s`."""
    return re.findall(r"\d+|[^\W\d_]+", re.sub(r"['’]s\b", "", _join_numbers(text)).lower())


def _join_numbers(text: str) -> str:
    """A text without the commas within its numbers."""
    return re.sub(r"(\d),(?=\d{3})", r"\1", text)


def _stands_in(word: str, text: str) -> bool:
    """True if a word stands in a text with no letter beside its letters, no digit beside digits.

    A topic's text is long and a summary's names are few: looking for these is faster than taking
    the text to pieces.
    """
    belongs = str.isdecimal if word.isdecimal() else str.isalpha
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (belongs(text[at - 1 : at]) or belongs(text[end : end + 1])):
            return True
        at = text.find(word, at + 1)
    return False
