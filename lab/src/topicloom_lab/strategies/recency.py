"""Strategies that go by place alone: everything, the newest, the first and the newest."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.context.segments import ContextWindowPolicy
from topicloom.context.tokens import count_budget_tokens
from topicloom.recordings.conversations import RecordedMessage
from topicloom.recordings.replay import as_message
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.stored_message import to_stored_message
from topicloom_lab.strategies.base import Context, Strategy, line_of, turn_of


class KeepEverything(Strategy):
    """The whole conversation, whatever it costs: what a question would get without a limit."""

    def context(self, question: str, budget: int) -> Context:
        """All messages; the budget is ignored."""
        return in_view(self._messages)


class LastTokens(Strategy):
    """The newest messages that fit."""

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        return in_view(newest(self._messages, budget))


class FirstAndLast(Strategy):
    """The first round and the newest ones: a usual baseline.

    Of rounds that don't fit together the oldest go, the first one last.
    """

    def __init__(self, policy: ContextWindowPolicy | None = None) -> None:
        """Args:
        policy: How many rounds.
        """
        super().__init__()
        self._policy = policy or ContextWindowPolicy()

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        rounds = rounds_of(self._messages)
        first, _, last = self._policy.select(rounds)
        by_id = {m.id: m for m in self._messages}
        kept: list[RecordedMessage] = []
        for round_ in [*reversed(last[-1:]), *first, *reversed(last[:-1])]:
            said = [by_id[r.source] for r in round_.messages if r.source]
            if size(kept) + size(said) > budget:
                break
            kept += said
        order = {m.id: place for place, m in enumerate(self._messages)}
        return in_view(sorted(kept, key=lambda m: order[m.id]))


def newest(messages: Sequence[RecordedMessage], budget: int) -> Sequence[RecordedMessage]:
    """The newest messages that fit a budget in tokens."""
    begin = len(messages)
    while (
        begin and (budget := budget - count_budget_tokens(f"{line_of(messages[begin - 1])}\n")) >= 0
    ):
        begin -= 1
    return messages[begin:]


def rounds_of(messages: Sequence[RecordedMessage]) -> list[Round]:
    """Rounds of a recording; records are numbered from 1 and have its ids as sources."""
    stored = [
        to_stored_message(as_message(m), seq=n, time="") for n, m in enumerate(messages, start=1)
    ]
    return group_rounds(stored)


def size(messages: Sequence[RecordedMessage]) -> int:
    """Tokens of messages in view."""
    return sum(count_budget_tokens(f"{line_of(m)}\n") for m in messages)


def in_view(messages: Sequence[RecordedMessage]) -> Context:
    """A context of messages as they were said, in the order given."""
    return Context(tuple(map(turn_of, messages)), tuple(m.id for m in messages))
