"""The account of a session: exchanges that a quote made possible, figures, topics."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path
from shlex import quote
from shutil import which

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from topicloom import Memory, Session, SessionStore, StoredMessage, count_budget_tokens
from topicloom_app.cli._views import extract_terms, find_excerpt, format_day, render_topics, shorten
from topicloom_app.cli.console import (
    count_of,
    render_heading,
    to_one_line,
)
from topicloom_app.cli.words import say

_EXCHANGES, _LINES = 3, 3
"""Exchanges that are shown, and lines of each message."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A turn whose reply rests on a message that was quoted for it."""

    asked: StoredMessage
    quote: StoredMessage
    topic: str
    """Name of the topic that it was quoted from."""
    reply: StoredMessage


_TOPICS = 14
_LONGEST = 600
"""Characters of a message that an exchange is chosen by: of pasted pages everything is shared."""


class TermRarity:
    """Scores the terms that two messages of a conversation share; rare ones count more."""

    def __init__(self, messages: Sequence[StoredMessage]) -> None:
        """Count the messages of a conversation that each term is in."""
        self._size = len(messages)
        self._counts = Counter(term for m in messages for term in set(extract_terms(m.text)))

    def score_shared(self, text: str, other: str, without: str = "") -> float:
        """Sum of the rarities of the terms that both have, and a third text has not."""
        both = set(extract_terms(text)).intersection(extract_terms(other))
        both.difference_update(extract_terms(without))
        return sum(log((1 + self._size) / (1 + self._counts[term])) for term in sorted(both))


def select_exchanges(session: Session, store: SessionStore) -> list[Exchange]:
    """The exchanges whose replies say most that is in a quote and was not in the question.

    Each topic, quote and turn occurs once. They are in their order.
    """
    messages = {m.id: m for m in store.messages(session)}
    rarity = TermRarity(list(messages.values()))
    rated: list[tuple[float, Exchange]] = []
    for receipt in store.receipts(session):
        asked = messages.get(receipt.user)
        reply = asked and messages.get(f"m{asked.seq + 1}")
        if not (asked and reply and reply.role == "assistant"):
            continue
        recalled = ((messages.get(i), note.name) for note in receipt.quoted for i in note.quotes)
        for said, name in recalled:
            if said and said.role == "user" and max(len(said.text), len(asked.text)) < _LONGEST:
                score = rarity.score_shared(said.text, reply.text, without=asked.text)
                rated.append((score, Exchange(asked, said, name, reply)))
    rated.sort(key=lambda pair: -pair[0])
    chosen: list[Exchange] = []
    for _, found in rated:
        if not any(_is_alike(found, other) for other in chosen):
            chosen.append(found)
    return sorted(chosen[:_EXCHANGES], key=lambda e: e.asked.seq)


def _is_alike(one: Exchange, other: Exchange) -> bool:
    return one.topic == other.topic or one.quote == other.quote or one.asked == other.asked


def render_account(
    memory: Memory, session: Session, store: SessionStore, width: int
) -> RenderableType:
    """The account of a conversation: exchanges that a quote made possible, figures, topics."""
    parts: list[RenderableType] = []
    if exchanges := select_exchanges(session, store):
        parts.append(render_heading("What came back when it was needed"))
        parts += (_render_exchange(e, width) for e in exchanges)
    parts.append(render_heading("What became of the conversation"))
    parts += (_render_figures(session, store), Text())
    parts.append(render_topics(memory, width, most=_TOPICS))
    return Group(*parts)


def _render_exchange(found: Exchange, width: int) -> RenderableType:
    """What was asked, what was quoted for it and what was replied, wrapped."""
    asked, quote, reply = found.asked, found.quote, found.reply
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, justify="right", width=9)
    table.add_column(overflow="fold")
    room = max(20, width - 11) * _LINES - 8  # lines that break between words are not full
    where = say(
        "{message}, {day}, from {topic}: ",
        message=quote.id,
        day=format_day(quote.day),
        topic=to_one_line(found.topic),
    )
    rest = find_excerpt(quote.text, reply.text, room - Text(where).cell_len)
    for label, style, text in (
        (asked.id, "bold cyan", Text(shorten(asked.text, room))),
        (say("recalled"), "green", Text.assemble((where, "green"), f"“{rest}”")),
        (reply.id, "bold", Text(find_excerpt(reply.text, quote.text, room))),
    ):
        table.add_row(Text(label, style=style), text)
    return Group(Text(format_day(asked.day), style="dim"), table)


def render_next_steps(kept: str | None, *, composed: bool) -> RenderableType:
    """Commands to try after a replay that was kept as this session, if it was kept."""
    program = sys.argv[0] if Path(sys.argv[0]).name == "topicloom" else "topicloom"
    program = "topicloom" if which("topicloom") == program else quote(os.path.relpath(program))
    if kept is None:
        steps = [
            ("talk in a session of your own", f"{program} chat"),
            ("see the sample in the browser", f"{program} ui"),
            ("keep this one, and go on with it", f"{program} replay --session lake"),
        ]
    else:
        steps = [
            ("go on with this conversation", f"{program} chat {quote(kept)}"),
            ("see it in the browser", f"{program} ui {quote(kept)}"),
            ("read a topic word for word", f"{program} transcript {quote(kept)} --topic t1"),
        ]
    if not composed:
        model = "export TOPICLOOM_MODEL=openai:gpt-5-mini OPENAI_API_KEY=..."
        steps.append(("have real replies", model))
    lines = [
        Text.assemble((f"{say(what)}:\n", "dim"), (f"  {command}", "cyan"))
        for what, command in steps
    ]
    return Group(render_heading("Next"), *lines)


def _render_figures(session: Session, store: SessionStore) -> Text:
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
        (count_of(len(store.topic_table(session)), "topic"), "bold"),
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
