"""How a recall note reads in the prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from topicloom.prompts.wording import wording
from topicloom.state.layers import Entry, Layer
from topicloom.state.recall import Note, TopicNote, number_of
from topicloom.state.session import Language
from topicloom.state.stored_message import Record

_KNOWLEDGE = frozenset({"lore"})
"""Kinds of sources that say how things are; the others say what happened."""


def layer_text(layer: Layer) -> str:
    """A layer in its frame. What comes from outside is escaped, so that nothing can close it."""
    if layer.kind == "deterministic":
        since = f" since={quoteattr(layer.since)}" if layer.since else ""
        return _framed(f'type="deterministic"{since}', [layer.text])
    model = f" model={quoteattr(layer.model)}" if layer.model else ""
    rationale = f"<rationale>{escape(layer.rationale)}</rationale>" if layer.rationale else ""
    known = [e for e in layer.entries if e.kind in _KNOWLEDGE]
    remembered = [e for e in layer.entries if e.kind not in _KNOWLEDGE]
    parts = [
        rationale,
        *_listed("knowledge_base", "entry", known),
        *_listed("relevant_memories", "memory", remembered),
    ]
    return _framed(f'type="probabilistic"{model}', filter(None, parts))


def _listed(around: str, tag: str, entries: Sequence[Entry]) -> list[str]:
    if not entries:
        return []
    return [f"<{around}>", *(_entry(tag, e) for e in entries), f"</{around}>"]


def _entry(tag: str, entry: Entry) -> str:
    title = f" title={quoteattr(entry.title)}" if entry.title else ""
    head = f"<{tag} id={quoteattr(entry.id)} type={quoteattr(entry.kind)}{title}>"
    return f"{head}\n{escape(entry.text)}\n</{tag}>"


def _framed(attributes: str, parts: Iterable[str]) -> str:
    return "\n".join([f"<context_layer {attributes}>", *parts, "</context_layer>"])


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
