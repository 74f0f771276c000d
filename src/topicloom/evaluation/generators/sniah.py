"""S-NIAH in RULER's form (Hsieh et al., 2024): one needle in a haystack, at every depth."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

from pydantic import Field, validate_call

from topicloom.evaluation.conversations import Conversation, Question, RecordedMessage
from topicloom.evaluation.generators.haystack import noise, passages, prose
from topicloom.evaluation.generators.needles import Needle, NeedleKind, needles
from topicloom.evaluation.generators.telling import told

_INTRODUCTION = "Something special is hidden in this text; I shall ask you about it afterwards."


@validate_call
def sniah(
    *,
    needle: NeedleKind = "number",
    haystack: Literal["noise", "prose"] = "noise",
    tokens: Annotated[int, Field(ge=100, le=10_000_000)] = 100_000,
    depths: Annotated[int, Field(ge=1, le=1_000)] = 40,
    form: Literal["chat", "prompt"] = "chat",
    message: Annotated[int, Field(ge=20, le=100_000)] = 200,
    together: bool = False,
    seed: int = 0,
) -> Iterator[Conversation]:
    """Needles in haystacks: a conversation and a question for each depth.

    Args:
        needle: What is hidden.
        haystack: A few sentences over and over, or small stories.
        tokens: Length of the haystack, by `budget_tokens`.
        depths: At how many places, evenly from the beginning (0) to the end (1).
        form: Told in messages, or one long message.
        message: Tokens of a message of the chat.
        together: Hide all needles in one haystack: a replay for all depths, and harder, since
            every needle but one is a wrong one.
        seed: Where chance begins.

    Yields:
        Conversations whose questions have the depth as their category (`0.500`) and the message
        with the needle as evidence.
    """
    draw = random.Random(f"sniah-{needle}-{haystack}-{seed}")
    count = max(1, round(tokens / message))
    hidden = [
        _Hidden(one, share, place=round(share * (count - 1)))
        for one, share in zip(needles(draw, needle, depths), _shares(depths), strict=True)
    ]
    for number, group in enumerate([hidden] if together else [[h] for h in hidden], start=1):
        sentences = noise() if haystack == "noise" else prose(random.Random(draw.random()))
        texts = _texts(islice(passages(sentences, message), count), group)
        yield Conversation(
            id=f"sniah-{needle}-{haystack}-{tokens}-{seed}-{number}",
            messages=tuple(told(texts)) if form == "chat" else (_whole(texts),),
            questions=tuple(_question(h, h.place + 1 if form == "chat" else 1) for h in group),
        )


@dataclass(frozen=True, slots=True)
class _Hidden:
    """A needle and where it is."""

    needle: Needle
    depth: float
    """0 for the beginning, 1 for the end."""
    place: int
    """Number of its passage, from 0."""


def _shares(depths: int) -> list[float]:
    return [i / (depths - 1) for i in range(depths)] if depths > 1 else [0.5]


def _texts(runs: Iterator[list[str]], group: Sequence[_Hidden]) -> Iterator[str]:
    """Passages, with needles in the middle of those that have some."""
    for number, run in enumerate(runs):
        middle = len(run) // 2
        sentences = [h.needle.sentence for h in group if h.place == number]
        yield " ".join([*run[:middle], *sentences, *run[middle:]])


def _whole(texts: Iterator[str]) -> RecordedMessage:
    return RecordedMessage(id="u1", role="user", text="\n".join([_INTRODUCTION, *texts]))


def _question(hidden: _Hidden, message: int) -> Question:
    return Question(
        id=f"depth-{hidden.depth:.3f}",
        category=f"{hidden.depth:.3f}",
        question=hidden.needle.question,
        answer=hidden.needle.value,
        evidence=(f"u{message}",),
    )
