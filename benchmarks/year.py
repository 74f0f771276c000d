"""A simulated year in one session: does anything grow that should not?

10,000 rounds about 200 topics, a review every midnight, the clock injected, embedded roles, no
model; only the splitter reads from each message to which topic it belongs. Topics begin all year
round and return as things do that people need again: the odds fall as a power of how long ago they
were spoken of (Anderson and Schooler 1991). A third are asked once.

    python benchmarks/year.py
    python benchmarks/year.py --rounds 2000 --topics 80

Targets: active topics never over the ceiling (20); a turn late in the year takes at most twice the
time of an early one and writes no more; memory levels off; every message in exactly one place, word
for word; messages of archived topics are quoted when the user asks for their day.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.sqlite import SqliteSaver
from resources import resident_mb
from rich.console import Console
from rich.progress import track
from rich.table import Table

from topicloom import (
    RESPONDER,
    SPLITTER,
    Answer,
    Assignment,
    FileStorage,
    LocalRole,
    ReplyRequest,
    Session,
    SessionStore,
    Settings,
    SplitRequest,
    build_session_graph,
    default_embedder,
    embedded_roles,
    get_session,
)
from topicloom_app import RecordedMessage
from topicloom_lab.conservation import check_session
from topicloom_lab.recorded_time import DailyReviews, RecordedClock
from topicloom_lab.talk import FILLING, THEMES, Echo

START = datetime(2026, 1, 1, 8, tzinfo=UTC)
DAYS = 365
BURST = 6
"""Rounds on end that are about one topic."""
ASKED_DAYS = 20
"""Days of archived topics that are asked for at the end."""
CONFIG: Any = {"configurable": {"thread_id": "year"}}


@dataclass(frozen=True, slots=True)
class Round:
    """One round."""

    when: datetime
    said: str
    reply: str


class Subject:
    """The vocabulary of a topic: the words of a theme, and names of its own."""

    def __init__(self, number: int, draw: random.Random) -> None:
        self.once = number % 3 == 2
        self.words = THEMES[number % len(THEMES)].split()
        self.words += ["".join(draw.choices(_SYLLABLES, k=3)).capitalize() for _ in range(6)]
        self.name = f"{self.words[-1]} {number}"

    def text(self, draw: random.Random, characters: int, end: str) -> str:
        """A text of about that many characters."""
        words: list[str] = []
        filling = [w for w in FILLING if not (self.once and w in _OWN)]
        while sum(map(len, words)) + len(words) < characters:
            words += [draw.choice(filling), draw.choice(self.words)]
        return f"{self.name}: {' '.join(words)}{end}"


_OWN = ("my", "our")
"""Who asks once, for what a thing means, says nothing of his own."""
_SYLLABLES = "ba do fen gi kor la mi nu pel ra sin tam ul vek wo xan yir zo".split()


def rounds(count: int, topics: int) -> Iterator[Round]:
    """The rounds of a year, in order."""
    draw = random.Random(2_026)
    subjects = [Subject(number, draw) for number in range(topics)]
    begun: list[Subject] = []  # the one spoken of last first
    bursts = -(-count // BURST)
    for number in range(count):
        burst, place = divmod(number, BURST)
        if place == 0:
            new = len(begun) < topics * (burst + 1) / bursts
            subject = subjects[len(begun)] if new else _again(begun, draw)
            begun = [subject, *(s for s in begun if s is not subject)]
        when = START + timedelta(days=number * DAYS // count, minutes=number % 600)
        mark = f" {number}"
        asks = subject.once or draw.random() < 0.4
        said = subject.text(draw, 60, f"{mark}?" if asks else f"{mark}.")
        yield Round(when, said, subject.text(draw, 150, f"{mark}."))


def _again(begun: Sequence[Subject], draw: random.Random) -> Subject:
    lasting = [(1 / rank, s) for rank, s in enumerate(begun, start=1) if not s.once]
    lasting = lasting or [(1.0, begun[0])]
    return draw.choices([s for _, s in lasting], [odds for odds, _ in lasting])[0]


class NamedSplitter(LocalRole[SplitRequest, tuple[Assignment, ...]]):
    """Goes by the name that a round begins with: how well topics are found is not measured here."""

    def call(self, request: SplitRequest) -> Answer[tuple[Assignment, ...]]:
        """Assign every message."""
        known = {topic.name: topic.id for topic in request.topics}
        names = [round_.text.partition(":")[0] for round_ in request.rounds]
        return Answer(
            tuple(
                Assignment(message=message, topic=known.get(name), name=name)
                for name, round_ in zip(names, request.rounds, strict=True)
                for message in round_.ids
            )
        )


class Replies(Echo):
    """Says what the round says, and keeps the prompt of the newest call."""

    def __init__(self) -> None:
        super().__init__()
        self.text = "-"
        self.prompt = ""

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The reply of the round."""
        self.prompt = "\n".join(str(m.content) for m in request.messages)
        yield AIMessageChunk(content=self.text)


