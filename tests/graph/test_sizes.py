"""What messages cost in the main prompt, kept in step with what the prompt shows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from sessions import last_receipt, open_graph, tell, thread

from topicloom import FileStorage, Session, SessionStore, StoredMessage
from topicloom.context.layout import Layout
from topicloom.context.token_count import EstimatingCounter
from topicloom.nodes.workspace import TranscriptSizes
from topicloom.testing import Clock, ScriptedResponder, fake_roles

COUNTER = EstimatingCounter("o200k")
SAID = [
    StoredMessage(seq=n, role="user", text=f"word{n} " * size, time=f"2026-03-{n:02}T10:00:00Z")
    for n, size in ((1, 40), (2, 4_000), (3, 2), (4, 2), (5, 2))
]


def layout(cap: int = 10_000) -> Layout:
    return Layout(COUNTER, cap)


def shown(first: int, last: int, cap: int = 10_000) -> int:
    """Tokens of some messages as the prompt has them, counted by the prompt."""
    prompt = layout(cap).build_prompt("", SAID[first - 1 : last], [], lambda n: SAID[n - 1], "en")
    return prompt.sections["tail"]


def test_sums_follow_a_window_that_turns_out_smaller(tmp_path: Path) -> None:
    store = SessionStore(FileStorage(tmp_path, fsync=False).open("s"))
    session = store.append(Session(id="s"), SAID)
    sizes, cap = TranscriptSizes(store), 500
    assert sum(sizes.between(session, 1, 5, layout())) == shown(1, 5)
    assert sum(sizes.between(session, 1, 5, layout(cap))) == shown(1, 5, cap) < shown(1, 5) / 5
    assert sum(sizes.between(session, 2, 4, layout(cap))) == shown(2, 4, cap)


def test_two_runs_of_a_session_at_once_count_what_each_shows(tmp_path: Path) -> None:
    """Another thread asks for other messages while those of the first are being counted."""
    store = SessionStore(FileStorage(tmp_path, fsync=False).open("s"))
    session = store.append(Session(id="s"), SAID)
    other: list[int] = []

    def count_other() -> None:
        other.append(sum(sizes.between(session, 3, 5, layout())))

    thread_of_other = Thread(target=count_other)

    class Interrupted(SessionStore):
        def messages(self, *args: Any) -> list[StoredMessage]:
            if not thread_of_other.ident:
                thread_of_other.start()
                thread_of_other.join(0.5)  # it has to wait, or it comes in between
            return super().messages(*args)

    sizes = TranscriptSizes(Interrupted(store.log))
    assert sum(sizes.between(session, 1, 5, layout())) == shown(1, 5)
    thread_of_other.join()
    assert other == [shown(3, 5)]


@pytest.mark.slow
def test_a_split_counts_the_lines_of_days(tmp_path: Path) -> None:
    """A long time of few words: the lines of the days are most of the prompt, which has to fit."""
    roles = fake_roles(ScriptedResponder(otherwise="嗯"))
    graph = open_graph(tmp_path, roles, window=1_000, clock=Clock(timedelta(days=1)))
    events: tuple[str, ...] = ()
    while not events:
        tell(graph, thread(), "好")
        receipt = last_receipt(tmp_path, graph, thread())
        events = receipt.events
    assert [event.split()[0] for event in events[:2]] == ["room", "split"]
    assert receipt.sections["tail"] <= 0.5 * 0.7 * 1_000
