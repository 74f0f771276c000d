"""A note being written: quotes and summaries, entered in turn until the budget is used up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from topicloom.state.recall import Quote, Reading, Stretches, TopicNote, parse_message_number

PARTS = 4
"""One in so many tokens of a note, at most, are for all summaries, for a list of topics, and for
each original that is quoted in part."""

RankedQuotes = list[tuple[str, Quote]]
"""Quotes with the ids of their topics, best first."""


@dataclass(frozen=True, slots=True)
class PromptCosts:
    """Prices of things in the prompt, in tokens of whichever counter the budget is in."""

    quote: Callable[[str], int]
    """A whole original, with its label, by short id."""
    day: Callable[[str], str]
    """The day of an original; each day has a line of its own."""
    text: Callable[[str], int]
    """A text."""
    heading: Callable[[str], int]
    """What stands before the summary of a topic, by topic id."""
    excerpt: Callable[[str, int], tuple[Stretches, int]]
    """The parts of an original that say most of what is asked, as many as fit a number of tokens,
    and their price with its label; no parts if not even one fits."""
    shorten: Callable[[str, int], str]
    """A text in that many tokens; "" if that is too few to say anything."""
    passage: Callable[[str], int]
    """Where in an original, in characters, the sentence begins that says most of what is asked."""
    day_line: int = 6
    """The line that names a day."""
    frame: int = 8
    """The note around it all."""


class NoteDraft:
    """A note being written, and what is left of its budget."""

    def __init__(
        self, costs: PromptCosts, budget: int, seen: Collection[str], in_view: Collection[str]
    ) -> None:
        self._costs, self._budget = costs, budget
        self._seen, self._in_view = seen, in_view
        self._left = budget - costs.frame
        self._kept = 0
        self.taken: set[str] = set()
        """Short ids that are quoted, or stand in the prompt already."""
        self._quotes: dict[str, list[str]] = {}
        self._excerpts: dict[str, Stretches] = {}
        self._summaries: dict[str, str] = {}
        self._days: set[str] = set()

    def keep_room(self, readings: Sequence[Reading]) -> None:
        """Leave room for the summaries of readings until they are added."""
        prices = sum(self._costs.heading(r.topic) + self._costs.text(r.summary) for r in readings)
        self._kept = min(prices, self._budget // PARTS)
        self._left -= self._kept

    def add_summaries(self, readings: Sequence[Reading]) -> None:
        """Enter summaries of the topics that are quoted, or their beginnings.

        Args:
            readings: The best first. One counts if any of its quotes stands in the prompt.
        """
        self._left, self._kept = self._left + self._kept, 0
        room = min(self._left, self._budget // PARTS)
        for reading in readings:
            if not reading.summary or not any(q.id in self.taken for q in reading.quotes):
                continue
            frame = self._costs.heading(reading.topic)
            rest = min(room, self._left) - frame
            text = self._costs.shorten(reading.summary, rest) if rest > 0 else ""
            if text:
                price = frame + self._costs.text(text)
                self._summaries[reading.topic] = text
                self._left, room = self._left - price, room - price

    def add_quotes(self, quotes: RankedQuotes, *, leave: int = 0, in_part: bool = False) -> None:
        """Enter originals, best first, as long as anything fits.

        If no budget could hold the first of them, it is quoted in part in any case.

        Args:
            quotes: The originals.
            leave: Tokens to leave for others.
            in_part: True to quote those that do not fit in part.
        """
        for place, (topic, quote) in enumerate(quotes):
            if self._left <= leave:
                return
            too_large = place == 0 and not self._could_hold(quote.id)
            self._add_quote(topic, quote.id, leave, in_part=in_part or too_large)

    def _could_hold(self, message_id: str) -> bool:
        """True if the budget could hold an original, had it nothing else to hold."""
        around = self._costs.frame + self._costs.day_line
        return around + self._costs.quote(message_id) <= self._budget

    def _add_quote(self, topic: str, message_id: str, leave: int, *, in_part: bool) -> None:
        """Enter an original whole if it fits, else in part if it may be."""
        if message_id in self.taken:
            return
        if message_id in self._in_view or message_id in self._seen:
            self._left -= 0 if message_id in self._in_view else self._costs.quote(message_id)
            self.taken.add(message_id)
            return
        day = self._costs.day(message_id)
        frame = 0 if day in self._days else self._costs.day_line
        room, price = self._left - leave - frame, self._costs.quote(message_id)
        if price > room:
            if not in_part:
                return
            stretches, price = self._costs.excerpt(message_id, room)
            if not stretches:
                return
            self._excerpts[message_id] = stretches
        self._quotes.setdefault(topic, []).append(message_id)
        self.taken.add(message_id)
        self._days.add(day)
        self._left -= frame + price

    @property
    def quoted(self) -> list[str]:
        return [message for ids in self._quotes.values() for message in ids]

    def mentions(self, topic: str) -> bool:
        """True if the note says anything of a topic."""
        return topic in self._quotes or topic in self._summaries

    def build_topic_note(self, topic: str, name: str, score: float) -> TopicNote:
        """A topic's part of the note; quotes in conversation order."""
        quotes = sorted(self._quotes.get(topic, ()), key=parse_message_number)
        return TopicNote(
            topic=topic,
            name=name,
            score=round(score, 3),
            quotes=tuple(quotes),
            partial=tuple(i for i in quotes if i in self._excerpts),
            excerpts={i: self._excerpts[i] for i in quotes if i in self._excerpts},
            summary=self._summaries.get(topic, ""),
        )