@dataclass(slots=True)
class Figures:
    """The measurements, a number a round or a review."""

    turns: list[float] = field(default_factory=list)
    """Milliseconds."""
    reviews: list[float] = field(default_factory=list)
    """Milliseconds."""
    active: list[int] = field(default_factory=list)
    state: list[int] = field(default_factory=list)
    """Bytes of the newest checkpoint's values as JSON."""
    written: list[int] = field(default_factory=list)
    """Bytes of the checkpoint database."""
    memory: list[float] = field(default_factory=list)
    """MB."""
    archived: int = 0
    merged: int = 0


class Bench:
    """A session, its reviews, and what is measured of them."""

    def __init__(self, folder: Path, saver: SqliteSaver) -> None:
        self.folder, self.saver = folder, saver
        self.replies, self.clock = Replies(), RecordedClock(START)
        self.figures = Figures()
        self.said: list[RecordedMessage] = []
        options: dict[str, Any] = {
            "settings": Settings(window=8_000, topic_window=16_000, folder=folder, fsync=False),
            "roles": embedded_roles(default_embedder())
            .replace(RESPONDER, self.replies)
            .replace(SPLITTER, NamedSplitter()),
            "clock": self.clock,
        }
        self.graph: Any = build_session_graph(**options).compile(checkpointer=saver)
        self.daily = DailyReviews(self.graph, self.clock, "year")

    @property
    def session(self) -> Session:
        return get_session(self.graph, CONFIG)

    @property
    def store(self) -> SessionStore:
        """The session's storage, opened anew: nothing is taken from memory."""
        return SessionStore(FileStorage(self.folder).open("year"))

    def live(self, moment: Round) -> None:
        """Take one round, after the reviews of the nights before it."""
        began = time.perf_counter()
        for report in self.daily.until(moment.when):
            self.figures.archived += len(report.archived)
            self.figures.merged += len(report.merged)
            began = self._took(self.figures.reviews, began)
        self.replies.text = moment.reply
        began = time.perf_counter()
        self.ask(moment.said, f"u{len(self.said)}")
        self._took(self.figures.turns, began)
        self._look()

    def ask(self, text: str, message: str) -> None:
        """One turn."""
        said = {"messages": [{"role": "user", "content": text, "id": message}]}
        self.graph.invoke(said, CONFIG, durability="exit")

    def _took(self, times: list[float], began: float) -> float:
        now = time.perf_counter()
        times.append(1_000 * (now - began))
        return now

    def _look(self) -> None:
        values = self.graph.get_state(CONFIG).values
        figures, session = self.figures, Session.model_validate(values["session"])
        figures.active.append(len(session.active))
        state = {k: v for k, v in values.items() if k != "messages"}
        figures.state.append(len(json.dumps(state)))
        (pages,) = self.saver.conn.execute("PRAGMA page_count").fetchone()
        figures.written.append(4_096 * pages)
        figures.memory.append(resident_mb())
        self.said += [
            RecordedMessage(id=m.id, role="user" if m.type == "human" else "assistant", text=m.text)
            for m in values["messages"][-2:]
        ]

    def archived_days(self) -> dict[date, str]:
        """Days that archived topics had messages on, with a message of each, evenly chosen."""
        session, store = self.session, self.store
        archived = store.topic_table(session).archived()
        stored = [r for t in archived for r in store.topic_messages(session, t)]
        days = {date.fromisoformat(r.day): r.text for r in sorted(stored, key=lambda r: -r.seq)}
        step = max(1, len(days) // ASKED_DAYS)
        return dict(sorted(days.items())[::step][:ASKED_DAYS])


def asked_by_date(bench: Bench) -> str:
    """The number of archived topics' days that are quoted when they are asked for."""
    days = bench.archived_days()
    base = bench.graph.get_state(CONFIG).config
    quoted = 0
    for day in days:
        archived = {
            r.text
            for t in bench.store.topic_table(bench.session).archived()
            for r in bench.store.topic_messages(bench.session, t)
            if r.day == day.isoformat()
        }
        bench.ask(f"What did we talk about on {day:%-d %B %Y}?", f"q{day}")
        quoted += any(text in bench.replies.prompt for text in archived)
        bench.graph.update_state(base, {"messages": []})  # the question is forgotten
    return f"{quoted} of {len(days)}"


def table_of(bench: Bench, seconds: float, by_date: str) -> Table:
    """The measurements."""
    figures = bench.figures
    count = len(figures.turns)
    table = Table(title=f"{count} rounds, {DAYS} days, {seconds:.0f} s")
    table.add_column()
    for column in ("second fifth", "last fifth", "ratio"):
        table.add_column(column, justify="right")
    writes = [b - a for a, b in itertools.pairwise(figures.written)]
    table.add_row("a turn, ms", *early_and_late(figures.turns))
    table.add_row("a review, ms", *early_and_late(figures.reviews))
    table.add_row("state in a checkpoint, bytes", *early_and_late(figures.state))
    table.add_row("written to checkpoints by a turn, bytes", *early_and_late(writes))
    table.add_row("memory, MB", *early_and_late(figures.memory))
    table.add_row("active topics", *early_and_late(figures.active), end_section=True)
    counted = {
        "active topics at most": max(figures.active),
        "reviews": len(figures.reviews),
        "topics archived by them": figures.archived,
        "topics merged by them": figures.merged,
        **Counter(f"topics {t.status}" for t in bench.store.topic_table(bench.session)),
    }
    for name, number in counted.items():
        table.add_row(name, "", str(number), "")
    table.add_row("days of archived topics quoted when asked for", "", by_date, "")
    return table


def early_and_late(values: Sequence[float]) -> tuple[str, str, str]:
    """Means over the second and the last fifth, and the ratio of the two."""
    fifth = max(1, len(values) // 5)
    one, other = statistics.mean(values[fifth : 2 * fifth]), statistics.mean(values[-fifth:])
    return f"{one:,.1f}", f"{other:,.1f}", f"{other / one:.2f}" if one else "-"


def main() -> None:
    """Live through the year, check it, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=200)
    arguments = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with SqliteSaver.from_conn_string(str(path / "checkpoints.sqlite")) as saver:
            bench = Bench(path / "sessions", saver)
            for moment in track(list(rounds(arguments.rounds, arguments.topics)), "a year"):
                bench.live(moment)
            check_session(bench.store, bench.session, bench.said)
            Console().print("every message is in exactly one place, word for word")
            by_date = asked_by_date(bench)
            Console().print(table_of(bench, time.perf_counter() - began, by_date))


if __name__ == "__main__":
    main()
