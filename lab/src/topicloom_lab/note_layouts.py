"""Forms that a recall note could have, to find the one that a model answers best from.

Each writes down the same kind of note as `topicloom.context.notes.render_note`, in another way. The
choice of the quotes is the session's: a form that takes less room shows more of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType
from typing import Literal

from langchain_core.messages import SystemMessage

from topicloom import Note, StoredMessage, TopicNote, count_budget_tokens
from topicloom.lab import (
    Language,
    RankedSentences,
    Stretches,
    describe_blocks,
    fence,
    fence_line,
    format_day,
    format_spoken_day,
    get_wording,
    parse_message_number,
    render_note,
    show_stretches,
)
from topicloom_lab.strategies.base import Context
from topicloom_lab.strategies.session_graph import SessionGraphStrategy

Days = Literal["words", "line", "weekday", "ago", "each", "none"]

_RULE = {
    "en": "Where two of these statements differ, the later one holds.",
    "zh": "这些说法不一致时，以后说的为准。",
}
_OLDER = {"en": "(said again later, differently)", "zh": "（后来另有说法）"}
_AGO: Mapping[Language, Callable[[int], str]] = MappingProxyType(
    {
        "en": lambda days: "today" if days == 0 else f"{days} day{'s' * (days > 1)} ago",
        "zh": lambda days: "今天" if days == 0 else f"{days}天前",
    }
)
_FEW_WORDS = 4
_WORD = re.compile(r"[\u4e00-\u9fff]|\w+")


@dataclass(frozen=True, slots=True)
class NoteLayout:
    """One form of a note."""

    what: str
    """A description in one line."""
    by_topic: bool = False
    """True for a part of each topic under its name, best first; False for one list in the order
    of the conversation."""
    headings: bool = True
    """Whether a topic's name stands above its part."""
    ids: bool = False
    """Whether each quote begins with its short id."""
    days: Days = "line"
    """`line`: the day once above what was said on it, as 2026-03-02; `words`: as 2 March 2026;
    `weekday`: as the prompt has it elsewhere;
    `ago`: with the distance from today; `each`: before each quote; `none`: not at all."""
    rule: bool = False
    """Whether the last line says that the later of two statements holds."""
    marks: bool = False
    """Whether a quote is marked that a later one of the same speaker seems to correct."""
    drops_short: bool = False
    """Whether quotes of fewer than four words are left out."""
    longest: int | None = None
    """Tokens of a quote, past which its sentences are chosen by the question."""
    newest_first: bool = False
    """Whether the list begins with what was said last."""


LAYOUTS: Mapping[str, NoteLayout] = MappingProxyType(
    {
        "shipped": NoteLayout(
            "one list by time, days in words, ids: as shipped", days="words", ids=True
        ),
        "words": NoteLayout("one list by time, days in words", days="words"),
        "topics": NoteLayout("topics, names, days, ids: as in 0.1", by_topic=True, ids=True),
        "topics-plain": NoteLayout("the same without ids", by_topic=True),
        "topics-bare": NoteLayout("topics and names alone", by_topic=True, days="none"),
        "nameless": NoteLayout("topics, days, no names and ids", by_topic=True, headings=False),
        "time-ids": NoteLayout("one list by time, days, ids", ids=True),
        "time": NoteLayout("one list by time, days"),
        "time-newest": NoteLayout("one list, the newest first, days", newest_first=True),
        "weekday": NoteLayout("one list by time, days with weekdays", days="weekday"),
        "ago": NoteLayout("one list by time, days with their distance", days="ago"),
        "each": NoteLayout("one list by time, the day before each quote", days="each"),
        "bare": NoteLayout("one list by time, nothing but speaker and text", days="none"),
        "rule": NoteLayout("`time` with the rule about older and newer at its end", rule=True),
        "marks": NoteLayout("`time` with marks on what was said again later", marks=True),
        "no-short": NoteLayout("`time` without short replies", drops_short=True),
        "excerpts": NoteLayout("`time`, long quotes in excerpts", longest=80),
        "bare-excerpts": NoteLayout("`bare`, long quotes in excerpts", days="none", longest=80),
    }
)


@dataclass(frozen=True, slots=True)
class NoteSource:
    """What a note may be made of."""

    topics: Sequence[TopicNote]
    """The quotes, by topic."""
    fetch: Callable[[int], StoredMessage]
    """Gives an original by its number."""
    language: Language
    question: str
    """Chooses sentences of excerpts."""
    today: str = ""
    """ISO 8601."""


def write_note(layout: NoteLayout, source: NoteSource) -> str:
    """The note as text; "" if it quotes nothing."""
    if not source.topics:
        return ""
    if layout == LAYOUTS["shipped"]:
        return render_note(
            Note(after=0, topics=tuple(source.topics)), source.fetch, source.language
        )
    lines = list(_write_lines(layout, source))
    if layout.rule:
        lines.append(_RULE[source.language])
    return "\n".join(["<memory>", *lines, "</memory>"])


