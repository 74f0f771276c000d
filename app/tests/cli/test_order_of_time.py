"""What is exported stands in the order of time, whole rounds together."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from hypothesis import given, strategies as st

from topicloom import StoredMessage
from topicloom.hosting import group_rounds
from topicloom_app.cli.transfer import sort_by_time

MessageRole = Literal["user", "assistant", "tool", "system"]
ROLES: list[MessageRole] = ["assistant", "user", "tool", "system"]


@given(
    st.lists(st.tuples(st.sampled_from(ROLES), st.sampled_from(["", "soon", *"1234"])), max_size=9)
)
def test_rounds_in_the_order_of_time(drawn: list[tuple[MessageRole, str]]) -> None:
    """Each message stays in its round, and a round without a time behind the one before it."""
    messages = [
        StoredMessage(seq=n, role=role, text="x", time=f"2026-03-0{at}" if at.isdigit() else at)
        for n, (role, at) in enumerate(drawn, start=1)
    ]
    ordered = sort_by_time(messages)
    assert sorted(m.seq for m in ordered) == [m.seq for m in messages]
    rounds = group_rounds(messages)
    by_first = {r.messages[0].seq: r.messages for r in rounds}
    heads = [m.seq for m in ordered if m.seq in by_first]
    assert ordered == [m for head in heads for m in by_first[head]]
    days = [by_first[head][0].time for head in heads if by_first[head][0].time[:4] == "2026"]
    assert days == sorted(days)
    place = {head: n for n, head in enumerate(heads)}
    for before, after in pairwise(rounds):
        if not after.messages[0].time.startswith("2026"):
            assert place[after.first] == place[before.first] + 1


def test_what_is_in_order_stays() -> None:
    messages = [StoredMessage(seq=n, role=ROLES[n % 2], text="x", time="") for n in range(1, 5)]
    assert sort_by_time(messages) == messages
