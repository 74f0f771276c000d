"""A session of millions of tokens: whether turns stay as fast, and memory as small, as they began.

Takes all recordings of a folder one after the other, again and again, each dated after the one
before, and says them in one session until it has heard so many tokens. Run again with the same
folder, it goes on where it stopped, and says first what it takes to open the session.

    python benchmarks/stream.py DATA/memory --folder STREAM --tokens 10000000 [--minutes 90]

Targets: 10,000,000 tokens held, turn time flat, memory bounded. A lap is once through all
recordings, so laps are compared recording by recording: the same messages with more and more
behind them. Tokens are counted as everywhere in the evaluation: a CJK character, or four others.
Turns of recordings that have replies search all topics; those of meetings only record. Times are
CPU times of this process, so that what else the machine does has no say.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from resources import bytes_in, resident_mb

from topicloom import (
    RESPONDER,
    FileStorage,
    SessionInput,
    Settings,
    build_session_graph,
    count_budget_tokens,
    default_embedder,
    embedded_roles,
    get_session,
)
from topicloom_app import (
    Conversation,
    RecordedResponder,
    RecordedRound,
    cut_rounds,
    feed_round,
    load_conversations,
)
from topicloom_lab.recorded_time import RecordedClock, time_of
from topicloom_lab.talk import Echo

THREAD: Any = {"configurable": {"thread_id": "stream"}}
BEGIN = datetime(2026, 1, 1, 9, tzinfo=UTC)
"""When the first recording begins."""
PROBES = ("Which number did I give you for that?", "What did we decide about the plan in spring?")
"""Questions asked on a fork after every recording: the same work with more behind it."""


@dataclass(frozen=True)
class Piece:
    """A recording as a part of the stream."""

    lap: int
    conversation: Conversation
    """With ids of its own in this lap, dated after what came before."""


def stream(data: Path) -> Iterator[Piece]:
    """The recordings of a folder, lap after lap."""
    begin = BEGIN
    for lap in count(1):
        for path in sorted(data.glob("*.jsonl*")):
            for conversation in load_conversations(path):
                piece = dated(conversation, f"{lap}-{path.name.partition('.')[0]}", begin)
                yield Piece(lap, piece)
                begin = (time_of(piece.messages[-1]) or begin) + timedelta(days=1)


def dated(conversation: Conversation, prefix: str, begin: datetime) -> Conversation:
    """A recording moved in time, with ids that no other lap has."""
    at, messages = begin, []
    first = next(filter(None, map(time_of, conversation.messages)), None)
    for message in conversation.messages:
        said = time_of(message)
        at += timedelta(seconds=30)
        if said and first:
            at = max(at, begin + (said - first))
        new_id = f"{prefix}-{conversation.id}-{message.id}"
        messages.append(message.model_copy(update={"id": new_id, "time": at.isoformat()}))
    name = f"{prefix.partition('-')[2]} {conversation.id}"
    return conversation.model_copy(update={"id": name, "messages": tuple(messages)})


def tokens_of(round_: RecordedRound) -> int:
    """Tokens of what is said in a turn."""
    messages = (*round_.said, *([round_.reply] if round_.reply else []))
    return sum(count_budget_tokens(m.text) for m in messages)


class Session:
    """The session that hears the stream."""

    def __init__(self, folder: Path, window: int, saver: SqliteSaver) -> None:
        self.folder, self.clock = folder, RecordedClock(BEGIN)
        self.recorded = RecordedResponder(Echo())
        roles = embedded_roles(default_embedder()).replace(RESPONDER, self.recorded)
        storage = FileStorage(folder / "sessions", fsync=False)
        self.graph = build_session_graph(
            settings=Settings(window=window), roles=roles, storage=storage, clock=self.clock
        ).compile(checkpointer=saver)

    @property
    def heard(self) -> int:
        """Messages in the session."""
        return get_session(self.graph, THREAD).count

    def hear(self, round_: RecordedRound) -> float:
        """One turn; returns its milliseconds of CPU."""
        self.clock.now = self.clock.after(round_.said)
        began = time.process_time()
        feed_round(self.graph, self.recorded, round_, THREAD)
        return 1_000 * (time.process_time() - began)

    def open(self) -> float:
        """Ask something on a fork; returns seconds of CPU. The first time, all is read for it."""
        base = self.graph.get_state(THREAD).config
        began = time.process_time()
        self.graph.invoke({"messages": [HumanMessage(PROBES[0])]}, base, durability="exit")
        spent = time.process_time() - began
        self.graph.update_state(base, {"messages": []})
        return spent

    def probe(self) -> float | None:
        """Median milliseconds of CPU of questions that do not become part of the session.

        None where the tail is so full that each of them would move something into topics first.
        """
        base = self.graph.get_state(THREAD).config
        times = []
        for question in PROBES * 3:
            began = time.process_time()
            asked: SessionInput = {"messages": [HumanMessage(question)]}
            events = self.graph.stream(asked, base, stream_mode="custom", durability="exit")
            if "split" in [event["type"] for event in events]:
                break
            times.append(1_000 * (time.process_time() - began))
        self.graph.update_state(base, {"messages": []})
        return round(statistics.median(times), 2) if len(times) == 3 * len(PROBES) else None

    def row(self, piece: Piece, tokens: int, times: Sequence[float]) -> dict[str, Any]:
        """The row of the log after a recording."""
        session = get_session(self.graph, THREAD)
        return {
            "lap": piece.lap,
            "recording": piece.conversation.id,
            "tokens": tokens,
            "messages": session.count,
            "topics": session.topics,
            "active": len(session.active),
            "turns": len(times),
            "turn_ms": round(statistics.mean(times), 2),
            "median_ms": round(statistics.median(times), 2),
            "probe_ms": self.probe(),
            "resident_mb": round(resident_mb(), 1),
            "checkpoints_mb": round(bytes_in(self.folder) / 1e6 - self._stored_mb(), 2),
            "storage_mb": round(self._stored_mb(), 2),
        }

    def _stored_mb(self) -> float:
        return bytes_in(self.folder / "sessions") / 1e6


def run(session: Session, data: Path, limit: int, minutes: float, log: Path) -> None:
    """Say the stream until the limit or the time is reached; a row a recording goes to the log."""
    heard, tokens, began = session.heard, 0, time.monotonic()
    for piece in stream(data):
        times: list[float] = []
        for round_ in cut_rounds(piece.conversation):
            tokens += tokens_of(round_)
            if heard >= len(round_):
                heard -= len(round_)
                continue
            heard = 0
            times.append(session.hear(round_))
            if time.monotonic() - began > 60 * minutes:
                break
        if times:
            row = session.row(piece, tokens, times)
            print(json.dumps(row), flush=True)
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        if tokens >= limit or time.monotonic() - began > 60 * minutes:
            return


def summarize(log: Path) -> None:
    """Laps against the first, and memory by tokens."""
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    first = {r["recording"]: r for r in rows if r["lap"] == 1}
    for lap in sorted({r["lap"] for r in rows}):
        same = [(r, first[r["recording"]]) for r in rows if r["lap"] == lap]
        same = [(r, f) for r, f in same if r["turns"] == f["turns"]]
        if not same:
            continue
        ratio = sum(r["turn_ms"] * r["turns"] for r, _ in same)
        ratio /= sum(f["turn_ms"] * f["turns"] for _, f in same)
        print(f"lap {lap}: {len(same)} recordings, {ratio:.2f} times the turn time of lap 1")
    last = rows[-1]
    for name in ("probe_ms", "resident_mb"):
        known = [(r["tokens"] / 1e6, r[name]) for r in rows if r[name] is not None]
        if len(known) < 2:
            continue
        slope, start = statistics.linear_regression(*zip(*known, strict=True))
        print(f"{name}: {start:.1f} + {slope:.1f} for each million tokens, now {known[-1][1]}")
    print(
        f"{last['tokens']:,} tokens, {last['messages']:,} messages, {last['topics']} topics, "
        f"{last['active']} active; checkpoints {last['checkpoints_mb']} MB, "
        f"storage {last['storage_mb']} MB"
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder of recordings, *.jsonl or *.jsonl.xz")
    parser.add_argument("--folder", type=Path, required=True, help="where the session lives")
    parser.add_argument("--tokens", type=int, default=10_000_000)
    parser.add_argument("--window", type=int, default=32_000)
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    log = given.folder / "progress.jsonl"
    with SqliteSaver.from_conn_string(str(given.folder / "checkpoints.sqlite")) as saver:
        session = Session(given.folder, given.window, saver)
        if session.heard:
            print(f"opened {session.heard:,} messages in {session.open():.1f} s of CPU", flush=True)
        run(session, given.data, given.tokens, given.minutes, log)
    summarize(log)


if __name__ == "__main__":
    main()
