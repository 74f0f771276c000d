"""The account of a session: its figures, and its topics over time."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from topicloom import Memory, Session, SessionStore, count_budget_tokens
from topicloom_app.cli._views import format_day, render_topics
from topicloom_app.cli.console import count_of, render_heading
from topicloom_app.cli.words import say

_TOPICS = 14
"""Topics that are listed at most."""


def render_account(
    memory: Memory, session: Session, store: SessionStore, width: int
) -> RenderableType:
    """The account of a conversation: its figures, and its topics over time."""
    heading = render_heading("What became of the conversation")
    figures = _render_figures(session, store, len(memory.topics()))
    return Group(heading, figures, Text(), render_topics(memory, width, most=_TOPICS))


def _render_figures(session: Session, store: SessionStore, topics: int) -> Text:
    if not session.count:
        return Text(say("Nothing was said."))
    receipts = store.receipts(session)
    splits = sum(bool(r.split) for r in receipts)
    largest = max((sum(r.sections.values()) for r in receipts), default=0)
    first, last = store.message(session, 1), store.message(session, session.count)
    tokens = round(sum(count_budget_tokens(m.text) for m in store.messages(session)), -3)
    return Text.assemble(
        (count_of(session.count, "message"), "bold"),
        say(
            ", {first} to {last}, went into ",
            first=format_day(first.day),
            last=format_day(last.day),
        ),
        (count_of(topics, "topic"), "bold"),
        say(
            " in {splits}; the newest {newest} are in"
            " no topic yet. All of it is about {tokens:,} tokens; no prompt was"
            " larger than {largest:,}. Every original is still there, word for word.",
            splits=count_of(splits, "split"),
            newest=session.count - session.tail + 1,
            tokens=tokens,
            largest=largest,
        ),
    )
