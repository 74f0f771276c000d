"""From readings to a note: the choice of quoted originals under a budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from topicloom.state.layers import Layer
from topicloom.state.session import Search


class Quote(BaseModel):
    """One original worth quoting."""

    model_config = ConfigDict(frozen=True)

    id: str
    """Short id of the message."""
    weight: float
    """How much it is worth against the quotes of all topics, 0 to 1."""


class Reading(BaseModel):
    """The answer of a topic's reader."""

    model_config = ConfigDict(frozen=True)

    topic: str
    """Id of the topic."""
    score: float
    """Relevance of the topic to the current conversation, 0 to 1."""
    quotes: tuple[Quote, ...] = ()
    """Originals worth quoting, best first."""
    summary: str = ""
    """What the quotes don't show by themselves."""
    failed: bool = False
    """True if the reader failed; its topic keeps its average."""


class TopicNote(BaseModel):
    """One topic's part of a recall note."""

    model_config = ConfigDict(frozen=True)

    topic: str
    """Id of the topic."""
    name: str
    """Its name at the time."""
    score: float
    """Its relevance at the time."""
    quotes: tuple[str, ...]
    """Short ids of the quoted originals, in conversation order."""
    partial: tuple[str, ...] = ()
    """Those of them that are quoted in part, being too large to be quoted whole."""
    summary: str = ""
    """The reader's summary."""


class Note(BaseModel):
    """The recall of one turn; it stands behind its user message until the next split."""

    model_config = ConfigDict(frozen=True)

    after: int
    """Number of the user message that called for it."""
    topics: tuple[TopicNote, ...] = ()
    """Best topic first."""
    searched: str = ""
    """What was looked for, when nothing or something ambiguous was found."""
    candidates: tuple[str, ...] = ()
    """Names of topics that may be meant, to ask the user about."""
    layers: tuple[Layer, ...] = ()
    """What the application's domain added."""

    @property
    def recalls(self) -> bool:
        """True if it says anything of the conversation itself."""
        return bool(self.topics or self.searched or self.candidates)

    @property
    def empty(self) -> bool:
        """True if it says nothing."""
        return not (self.recalls or self.layers)


@dataclass(frozen=True, slots=True)
class PromptCosts:
    """Prices of things in the prompt, in tokens of whichever counter the budget is in."""

    quote: Callable[[str], int]
    """A whole original, with its label, by short id."""
    day: Callable[[str], str]
    """The day of an original; each day of a topic has a line of its own."""
    text: Callable[[str], int]
    """A text."""
    heading: Callable[[str], int]
    """The heading of a topic, by topic id."""
    part: int
    """An original that is quoted in part."""
    day_line: int = 4
    """The line that names a day."""
    frame: int = 8
    """The note around it all."""


def select_quotes(
    readings: Sequence[Reading],
    names: Mapping[str, str],
    costs: PromptCosts,
    budget: int,
    seen: Collection[str],
) -> tuple[TopicNote, ...]:
    """Choose quotes and summaries for the prompt.

    Topics enter best first; quotes are chosen by weight across all topics, so that a strong
    original of a weaker topic goes before a weak one of the best topic. An original that does
    not fit what is left of the budget is passed over for the next that does. What stands in the
    prompt already is not quoted again but counts: a turn that goes on about the same things adds
    little.

    Args:
        readings: Of all readers that ran, in any order.
        names: Topic names by id.
        costs: Token costs.
        budget: Tokens for what this turn recalls, what of it is seen already included.
        seen: Short ids already quoted or in view; never quoted again.

    Returns:
        The topics with something to say, by score, best first; quotes in conversation order.
    """
    ranked = sorted(readings, key=lambda r: (-r.score, r.topic))
    draft = _NoteDraft(costs, budget, seen)
    for reading in ranked:
        draft.add_summary(reading)
    quotes = [(r.topic, q) for r in ranked for q in r.quotes]
    for place, (topic, quote) in enumerate(sorted(quotes, key=lambda pair: -pair[1].weight)):
        if draft.full:
            break
        draft.add_quote(topic, quote.id, best=place < _MUST_QUOTE)
    return tuple(draft.build_topic_note(r, names) for r in ranked if draft.mentions(r.topic))


