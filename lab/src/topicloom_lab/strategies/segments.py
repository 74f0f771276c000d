"""The deterministic layout: first round, segment summaries, newest rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from topicloom.context.prefix import PrefixMeter
from topicloom.context.segments import SegmentLayout, Summarize, SummaryManager
from topicloom.recordings.conversations import RecordedMessage
from topicloom.roles.brief import (
    BriefWriter,
    ChatBriefWriter,
    make_segment_request,
    summarize_by_extracts,
)
from topicloom.roles.chat import Chat
from topicloom.state.language import Language
from topicloom.state.stored_message import StoredMessage
from topicloom_lab.strategies.base import (
    COUNTER,
    Context,
    Strategy,
    StrategyOptions,
    quoted_in,
    stored_of,
)

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
        prompt = self._layout.build_prompt("", self._records, budget, self._language)
        text = "\n".join(s.text for s in prompt.segments)
        whole = {r.source for r in prompt.shown} | set(quoted_in(text, self._messages))
        sources = tuple(m.id for m in self._messages if m.id in whole)
        return Context(tuple(prompt.messages), sources)

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
