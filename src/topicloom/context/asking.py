"""Prompts that are asked once: to split, to search, to resolve references."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from topicloom.context.excerpt import excerpt
from topicloom.context.tokens import TokenCounter
from topicloom.context.transcript import Transcript
from topicloom.context.windows import left_out, rest_of
from topicloom.context.yaml_text import yaml_text
from topicloom.prompts.loader import PromptName, prompt
from topicloom.prompts.wording import wording
from topicloom.state.blocks import LogicalBlock
from topicloom.state.document import Document, made_anchors
from topicloom.state.events import Event
from topicloom.state.records import Record
from topicloom.state.session import Language
from topicloom.state.topics import Topic

_SMALLEST = 24
"""Tokens that every message to split is shown with at least."""


def splitter_messages(
    blocks: Sequence[LogicalBlock],
    segments: Sequence[int],
    topics: Sequence[Topic],
    active: Collection[str],
    language: Language,
    counter: TokenCounter,
    limit: int,
    dividing: Topic | None = None,
) -> list[BaseMessage]:
    """The prompt by which blocks are assigned to topics; the topics stand last.

    Every message is in it, long ones in part if need be: one that is not shown cannot be
    assigned.

    Args:
        blocks: The blocks, in order.
        segments: For each block, the number of the segment it lies in.
        topics: Topics that a block may go to.
        active: Ids of those that are active.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt.
        dividing: The topic that the blocks are of, when it is to be divided.
    """
    words = wording(language)
    asked = _to_divide(dividing, language) if dividing else ""
    room = limit - counter.text(prompt("splitter", language)) - counter.text(asked)
    whole = _sorted_parts(blocks, segments, Transcript(counter, limit // 8, language))
    if counter.text(whole) > room * 2 // 3:
        share = max(_SMALLEST, room * 2 // 3 // sum(len(b.records) for b in blocks))
        whole = _sorted_parts(blocks, segments, Transcript(counter, share, language))
    heads = [
        f"[{t.id}] ({words.active if t.id in active else words.dormant}) {_line(t.name)}"
        for t in topics
    ]
    listed = _listing(heads, topics, counter, room - counter.text(whole)) or words.nothing
    return _asked("splitter", language, whole, f"{asked}{words.topics}\n{listed}")


def router_messages(
    query: str,
    when: str | None,
    tail: Sequence[Record],
    topics: Sequence[Topic],
    language: Language,
    counter: TokenCounter,
    limit: int,
) -> list[BaseMessage]:
    """The prompt by which topics are searched; the topics stand last.

    Args:
        query: What to look for.
        when: Days that are meant, if known.
        tail: The newest messages.
        topics: The candidates.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt.
    """
    words = wording(language)
    room = limit - counter.text(prompt("router", language))
    recent = _recent(tail, language, counter, room // 3)
    wanted = [words.looking_for, query, *([words.days.format(days=when)] if when else [])]
    heads = [f"[{t.id}] {_line(t.name)}{_days(t)}" for t in topics]
    left = room - counter.text(recent) - counter.text("\n".join(wanted))
    listed = _listing(heads, topics, counter, left) or words.nothing
    last = "\n".join([*wanted, words.topics, listed])
    return _asked("router", language, recent or words.nothing, last)


def rewriter_messages(
    text: str, tail: Sequence[Record], language: Language, counter: TokenCounter, limit: int
) -> list[BaseMessage]:
    """The prompt by which references are resolved; the message stands last.

    Args:
        text: The message to rewrite.
        tail: The messages before it.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt.
    """
    words = wording(language)
    room = limit - counter.text(prompt("rewriter", language)) - counter.text(text)
    recent = _recent(tail, language, counter, room)
    return _asked("rewriter", language, recent or words.nothing, f"{words.message}\n{text}")


def planner_messages(
    text: str,
    tail: Sequence[Record],
    document: Document,
    events: Sequence[Event],
    templates: Sequence[str],
    language: Language,
    counter: TokenCounter,
    limit: int,
) -> list[BaseMessage]:
    """The prompt by which a turn is planned: what changes least stands first.

    Args:
        text: The new message.
        tail: The messages before it.
        document: The application's document; cut where it takes more than half of the prompt.
        events: Its active events.
        templates: Names of the templates.
        language: Of the instructions.
        counter: Counts tokens.
        limit: Tokens of the whole prompt.
    """
    words = wording(language)
    system = prompt("planner", language)
    room = limit - counter.text(system) - counter.text(text)
    data = excerpt(
        yaml_text(document, made_anchors(document)), room // 2, counter.text, "data", language
    )
    listed = yaml_text(list(events), {}) if events else words.nothing
    listed = excerpt(listed, room // 8, counter.text, "events", language)
    known = "\n".join(
        [words.templates, ", ".join(templates), words.data, data, words.events, listed]
    )
    recent = _recent(tail, language, counter, room // 4) or words.nothing
    return [
        SystemMessage(system),
        HumanMessage(known),
        HumanMessage(recent),
        HumanMessage(f"{words.message}\n{text}"),
    ]


def _asked(name: PromptName, language: Language, first: str, last: str) -> list[BaseMessage]:
    return [SystemMessage(prompt(name, language)), HumanMessage(first), HumanMessage(last)]


def _to_divide(topic: Topic, language: Language) -> str:
    brief = f": {_line(topic.brief)}" if topic.brief else ""
    return f"{wording(language).dividing}\n{_line(topic.name)}{brief}\n"


def _sorted_parts(
    blocks: Sequence[LogicalBlock], segments: Sequence[int], transcript: Transcript
) -> str:
    """Blocks under a line for each new segment, numbered from 1."""
    part = wording(transcript.language).part
    texts = transcript.blocks(blocks)
    lines: list[str] = []
    number, current = 0, None
    for text, segment in zip(texts, segments, strict=True):
        if segment != current:
            number, current = number + 1, segment
            lines.append(part.format(number=number))
        lines.append(text)
    return "\n".join(lines)


def _recent(tail: Sequence[Record], language: Language, counter: TokenCounter, room: int) -> str:
    """The newest messages that fit."""
    lines = Transcript(counter, max(_SMALLEST, room // 4), language).lines(tail)
    cut = left_out([counter.text(line) + 1 for line in lines], room, 1)
    return "\n".join(rest_of(lines, cut, wording(language).missing.format(count=cut)))


def _listing(
    heads: Sequence[str], topics: Sequence[Topic], counter: TokenCounter, room: int
) -> str:
    """Topics, a line each; if their briefs don't fit, the beginnings of them."""
    briefs = [_line(t.brief) for t in topics]
    whole = "\n".join(f"{h}: {b}" if b else h for h, b in zip(heads, briefs, strict=True))
    tokens = counter.text(whole)
    if tokens <= room:
        return whole
    spare = max(0, room - sum(counter.text(h) + 4 for h in heads))
    share = spare / max(1, tokens)
    begun = [b[: int(len(b) * share)] for b in briefs]
    return "\n".join(f"{h}: {b}..." if b else h for h, b in zip(heads, begun, strict=True))


def _days(topic: Topic) -> str:
    first, last = topic.first_at[:10], topic.last_at[:10]
    if not first:
        return ""
    return f" ({first})" if last in ("", first) else f" ({first} .. {last})"


def _line(text: str) -> str:
    return " ".join(text.split())