def compose_note(
    readings: Sequence[Reading],
    names: Mapping[str, str],
    costs: PromptCosts,
    budget: int,
    *,
    after: int,
    notes: Sequence[Note],
    in_view: Set[str],
    search: Search | None,
) -> Note:
    """The note of a turn, without what the prompt shows already.

    Args:
        readings: Of all readers that ran, in any order.
        names: Topic names by id.
        costs: Token costs.
        budget: Tokens for what this turn recalls.
        after: Number of the message that calls for it.
        notes: Those that the prompt shows.
        in_view: Short ids of the messages that it shows.
        search: The turn's last one, if it searched.
    """
    quoted = {i for note in notes for t in note.topics for i in t.quotes}
    known = {t.summary for note in notes for t in note.topics}
    new = [r.model_copy(update={"summary": ""}) if r.summary in known else r for r in readings]
    topics = select_quotes(new, names, costs, budget, quoted | in_view)
    candidates = [names[t] for t in search.candidates if t in names] if search else []
    # A search that adds nothing has to say so, or the model would be asked the same once more.
    searched = search.query if search is not None and not topics else ""
    return Note(after=after, topics=topics, searched=searched, candidates=tuple(candidates))


_MIN_QUOTE_TOKENS = 5
"""Tokens of the shortest original, its label included."""
_MUST_QUOTE = 5
"""Quotes by weight, of which even one that no budget could hold is quoted, in part."""


class _NoteDraft:
    """A note being written, and what is left of its budget."""

    def __init__(self, costs: PromptCosts, budget: int, seen: Collection[str]) -> None:
        self._costs, self._budget, self._seen = costs, budget, seen
        self._left = budget - costs.frame
        self._taken: set[str] = set()
        self._quotes: dict[str, list[str]] = {}
        self._partial: set[str] = set()
        self._summaries: dict[str, str] = {}
        self._days: set[tuple[str, str]] = set()

    def add_summary(self, reading: Reading) -> None:
        """Enter a reader's summary, if it is not too large a share of the budget."""
        price = self._costs.heading(reading.topic) + self._costs.text(reading.summary)
        if reading.summary and price <= min(self._left, self._budget // 4):
            self._summaries[reading.topic] = reading.summary
            self._left -= price

    def add_quote(self, topic: str, message_id: str, *, best: bool) -> None:
        """Enter an original, whole if it fits; in part if it is among the best and never could."""
        if message_id in self._taken:
            return
        if message_id in self._seen:
            self._left -= self._costs.quote(message_id)
            self._taken.add(message_id)
            return
        day = (topic, self._costs.day(message_id))
        frame = 0 if self.mentions(topic) else self._costs.heading(topic)
        frame += 0 if day in self._days else self._costs.day_line
        whole = self._costs.quote(message_id)
        in_part = best and whole > self._budget
        price = frame + (self._costs.part if in_part else whole)
        if price > self._left:
            return
        if in_part:
            self._partial.add(message_id)
        self._quotes.setdefault(topic, []).append(message_id)
        self._taken.add(message_id)
        self._days.add(day)
        self._left -= price

    @property
    def full(self) -> bool:
        """True if not even the shortest original would fit."""
        return self._left < _MIN_QUOTE_TOKENS

    def mentions(self, topic: str) -> bool:
        """True if the note says anything of a topic."""
        return topic in self._quotes or topic in self._summaries

    def build_topic_note(self, reading: Reading, names: Mapping[str, str]) -> TopicNote:
        """A topic's part of the note; quotes in conversation order."""
        quotes = sorted(self._quotes.get(reading.topic, ()), key=parse_message_number)
        return TopicNote(
            topic=reading.topic,
            name=names.get(reading.topic, reading.topic),
            score=round(reading.score, 3),
            quotes=tuple(quotes),
            partial=tuple(i for i in quotes if i in self._partial),
            summary=self._summaries.get(reading.topic, ""),
        )


def parse_message_number(message_id: str) -> int:
    """The number in a short id: 42 of `m42`.

    Raises:
        ValueError: If it is no short id.
    """
    number = message_id[1:]
    if not (message_id.startswith("m") and number.isascii() and number.isdigit()):
        raise ValueError(f"not a message id: {message_id!r}")
    return int(number)
