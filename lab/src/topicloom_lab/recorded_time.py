"""The time of a recording: a clock that its messages set, and reviews of it day by day."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from topicloom import ReviewReport, review_session
from topicloom.hosting import Graph, name_thread
from topicloom_app.recordings.conversations import RecordedMessage
from topicloom_app.recordings.times import parse_moment


class RecordedClock:
    """Tells the time of the newest dated message that was heard.

    A message without a time was said when the one before it was. It never goes backwards: neither
    does the clock of the machine that a conversation is really held on.
    """

    def __init__(self, start: datetime) -> None:
        """Before anything is heard it tells a time, with its zone."""
        self.now = start

    @classmethod
    def of(
        cls,
        messages: Sequence[RecordedMessage],
        system: Callable[[], datetime] = lambda: datetime.now().astimezone(),
    ) -> RecordedClock:
        """The clock of a recording: it begins with the first time that it names.

        The system's tells the time of a recording that names none.
        """
        return cls(next(filter(None, map(time_of, messages)), None) or system())

    def __call__(self) -> datetime:
        """The time."""
        return self.now

    def after(self, messages: Sequence[RecordedMessage]) -> datetime:
        """The time once some more messages are heard; the clock stays as it is."""
        return max([self.now, *filter(None, map(time_of, messages))])


def time_of(message: RecordedMessage) -> datetime | None:
    """When a message was said, with its zone; None if it is unknown."""
    return parse_moment(message.time)


@dataclass(frozen=True, slots=True)
class DailyReviews:
    """Reviews of one session at every midnight that its clock passes."""

    graph: Graph
    """The compiled session graph."""
    clock: RecordedClock
    """The clock of session and review."""
    thread: str
    """The session."""

    def until(self, moment: datetime) -> Iterator[ReviewReport]:
        """Set the clock forward, with a review at each midnight on the way; yields the reports."""
        for midnight in midnights(self.clock.now, moment):
            self.clock.now = midnight
            yield review_session(self.graph, name_thread(self.thread), now=midnight)
        self.clock.now = max(self.clock.now, moment)


def midnights(since: datetime, moment: datetime) -> Iterator[datetime]:
    """The beginnings of the days after one moment, up to another, in the zone of the first."""
    end = moment.astimezone(since.tzinfo)
    day = since.date() + timedelta(days=1)
    while day <= end.date():
        yield datetime.combine(day, time(), since.tzinfo)
        day += timedelta(days=1)