def find_largest(
    layout: NoteLayout, sources: Sequence[NoteSource], budget: int
) -> tuple[str, NoteSource] | None:
    """The note of the most quotes whose text fits the budget; None if none does."""
    for source in sorted(sources, key=lambda s: -sum(len(t.quotes) for t in s.topics)):
        text = write_note(layout, source)
        if count_budget_tokens(text) <= budget:
            return text, source
    return None


def _write_lines(layout: NoteLayout, source: NoteSource) -> Iterator[str]:
    if layout.by_topic:
        for topic in source.topics:
            if layout.headings:
                yield f"# {fence_line(topic.name)} ({topic.topic})"
            yield from _write_quotes(layout, source, [(i, topic) for i in topic.quotes])
        return
    quotes = [(i, topic) for topic in source.topics for i in topic.quotes]
    order = sorted(quotes, key=lambda q: parse_message_number(q[0]), reverse=layout.newest_first)
    yield from _write_quotes(layout, source, order)


def _write_quotes(
    layout: NoteLayout, source: NoteSource, quotes: Sequence[tuple[str, TopicNote]]
) -> Iterator[str]:
    originals = [source.fetch(parse_message_number(i)) for i, _ in quotes]
    day = ""
    for place, (message_id, topic) in enumerate(quotes):
        original = originals[place]
        if layout.drops_short and len(_WORD.findall(original.text)) < _FEW_WORDS:
            continue
        if original.day != day and layout.days in ("words", "line", "weekday", "ago"):
            day = original.day
            yield _write_day(layout.days, day, source)
        begin = f"[{message_id}] " if layout.ids else ""
        if layout.days == "each":
            begin += f"({original.day}) "
        stretches = topic.excerpts.get(message_id)
        if layout.longest and stretches is None:
            stretches = _cut(original.text, layout.longest, source.question)
        mark = ""
        if layout.marks and any(_corrects(later, original) for later in originals[place + 1 :]):
            mark = f" {_OLDER[source.language]}"
        yield f"{begin}{fence_line(original.label)}: {_show(original, stretches, source)}{mark}"


def _show(original: StoredMessage, stretches: Stretches | None, source: NoteSource) -> str:
    text = original.text
    if stretches is not None:
        text = show_stretches(text, stretches, original.id, source.language)
    return "\n".join(filter(None, [fence(text), describe_blocks(original, source.language)]))


def _cut(text: str, longest: int, question: str) -> Stretches | None:
    if count_budget_tokens(text) <= longest:
        return None
    return RankedSentences.of(text, question).select(longest, count_budget_tokens) or (
        (0, 4 * longest),
    )


def _write_day(days: Days, day: str, source: NoteSource) -> str:
    if days == "words":
        return get_wording(source.language).said_on.format(
            day=format_spoken_day(day, source.language)
        )
    if days == "weekday":
        return format_day(day, source.language) or f"{day}:"
    if days == "ago":
        try:
            passed = (date.fromisoformat(source.today[:10]) - date.fromisoformat(day)).days
        except ValueError:
            return f"{day}:"
        return f"{day}, {_AGO[source.language](max(0, passed))}:"
    return f"{day}:"


def _corrects(later: StoredMessage, earlier: StoredMessage) -> bool:
    """A guess: the same speaker says most of the same words again, and another number."""
    if later.label != earlier.label:
        return False
    old, new = (set(_WORD.findall(m.text.lower())) for m in (earlier, later))
    numbers_old, numbers_new = ({w for w in words if w.isdigit()} for words in (old, new))
    words_old, words_new = old - numbers_old, new - numbers_new
    shared = len(words_old & words_new) / max(1, min(len(words_old), len(words_new)))
    return bool(numbers_old and numbers_new and numbers_old != numbers_new and shared >= 1 / 2)


_MORE = (1.0, 1.15, 1.35, 1.7, 2.4)
"""Budgets that a session is asked under, as shares of the one that a note has to fit: a form that
takes less room for a quote than the session reckons with has room for more of them."""


def lay_out(
    layout: NoteLayout, session: SessionGraphStrategy, question: str, budget: int
) -> Context:
    """The context of a question that one layout makes of what a session recalls."""
    fetch, language = session.fetcher(), session.language
    shown = [session.ask(question, round(budget * share)).receipt for share in _MORE]
    sources = [NoteSource(r.quoted, fetch, language, question, r.started) for r in shown]
    found = find_largest(layout, sources, budget)
    if found is None:
        return Context((), ())
    text, source = found
    ids = [i for topic in source.topics for i in topic.quotes]
    originals = [fetch(parse_message_number(i)).source for i in ids]
    return Context((SystemMessage(text),) if text else (), tuple(filter(None, originals)))
