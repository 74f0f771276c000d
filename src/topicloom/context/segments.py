"""The deterministic layout: first round, summaries of what lies between, newest rounds.

    system, and the summaries, a segment each | the first round | the newest rounds

(spec 003, 2.1 to 2.3). A summary is made of the originals of its segment, once, and stays as it is:
nothing is ever summarised again. What does not fit is left out by whole segments, oldest first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock

from langchain_core.messages import BaseMessage, SystemMessage

from topicloom.context.tokens import TokenCounter
from topicloom.prompts.wording import get_wording
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.session import Language
from topicloom.state.stored_message import StoredMessage

_REMEMBERED = 10_000
"""Summaries that are kept in memory: those of some hundred conversations."""

Summarize = Callable[[Sequence[StoredMessage]], str]
"""Sums up the messages of one segment, from their originals."""


@dataclass(frozen=True, slots=True)
class ContextWindowPolicy:
    """Which rounds stay word for word (spec 003, 2.3)."""

    first: int = 1
    """Rounds at the beginning."""
    last: int = 5
    """Rounds at the end."""

    def __post_init__(self) -> None:
        """Refuse windows that hold nothing new.

        Raises:
            ValueError: `first` is under 0 or `last` under 1.
        """
        if self.first < 0 or self.last < 1:
            raise ValueError(f"need first >= 0 and last >= 1, got {self.first=} and {self.last=}")

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

    @property
    def line(self) -> str:
        """The summary as the prompt shows it."""
        return f"[m{self.first}–m{self.last}] {self.text}"


class SummaryManager:
    """Cuts rounds into segments and has each summed up once (spec 003, 2.2).

    A segment ends where a topic begins, or else at its greatest length; a cut depends on nothing
    that is said later, so segments are only ever added.
    """

    def __init__(self, summarize: Summarize, *, shortest: int = 5, longest: int = 8) -> None:
        """Args:
            summarize: Writes one summary.
            shortest: Rounds of a segment at least.
            longest: Rounds of a segment at most.

        Raises:
            ValueError: The lengths contradict each other.
        """
        if not 1 <= shortest <= longest:
            raise ValueError(f"need 1 <= shortest <= longest, got {shortest=} and {longest=}")
        self._summarize = summarize
        self._shortest = shortest
        self._longest = longest
        self._made: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()

    def build(
        self, rounds: Sequence[Round], following: Sequence[Round] = ()
    ) -> tuple[list[Segment], Sequence[Round]]:
        """Segments of some rounds, and the rounds at the end that make no whole segment yet.

        Args:
            rounds: Consecutive rounds, always from the same one on.
            following: The rounds after them: a topic that begins there ends a segment.
        """
        segments, begin = [], 0
        while length := self._length(rounds, following, begin):
            segments.append(self._segment(rounds[begin : begin + length]))
            begin += length
        return segments, rounds[begin:]

    def _length(self, rounds: Sequence[Round], following: Sequence[Round], begin: int) -> int:
        """Rounds of the segment that begins somewhere; 0 if it is not whole yet."""
        known = [*rounds[begin : begin + self._longest + 1], *following[:1]]
        for length in range(self._shortest, min(self._longest, len(rounds) - begin) + 1):
            if length == self._longest or (length < len(known) and known[length].opens):
                return length
        return 0

    def _segment(self, rounds: Sequence[Round]) -> Segment:
        """The summary of some rounds, by what they say: one manager serves many conversations."""
        records = [record for round_ in rounds for record in round_.records]
        said = "\n".join(r.line for r in records)
        key = sha256(said.encode("utf-8", "surrogatepass")).hexdigest()
        text = self._made.get(key)
        if text is None:
            text = self._summarize(records).strip()
        with self._lock:
            self._made[key] = text
            self._made.move_to_end(key)
            if len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)
        return Segment(rounds[0].first, rounds[-1].last, text)


def take_newest_fitting(
    segments: Sequence[Segment], counter: TokenCounter, room: int
) -> Sequence[Segment]:
    """The newest segments that fit; whole ones only (spec 003, 2.2).

    Args:
        segments: In order.
        counter: Counts tokens.
        room: Tokens that there are for them.
    """
    begin = len(segments)
    while begin and (room := room - counter.text(f"{segments[begin - 1].line}\n")) >= 0:
        begin -= 1
    return segments[begin:]


@dataclass(frozen=True, slots=True)
class SegmentPrompt:
    """A prompt in the deterministic layout, and what is in it (spec 003, 3.1)."""

    messages: list[BaseMessage]
    """System message first, if there is anything to say in one."""
    records: list[StoredMessage]
    """Messages that stand in it word for word."""
    segments: Sequence[Segment]
    """Summaries in it."""
    tokens: int
    """Tokens of all of it."""


@dataclass(frozen=True, slots=True)
class SegmentLayout:
    """Lays prompts out: what spec 003 calls the context manager."""

    counter: TokenCounter
    """Counts tokens."""
    summaries: SummaryManager
    """Sums up what is out of view."""
    policy: ContextWindowPolicy = ContextWindowPolicy()
    """What stays in view."""

    def prompt(
        self, system: str, records: Sequence[StoredMessage], budget: int, language: Language
    ) -> SegmentPrompt:
        """Lay a prompt out.

        Rounds that are in no whole segment yet stay in view too, so that none is in neither. If
        what is in view does not fit, its oldest rounds go, the first ones last of all; the newest
        round stays in any case.

        Args:
            system: The system message.
            records: The whole conversation, in order.
            budget: Tokens of the prompt.
            language: Of the fixed words.
        """
        first, segments, newest = self.parts(records)
        room = budget - (self._size(SystemMessage(system)) if system else 0)
        shown = self._in_view(first, newest, room)
        heading = get_wording(language).summaries
        left = room - self._tokens(shown) - self._size(SystemMessage(f"\n\n{heading}\n"))
        told = take_newest_fitting(segments, self.counter, left)
        block = "\n".join([heading, *(s.line for s in told)]) if told else ""
        head = "\n\n".join(filter(None, [system, block]))
        messages: list[BaseMessage] = [*([SystemMessage(head)] if head else [])]
        messages += [r.message for r in shown]
        return SegmentPrompt(messages, shown, told, sum(map(self._size, messages)))

    def parts(
        self, records: Sequence[StoredMessage]
    ) -> tuple[Sequence[Round], list[Segment], Sequence[Round]]:
        """First rounds, segments, and what follows them; sums up what became a whole segment."""
        first, between, newest = self.policy.select(group_rounds(records))
        segments, waiting = self.summaries.build(between, newest)
        return first, segments, [*waiting, *newest]

    def _in_view(
        self, first: Sequence[Round], last: Sequence[Round], room: int
    ) -> list[StoredMessage]:
        """Messages of the rounds that fit: the newest, the first, and then backwards."""
        kept = [last[-1]] if last else []
        room -= self._tokens([r for b in kept for r in b.records])
        before: list[Round] = []
        for round_ in [*first, *reversed(last[:-1])]:
            room -= self._tokens(round_.records)
            if room < 0:
                break
            before.append(round_)
        chosen = sorted([*before, *kept], key=lambda b: b.first)
        return [record for round_ in chosen for record in round_.records]

    def _tokens(self, records: Sequence[StoredMessage]) -> int:
        return sum(self._size(r.message) for r in records)

    def _size(self, message: BaseMessage) -> int:
        return self.counter.message(message)
