"""A turn of the demonstration: what was read, what is quoted, what a plain window has lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from rich.console import RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from topicloom import MemoryTopic, Reading, StoredMessage, count_budget_tokens
from topicloom_app.cli._views import find_excerpt, format_day, shorten
from topicloom_app.cli.words import say
from topicloom_app.recordings.demonstration import CITATION

_LEAST = 0.1
"""Score from which a topic stays on the screen."""
_QUOTE_LINES = 4
"""Lines of a quote at most."""


@dataclass(frozen=True, slots=True)
class ReadTopic:
    """A topic with what a reader said of it."""

    topic: MemoryTopic
    reading: Reading

    @property
    def named(self) -> tuple[str, ...]:
        """Short ids of what a model named of it."""
        return tuple(q.id for q in self.reading.quotes if self.reading.source == "model")


def render_readings(read: Sequence[ReadTopic], width: int) -> Table:
    """A bar for each topic, in the order in which readers answered."""
    bar = width // 5
    table = Table.grid(padding=(0, 1))
    table.add_column(width=width // 3, no_wrap=True)
    table.add_column(width=bar)
    table.add_column(justify="right", min_width=4)
    table.add_column(style="green", no_wrap=True)
    for one in read:
        score, named = one.reading.score, one.named
        what = named[0] if len(named) == 1 else len(named)
        table.add_row(
            Text(shorten(one.topic.name, width // 3), style="bold" if named else "dim"),
            ProgressBar(1.0, score, width=bar, complete_style="green" if named else "cyan"),
            Text(f"{score:.2f}", style="" if named else "dim"),
            say("named {what} of {count}", what=what, count=one.topic.count) if named else "",
        )
    return table


def select_relevant(read: Iterable[ReadTopic]) -> list[ReadTopic]:
    """The topics that have anything to do with the question, the best first."""
    relevant = (one for one in read if one.named or one.reading.score >= _LEAST)
    return sorted(relevant, key=lambda one: -one.reading.score)


def render_quotes(
    messages: Sequence[StoredMessage], reply: str, width: int
) -> Iterator[RenderableType]:
    """Quoted messages with their days; of a long one, the part that the reply rests on."""
    heads = [Text.assemble((f"{m.id:4}", "green"), f" {format_day(m.day)}") for m in messages]
    left = max((head.cell_len for head in heads), default=0)
    room = _QUOTE_LINES * (width - left - 8)  # lines that break between words are not full
    for head, message in zip(heads, messages, strict=True):
        row = Table.grid(padding=(0, 1))
        row.add_column(width=left, style="dim", no_wrap=True)
        row.add_column(overflow="fold")
        row.add_row(head, Text(f"“{find_excerpt(message.text, reply, room)}”"))
        yield row


def render_reply(reply: str) -> Text:
    """A reply; where it says which words rest on which message, these stand out."""
    text, end = Text(), 0
    for found in CITATION.finditer(reply):
        text.append(reply[end : found.start()])
        text.append(found[1], style="green").append(found[2], style="bold green")
        end = found.end()
    return text.append(reply[end:])


def describe_plain_window(
    messages: Sequence[StoredMessage], window: int, wanted: Sequence[StoredMessage]
) -> str:
    """What a window that holds the newest messages alone would still have of some.

    Args:
        messages: The conversation.
        window: Tokens of the window, all of which are for messages.
        wanted: Messages of the conversation, at least one.
    """
    sizes = accumulate(count_budget_tokens(m.text) for m in reversed(messages))
    held = sum(1 for _ in takewhile(lambda size: size <= window, sizes))
    first = messages[-held] if held else messages[-1]
    kept = [m.id for m in wanted if m.seq >= first.seq]
    lost = [m.id for m in wanted if m.seq < first.seq]
    begins = say(
        "A plain window of {window:,} tokens begins at {first}, {day}: ",
        window=window,
        first=first.id,
        day=format_day(first.day),
    )
    if not lost:
        return begins + say("it still has all of this.")
    if not kept:
        return begins + say("it has lost all of this.")
    still = "it still has {kept}, and has lost {lost}."
    return begins + say(still, kept=", ".join(kept), lost=", ".join(lost))
