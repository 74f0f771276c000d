"""Strategies that go by place alone: everything, the newest, the first and the newest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from topicloom.context.segments import ContextWindowPolicy
from topicloom.recordings.conversations import RecordedMessage
from topicloom.state.rounds import group_rounds
from topicloom_lab.strategies.base import Context, Strategy, cost_of, stored_of, turn_of


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
        """An empty memory, with a policy that says how many rounds."""
        super().__init__()
        self._policy = policy or ContextWindowPolicy()

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        first, _, last = self._policy.select(group_rounds(stored_of(self._messages)))
        by_id = {m.id: m for m in self._messages}
        kept: list[RecordedMessage] = []
        for round_ in [*reversed(last[-1:]), *first, *reversed(last[:-1])]:
            said = [by_id[r.source] for r in round_.messages if r.source]
            if sum(map(cost_of, [*kept, *said])) > budget:
                break
            kept += said
        order = {m.id: place for place, m in enumerate(self._messages)}
        return in_view(sorted(kept, key=lambda m: order[m.id]))


def newest(messages: Sequence[RecordedMessage], budget: int) -> Sequence[RecordedMessage]:
    """The newest messages that fit a budget in tokens."""
    costs = accumulate(map(cost_of, reversed(messages)))
    return messages[len(messages) - sum(cost <= budget for cost in costs) :]


def in_view(messages: Sequence[RecordedMessage]) -> Context:
    """A context of messages as they were said, in the order given."""
    return Context(tuple(map(turn_of, messages)), tuple(m.id for m in messages))
