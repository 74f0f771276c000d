"""How a recall note reads in the prompt."""

from __future__ import annotations

from collections.abc import Callable

from topicloom.context.layers import layer_text
from topicloom.prompts.wording import wording
from topicloom.state.recall import Note, TopicNote, number_of
from topicloom.state.records import Record
from topicloom.state.session import Language

Show = Callable[[Record, bool], str]
"""The text of a record to show; the flag says that only a part fits."""


def quote_line(record: Record, text: str) -> str:
    """One quoted original: `[m42] user: ...`. Its day stands in a line of its own."""
    return f"[{record.id}] {record.label}: {text}"


def topic_heading(topic: str, name: str) -> str:
    """The line above a topic's quotes."""
    return f"# {name} ({topic})"


def render_note(note: Note, record: Callable[[int], Record], show: Show, language: Language) -> str:
    """The note as text: layers, then memory, best topic first; quotes in conversation order.

    Args:
        note: The note.
        record: Fetches an original by its number.
        show: Gives the text of an original, in part if asked to.
        language: Language of the fixed words.
    """
    layers = [layer_text(layer) for layer in note.layers]
    if not note.recalls:
        return "\n".join(layers)
    words = wording(language)
    parts = [_topic(t, record, show, words.in_short) for t in note.topics]
    if note.candidates:
        names = ", ".join(f"“{name}”" for name in note.candidates)
        parts.append(words.ask_which.format(names=names))
    elif note.searched:
        parts.append(words.searched.format(query=note.searched))
    return "\n".join([*layers, "<memory>", *parts, "</memory>"])


def _topic(note: TopicNote, record: Callable[[int], Record], show: Show, summary_word: str) -> str:
    lines = [topic_heading(note.topic, note.name)]
    day = ""
    for message_id in note.quotes:
        original = record(number_of(message_id))
        if original.day != day:
            day = original.day
            lines.append(f"{day}:")
        lines.append(quote_line(original, show(original, message_id in note.partial)))
    if note.summary:
        lines.append(f"{summary_word}: {note.summary}")
    return "\n".join(lines)
