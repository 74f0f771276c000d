"""Recall notes as text for the prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from topicloom.context.transcript import describe_blocks, format_spoken_day, show_stretches
from topicloom.prompts.wording import Wording, get_wording
from topicloom.state.fence import fence, fence_line
from topicloom.state.language import Language
from topicloom.state.layers import CuratedEntry, Layer
from topicloom.state.recall import Note, Stretches, TopicNote, parse_message_number
from topicloom.state.safe_text import cut
from topicloom.state.stored_message import StoredMessage

_FACT = 300
"""Characters of a fact that are shown; applications may write longer ones."""


def format_layer(layer: Layer) -> str:
    """A layer in its frame. What comes from outside is escaped, so that nothing can close it."""
    if layer.kind == "deterministic":
        since = f" since={quoteattr(layer.since)}" if layer.since else ""
        return _frame(f'type="deterministic"{since}', [layer.text])
    model = f" model={quoteattr(layer.model)}" if layer.model else ""
    why = fence(escape(layer.rationale))
    rationale = f"<rationale>{why}</rationale>" if why else ""
    known = [e for e in layer.entries if e.knowledge]
    remembered = [e for e in layer.entries if not e.knowledge]
    parts = [rationale, *_format_entries("knowledge_base", "entry", known)]
    parts += _format_entries("relevant_memories", "memory", remembered)
    return _frame(f'type="probabilistic"{model}', filter(None, parts))


def _format_entries(around: str, tag: str, entries: Sequence[CuratedEntry]) -> list[str]:
    if not entries:
        return []
    return [f"<{around}>", *(_format_entry(tag, e) for e in entries), f"</{around}>"]


def _format_entry(tag: str, entry: CuratedEntry) -> str:
    title = f" title={quoteattr(fence_line(entry.title))}" if entry.title else ""
    head = f"<{tag} id={quoteattr(entry.id)} type={quoteattr(entry.kind)}{title}>"
    return f"{head}\n{fence(escape(entry.text))}\n</{tag}>"


def _frame(attributes: str, parts: Iterable[str]) -> str:
    return "\n".join([f"<context_layer {attributes}>", *parts, "</context_layer>"])


def format_quote_line(
    message: StoredMessage, language: Language, stretches: Stretches | None = None
) -> str:
    """One quoted original, or stretches of it: `[m42] user: ...`. Its day has a line of its own.

    The id marks where a quote begins: no text of a message passes for one.
    """
    text = message.text
    if stretches is not None:
        text = show_stretches(text, stretches, message.id, language)
    shown = "\n".join(filter(None, [fence(text), describe_blocks(message, language)]))
    return f"[{message.id}] {fence_line(message.label)}: {shown}"


def format_summary(name: str, summary: str, language: Language) -> str:
    """The line with a topic's summary."""
    return f"{get_wording(language).in_short.format(topic=fence_line(name))} {fence(summary)}"


def render_note(
    note: Note,
    fetch: Callable[[int], StoredMessage],
    language: Language,
    headings: Mapping[str, str] | None = None,
) -> str:
    """The note as text: layers, then memory.

    The quotes of all topics are one list in the order of the conversation, with each day as one
    says it above what was said on it; summaries of topics follow, best first. A small model answers
    better from that than from topics under their names (`docs/research/real-models.md`).

    With `headings`, by topic, it is the layout of the design paper: topics, best first, each with
    its heading, its quotes and its summary. `fetch` gives an original by its number.
    """
    layers = [format_layer(layer) for layer in note.layers]
    if not note.recalls:
        return "\n".join(layers)
    words = get_wording(language)
    groups = [note.topics] if headings is None else [(topic,) for topic in note.topics]
    parts: list[str] = []
    for topics in groups:
        parts += [headings.get(t.topic, t.name) for t in topics] if headings is not None else []
        parts += _render_quotes(topics, fetch, language)
        parts += [format_summary(t.name, t.summary, language) for t in topics if t.summary]
    found = map(fence_line, _describe_search(note, words))
    others = _describe_other_threads(note, language)
    return "\n".join([*layers, "<memory>", *parts, *found, *others, "</memory>"])


def _describe_other_threads(note: Note, language: Language) -> Iterator[str]:
    """Lines with facts of the user, and with what was said in other threads, by days."""
    words = get_wording(language)
    facts = [quote.text for quote in note.other_threads if quote.fact]
    if facts:
        yield words.facts_found
        yield from (f"- {fence_line(escape(text))}" for text in facts)
    day = ""
    for quote in sorted((q for q in note.other_threads if q.message), key=lambda q: q.day):
        if quote.day != day:
            day = quote.day
            yield words.in_other_threads.format(day=format_spoken_day(day, language))
        yield f"“{fence(quote.text)}”"


def _describe_search(note: Note, words: Wording) -> Iterator[str]:
    """Lines that tell what a search found, and what it looked at as far as that matters."""
    facts = note.scope.model_dump() if note.scope else {}
    if note.listed:
        yield words.topics_found
        yield from note.listed.values()
    if note.searched and facts:
        yield words.searched.format(query=note.searched, **facts)
    if facts.get("missed"):
        yield words.other_days.format(**facts)
    if facts.get("unsearched"):
        line = words.not_of_days if facts["other_days"] else words.not_looked_at
        yield line.format(**facts)
    if note.candidates:
        yield words.ask_which.format(names=", ".join(f"“{name}”" for name in note.candidates))


def show_fact(text: str, quote: str = "") -> str:
    """A fact with the user's own words behind it, where they are others."""
    return f"{text[: _FACT - len(quote) - 3]} “{quote}”" if quote else text


def format_facts(facts: Iterable[tuple[str, str]], language: Language) -> str:
    """Facts about the user, each of a day and a text, as a block; "" for none."""
    lines = [f"- {day}: {fence_line(escape(cut(text, _FACT)))}" for day, text in facts]
    words = get_wording(language).facts
    return "\n".join([words, "<user_facts>", *lines, "</user_facts>"]) if lines else ""


def _render_quotes(
    topics: Sequence[TopicNote], fetch: Callable[[int], StoredMessage], language: Language
) -> Iterator[str]:
    quoted = {i: topic for topic in topics for i in topic.quotes}
    day = ""
    for message_id in sorted(quoted, key=parse_message_number):
        original, topic = fetch(parse_message_number(message_id)), quoted[message_id]
        if original.day != day:
            day = original.day
            if day:
                yield get_wording(language).said_on.format(day=format_spoken_day(day, language))
        yield format_quote_line(original, language, topic.excerpts.get(message_id))
