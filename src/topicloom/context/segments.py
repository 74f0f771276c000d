"""The deterministic layout: first round, summaries of what lies between, newest rounds.

    system, and the summaries, a segment each | the first round | the newest rounds

A summary is made of the originals of its segment, once, and stays as it is: nothing is ever
summarised again. What does not fit is left out by whole segments, oldest first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Lock

from cachetools import LRUCache, cached
from langchain_core.messages import SystemMessage

from topicloom.context.token_count import TokenCounter
from topicloom.context.transcript import date_messages, describe_blocks
from topicloom.prompts.wording import get_wording
from topicloom.state.fence import fence
from topicloom.state.language import Language
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import StoredMessage

_SHORTEST, _LONGEST = 5, 8
"""Rounds of a segment."""
_CACHE_SIZE = 10_000
"""Summaries that are kept in memory: those of some hundred conversations."""

Summarize = Callable[[Sequence[StoredMessage]], str]
"""Sums up the messages of one segment, from their originals."""


@dataclass(frozen=True, slots=True)
class ContextWindowPolicy:
    """The rounds that stay word for word."""

    first: int = 1
    """Rounds at the beginning."""
    last: int = 5
    """Rounds at the end."""

    def select(
        self, rounds: Sequence[Round]
    ) -> tuple[Sequence[Round], Sequence[Round], Sequence[Round]]:
        """First rounds, those between, and the newest; each round in one of them."""
        end = max(len(rounds) - self.last, min(self.first, len(rounds)))
        return rounds[: self.first], rounds[self.first : end], rounds[end:]


@dataclass(frozen=True, slots=True)
class Segment:
    """The summary of some consecutive rounds."""

    first: int
    """Number of the first message that it stands for."""
    last: int
    """Number of the last one."""
    text: str
    media: str = ""
    """Lines for the content of the messages that is no text."""

    @property
    def line(self) -> str:
        """The summary as the prompt shows it."""
        return f"[m{self.first}–m{self.last}] {fence(self.text)}{self.media}"


class SummaryManager:
    """Cuts rounds into segments and has each summed up once.

    A segment ends where a topic begins, or at its greatest length. Nothing that is said later
    changes a cut, so segments are only added.
    """

    def __init__(self, summarize: Summarize) -> None:
        # By what the messages say: one manager serves many conversations.
        self._made: LRUCache[bytes, str] = LRUCache(_CACHE_SIZE)
        self._lock = Lock()
        self._summarize = cached(self._made, key=_digest_lines, lock=self._lock)(summarize)

    def build(
        self, rounds: Sequence[Round], following: Sequence[Round] = ()
    ) -> tuple[list[Segment], Sequence[Round]]:
        """Segments of consecutive rounds, and the rounds at the end that make no whole segment yet.

        They begin with the same round each time; a topic that begins in `following` ends a segment.
        """
        parts, waiting = _cut(rounds, following)
        return [Segment(p[0].seq, p[-1].seq, self._summarize(p).strip()) for p in parts], waiting

    def list_unwritten(
        self, rounds: Sequence[Round], following: Sequence[Round] = ()
    ) -> list[list[StoredMessage]]:
        """The messages of each segment that `build` would have to sum up."""
        parts, _ = _cut(rounds, following)
        with self._lock:
            return [part for part in parts if _digest_lines(part) not in self._made]

    def keep(self, messages: Sequence[StoredMessage], text: str) -> None:
        """Keep the summary of a segment that was written elsewhere."""
        with self._lock:
            self._made[_digest_lines(messages)] = text


def _cut(
    rounds: Sequence[Round], following: Sequence[Round]
) -> tuple[list[list[StoredMessage]], Sequence[Round]]:
    """The messages of each whole segment, and the rounds behind the last one."""
    parts, begin = [], 0
    while length := _measure_segment(rounds, following, begin):
        part = rounds[begin : begin + length]
        parts.append([m for round_ in part for m in round_.messages])
        begin += length
    return parts, rounds[begin:]


def _measure_segment(rounds: Sequence[Round], following: Sequence[Round], begin: int) -> int:
    """Rounds of the segment that begins somewhere; 0 if it is not whole yet."""
    known = [*rounds[begin : begin + _LONGEST + 1], *following[:1]]
    for length in range(_SHORTEST, min(_LONGEST, len(rounds) - begin) + 1):
        if length == _LONGEST or (length < len(known) and known[length].opens):
            return length
    return 0


def _digest_lines(messages: Sequence[StoredMessage]) -> bytes:
    said = "\n".join(m.line for m in messages)
    return sha256(said.encode("utf-8", "surrogatepass")).digest()


def take_newest_fitting(
    segments: Sequence[Segment], counter: TokenCounter, room: int
) -> Sequence[Segment]:
    """The newest segments that fit into some tokens; whole ones only."""
    begin = len(segments)
    while begin and (room := room - counter.text(f"{segments[begin - 1].line}\n")) >= 0:
        begin -= 1
    return segments[begin:]


@dataclass(frozen=True, slots=True)
class SegmentLayout:
    """Lays prompts out."""

    counter: TokenCounter
    summaries: SummaryManager
    policy: ContextWindowPolicy = ContextWindowPolicy()
    """The rounds that stay in view."""

    def build_prompt(
        self, system: str, messages: Sequence[StoredMessage], budget: int, language: Language
    ) -> tuple[str, list[StoredMessage]]:
        """Lay a prompt of up to `budget` tokens out.

        Rounds that are in no whole segment yet stay in view too, so that none is in neither. If
        what is in view does not fit, its oldest rounds go, the first ones last of all; the newest
        round stays in any case.

        Returns:
            The text of the system message, which is what was given and the summaries, and the
            messages that stand word for word.
        """
        first, segments, newest = self.split_parts(messages)
        blocks = {m.seq: f"\n{lines}" for m in messages if (lines := describe_blocks(m, language))}
        segments = [
            replace(s, media="".join(blocks.get(n, "") for n in range(s.first, s.last + 1)))
            for s in segments
        ]
        room = budget - (self.counter.message(SystemMessage(system)) if system else 0)
        shown = self._select_visible(first, newest, room, language)
        heading = get_wording(language).summaries
        left = (
            room
            - self._count(shown, language)
            - self.counter.message(SystemMessage(f"\n\n{heading}\n"))
        )
        fitting = take_newest_fitting(segments, self.counter, left)
        summaries = "\n".join([heading, *(s.line for s in fitting)]) if fitting else ""
        return "\n\n".join(filter(None, [system, summaries])), shown

    def list_unwritten(self, messages: Sequence[StoredMessage]) -> list[list[StoredMessage]]:
        """The messages of each segment that has no summary yet."""
        _, between, newest = self.policy.select(group_rounds(messages))
        return self.summaries.list_unwritten(between, newest)

    def split_parts(
        self, messages: Sequence[StoredMessage]
    ) -> tuple[Sequence[Round], list[Segment], Sequence[Round]]:
        """First rounds, segments, and what follows them; sums up what became a whole segment."""
        first, between, newest = self.policy.select(group_rounds(messages))
        segments, waiting = self.summaries.build(between, newest)
        return first, segments, [*waiting, *newest]

    def _select_visible(
        self, first: Sequence[Round], last: Sequence[Round], room: int, language: Language
    ) -> list[StoredMessage]:
        """Messages of the rounds that fit: the newest, the first, and then backwards."""
        chosen: list[StoredMessage] = []
        for round_ in [*last[-1:], *first, *reversed(last[:-1])]:
            more = sorted([*chosen, *round_.messages], key=lambda m: m.seq)
            if chosen and self._count(more, language) > room:
                break
            chosen = more
        return chosen

    def _count(self, messages: Sequence[StoredMessage], language: Language) -> int:
        days = filter(None, date_messages(messages, language))
        lines = sum(self.counter.text(f"{day}\n") for day in days)
        return lines + sum(self.counter.message(m.message) for m in messages)
