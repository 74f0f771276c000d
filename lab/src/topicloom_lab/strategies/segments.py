"""Strategies by place: everything, the newest, the first round and the newest, with summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from langchain_core.messages import SystemMessage

from topicloom import BriefWriter, StoredMessage
from topicloom.lab import (
    Chat,
    ChatBriefWriter,
    ContextWindowPolicy,
    Language,
    PrefixMeter,
    SegmentLayout,
    Summarize,
    SummaryManager,
    date_messages,
    fence,
    group_rounds,
    make_segment_request,
    show_message,
    summarize_by_extracts,
)
from topicloom_app.recordings.conversations import RecordedMessage
from topicloom_lab.strategies.base import (
    COUNTER,
    Context,
    Strategy,
    StrategyOptions,
    cost_of,
    quoted_in,
    stored_of,
    turn_of,
)


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

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        first, _, last = ContextWindowPolicy().select(group_rounds(stored_of(self._messages)))
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


SUMMARY_TOKENS = 200
"""Tokens of an extract that stands for a segment of five to eight rounds."""


class SegmentSummaries(Strategy):
    """Summaries of segments, each from its originals, beside the first and the newest rounds."""

    def __init__(self, options: StrategyOptions) -> None:
        """An empty memory; the options' chat model writes the summaries, extracts without one."""
        super().__init__()
        self._language = options.language
        self._summarize = self._summarizer(options)
        self._layout = SegmentLayout(COUNTER, SummaryManager(self._counted))
        self._records: list[StoredMessage] = []
        self._calls = 0

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`; segments that became whole are summed up."""
        super().feed(messages)
        self._records += stored_of(messages, len(self._records) + 1)
        self._layout.split_parts(self._records)
        calls, self._calls = self._calls, 0
        return {"brief": calls} if calls else {}

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`."""
        system, shown = self._layout.build_prompt("", self._records, budget, self._language)
        _, segments, _ = self._layout.split_parts(self._records)
        text = "\n".join(s.text for s in segments if s.line in system)
        whole = {r.source for r in shown} | set(quoted_in(text, self._messages))
        sources = tuple(m.id for m in self._messages if m.id in whole)
        days = date_messages(shown, self._language)
        said = [show_message(m, fence(m.text), day) for m, day in zip(shown, days, strict=True)]
        return Context((*([SystemMessage(system)] if system else []), *said), sources)

    def _counted(self, stored: Sequence[StoredMessage]) -> str:
        self._calls += 1
        return self._summarize(stored)

    @staticmethod
    def _summarizer(options: StrategyOptions) -> Summarize:
        if options.chat is None:
            return summarize_by_extracts(options.embedder, COUNTER.text, SUMMARY_TOKENS)
        return summarize_by_briefs(
            ChatBriefWriter(Chat.of(options.chat, PrefixMeter())), options.language
        )


def summarize_by_briefs(writer: BriefWriter, language: Language) -> Summarize:
    """A summarizer by briefs, of about 1,000 characters; what the writer raises is passed on."""

    def summarize(messages: Sequence[StoredMessage]) -> str:
        return writer.call(make_segment_request("segments", messages, language)).value.text

    return summarize
