"""One topic, as what a message is compared with."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple, TypeVar
from weakref import finalize

import numpy as np

from topicloom.perception.rejoin.signs import Signs
from topicloom.perception.rejoin.traces import NEWEST, Places, Traces

NAMES = 64
"""Speakers, and people spoken to, that are remembered."""

_Value = TypeVar("_Value")


class Heard(NamedTuple):
    """What one speaker said in a topic."""

    number: int
    """Number of the newest message."""
    times: int
    """How many there are."""
    question: bool
    """Whether the newest asks something."""
    closes: bool
    """Whether it says that something is over."""
    name: str
    """The speaker's name if others could call it, else nothing."""


NOT_HEARD = Heard(-1, 0, False, False, "")
"""Of somebody who said nothing."""


class TopicTrace:
    """A topic, bounded: the same size after ten messages and after ten thousand."""

    def __init__(self, traces: Traces | None = None) -> None:
        """Begin a topic.

        Args:
            traces: Where its arrays are kept; None keeps them apart until it is compared.
        """
        self.traces = traces or Traces()
        """Where its arrays are."""
        self.place = self.traces.take()
        """Its place there, which is given back when nobody holds this topic any more."""
        self._held = self._hold()
        self.spoken: OrderedDict[str, Heard] = OrderedDict()
        """What each speaker said."""
        self.called: OrderedDict[str, int] = OrderedDict()
        """Number of the newest message to each person spoken to."""
        self.last: Signs | None = None
        """The newest message."""
        self.last_words: frozenset[int] = frozenset()
        """Its words."""

    def add(self, signs: Signs, number: int) -> None:
        """Take a message in.

        Args:
            signs: The message.
            number: Its place in the conversation, ascending.
        """
        self.traces.add(self.place, signs, number)
        self.last, self.last_words = signs, frozenset(signs.words.tolist())
        if signs.voice:
            times = self.spoken.get(signs.voice, NOT_HEARD).times + 1
            heard = Heard(number, times, signs.question, signs.closes, signs.name)
            _note(self.spoken, signs.voice, heard)
        if signs.addressed:
            _note(self.called, signs.addressed, number)

    def move(self, traces: Traces) -> None:
        """Keep the arrays elsewhere from now on, beside those of other topics."""
        place = traces.adopt(self.traces, self.place)
        self._held()
        self.traces, self.place = traces, place
        self._held = self._hold()

    def _hold(self) -> finalize[[int], TopicTrace]:
        held = finalize(self, self.traces.release, self.place)
        held.atexit = False
        return held

    @property
    def size(self) -> int:
        """Messages taken in."""
        return int(self.traces.sizes[self.place])

    @property
    def first(self) -> int:
        """Number of the first message in the conversation."""
        return int(self.traces.firsts[self.place])

    @property
    def number(self) -> int:
        """Number of the newest message."""
        return int(self.traces.numbers[self.place])

    @property
    def kept(self) -> int:
        """Messages that are kept one by one."""
        return min(self.size, NEWEST)


def together(topics: Sequence[TopicTrace]) -> tuple[Traces, Places]:
    """Where topics [n], at least one, lie side by side, and their places there [n].

    Those that were kept apart are moved, once: what is compared often is not copied each time.
    """
    home = topics[0].traces
    if any(topic.traces is not home for topic in topics):
        home = max((topic.traces for topic in topics), key=lambda traces: traces.room)
        for topic in topics:
            if topic.traces is not home:
                topic.move(home)
    return home, np.array([topic.place for topic in topics])


def _note(known: OrderedDict[str, _Value], name: str, value: _Value) -> None:
    known[name] = value
    known.move_to_end(name)
    if len(known) > NAMES:
        known.popitem(last=False)
