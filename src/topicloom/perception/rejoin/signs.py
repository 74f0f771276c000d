"""What the wording of one message shows, before any topic is looked at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from topicloom.boundary.cues import Utterance
from topicloom.index.embedder import Vectors
from topicloom.perception.rejoin.lexicon import Columns, Gist, Lexicon, columns_of, unit

READ_CHARACTERS = 4_000
"""Characters read of one message."""

_TOKEN = re.compile(r"[^\s:,;.!?()<>\"']+")
_ADDRESS = re.compile(r"\s*@?([^\s:,;]{2,24})\s*[:,;](?!//)")
_QUESTION = re.compile(r"[?？]|[吗呢么]\s*[。.!！~]*\s*$")
_CONTINUES = re.compile(
    r"\s*(it|its|it's|that|that's|this|these|those|they|he|she|his|her|then|and|but|so|or|also|yes"
    r"|yeah|yep|no|nope|ok|okay|oh|ah|hmm|well|thanks|thank|right|sure|same|because|which|what"
    r" about|how about|那|它|他|她|这|是的|对|嗯|哦|好|行|可以|没|不|而且|但|因为|所以|还有|还"
    r"|知道|哈|确实|当然)",
    re.IGNORECASE,
)
_CLOSES = re.compile(
    r"\b(forget|disregard|cancel|never ?mind|any ?more|no longer|has ended|is over|done with|solved"
    r"|fixed|works now|that's all|thanks|thank you|bye)\b|忘掉|忘了吧|取消|算了|结束|不用了|谢谢"
    r"|再见",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, eq=False)
class Signs:
    """A message, taken apart."""

    vector: Vectors
    """Its unit vector [d]."""
    gist: Gist
    """The subject of its words [k]."""
    words: Columns
    """Its distinct words."""
    hours: float | None
    """When it was said."""
    voice: str
    """Who speaks, in lower case: the name, else the role, else nothing."""
    code: int
    """A number that tells who speaks; 0 for nobody."""
    role: str | None
    """The part the speaker plays."""
    name: str
    """The speaker's name if others could call it, else nothing."""
    tokens: frozenset[str]
    """What stands between spaces and punctuation, in lower case: names are looked up here."""
    addressed: str
    """The token that it begins with before a colon or comma, in lower case, else nothing."""
    question: bool
    """Asks something."""
    continues: bool
    """Begins as one goes on: a pronoun, "and", "yes"."""
    closes: bool
    """Says that something is over."""
    length: float
    """Logarithm of one plus its characters."""


def signs_of(said: Utterance, vector: Vectors, lexicon: Lexicon) -> Signs:
    """Take a message apart.

    Args:
        said: The message.
        vector: Its unit vector [d].
        lexicon: Where words lie.
    """
    text = said.text[:READ_CHARACTERS]
    name = (said.speaker or "").lower()
    address = _ADDRESS.match(text)
    words = columns_of(text)
    voice = name or said.role or ""
    return Signs(
        vector=vector,
        gist=lexicon.gist(words),
        words=words,
        hours=said.hours,
        voice=voice,
        code=code_of(voice),
        role=said.role,
        name=name if len(name) > 1 else "",
        tokens=frozenset(_TOKEN.findall(text.lower())),
        addressed=address.group(1).lower() if address else "",
        question=bool(_QUESTION.search(text)),
        continues=bool(_CONTINUES.match(text)),
        closes=bool(_CLOSES.search(text)),
        length=float(np.log1p(len(text))),
    )


def code_of(voice: str) -> int:
    """A number that tells a voice; 0 for nobody's."""
    return crc32(voice.encode("utf-8", "surrogatepass"))


def joined(replies: Sequence[Signs], lexicon: Lexicon) -> Signs:
    """Several replies as one message, by the voice of the first.

    Args:
        replies: Messages, at least one.
        lexicon: Where words lie.
    """
    first = replies[0]
    if len(replies) == 1:
        return first
    words = np.unique(np.concatenate([signs.words for signs in replies]))
    return replace(
        first,
        vector=unit(np.sum([signs.vector for signs in replies], axis=0)),
        gist=lexicon.gist(words),
        words=words,
        tokens=frozenset().union(*(signs.tokens for signs in replies)),
        question=any(signs.question for signs in replies),
        closes=any(signs.closes for signs in replies),
        length=float(np.log1p(sum(np.expm1(signs.length) for signs in replies))),
    )
