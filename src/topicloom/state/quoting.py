"""Who decides what a turn quotes: the readers, or the local index where no reader did.

With `readers="decide"` a note has, in this order and as far as it fits:

1. originals that a note quotes in part, and whose ids a search of the main model names,
2. what readers named: the most relevant topic first, its ids in the order of the reader,
3. at most three originals in a turn that the index is all but certain of, though no reader named
   them,
4. summaries of the topics that are quoted, for which a part of the budget was kept free,
5. of what readers named and did not fit, the sentences that say most,
6. what the index found in topics whose reader failed, or in all topics if no reader answered, and
   messages that are larger than the budget, of which a reader may have seen a part alone.

With `readers="advise"` the index first fills half of the room, as if there were no model. What
readers named comes second, and what is left goes to the index.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Literal, NamedTuple

from topicloom.state.note_draft import PARTS, NoteDraft, PromptCosts, RankedQuotes
from topicloom.state.recall import Note, Quote, Reading, TopicNote, parse_message_number
from topicloom.state.session import ReadingEffect, Search
from topicloom.state.topics import Topic

MOST_CERTAIN = 3
"""Originals that the index is all but certain of and a turn quotes besides, at most."""
ReadersSay = Literal["decide", "advise"]
"""The weight of what readers say."""


class Recall(NamedTuple):
    """The note of a turn, and what models changed in it."""

    note: Note
    effect: ReadingEffect | None
    """None if no model read for it."""


class Readings(NamedTuple):
    """What was read for a note, and what the index found for it."""

    answers: Sequence[Reading]
    """Of the readers that were asked since the last note, in any order, and of `read_named`. A
    stand-in for a model that failed has the source `index`."""
    by_index: Sequence[Reading]
    """What the index found in each topic."""
    answered: bool = False
    """True if a model has read anything in this turn."""


def select_quotes(
    read: Readings,
    names: Mapping[str, str],
    costs: PromptCosts,
    budget: int,
    seen: Collection[str],
    in_view: Collection[str] = (),
    *,
    readers: ReadersSay = "decide",
    most_certain: int = MOST_CERTAIN,
) -> tuple[tuple[TopicNote, ...], list[str]]:
    """Choose quotes and summaries for the prompt, by the rule of this module.

    An original that does not fit what is left of the budget is passed over for the next that does.
    What was quoted already is not quoted again but counts: a turn that goes on about the same
    things adds little. What is in view counts for nothing. The summaries of the best topics that
    are quoted have a part of the note.

    The budget is for all that this turn recalls, also for what is seen already.

    Returns:
        The topics with something to say, by score, best first (`render_note` lists their quotes by
        number); and the short ids of what would be quoted if no model had read.
    """
    ranked = sorted(read.answers, key=lambda r: (r.source != "model", -r.score, r.topic))
    found = sorted(_list_quotes(read.by_index), key=lambda pair: -pair[1].weight)
    alone, draft = (NoteDraft(costs, budget, seen, in_view) for _ in range(2))
    for begun in (alone, draft):
        begun.add_quotes(_list_quotes(r for r in ranked if r.source == "asked"), in_part=True)
    _add_found(alone, found)
    if not read.answered:
        draft = alone
    elif readers == "advise":
        _add_found(draft, found, leave=budget // 2)
        _add_read(draft, ranked, [], found)
    else:
        unread = {r.topic for r in ranked if r.source == "index" or r.failed}
        rest = [(t, q) for t, q in found if t in unread or costs.quote(q.id) > budget]
        _add_read(draft, ranked, _select_certain(found, ranked)[:most_certain], rest)
    scores: dict[str, float] = {}
    for reading in (*ranked, *read.by_index):
        scores.setdefault(reading.topic, reading.score)
    quoted = sorted(filter(draft.mentions, scores), key=lambda t: (-scores[t], t))
    topics = tuple(draft.build_topic_note(t, names.get(t, t), scores[t]) for t in quoted)
    return topics, alone.quoted


def _list_quotes(readings: Iterable[Reading]) -> RankedQuotes:
    return [(reading.topic, quote) for reading in readings for quote in reading.quotes]


def _select_certain(found: RankedQuotes, ranked: Sequence[Reading]) -> RankedQuotes:
    """What the index is all but certain of, without what models named."""
    ids = {q.id for r in ranked if r.source == "model" and not r.failed for q in r.quotes}
    return [pair for pair in found if pair[1].weight >= _CERTAIN and pair[1].id not in ids]


def _add_read(
    draft: NoteDraft, ranked: Sequence[Reading], certain: RankedQuotes, found: RankedQuotes
) -> None:
    """Enter what models named, what is certain, summaries, and last what was found."""
    chosen = [r for r in ranked if r.source == "model" and not r.failed]
    named = _list_quotes(chosen)
    draft.keep_room([r for r in chosen if r.summary and r.quotes])
    draft.add_quotes(named)
    draft.add_quotes(certain)
    draft.add_summaries(chosen)
    draft.add_quotes(named, in_part=True)
    _add_found(draft, found)


def _add_found(draft: NoteDraft, found: RankedQuotes, leave: int = 0) -> None:
    """Enter what the index found: whole where it fits, else in part."""
    draft.add_quotes(found, leave=leave)
    draft.add_quotes(found, leave=leave, in_part=True)


def compose_note(
    read: Readings,
    names: Mapping[str, str],
    costs: PromptCosts,
    budget: int,
    *,
    after: int,
    notes: Sequence[Note],
    in_view: Set[str],
    search: Search | None,
    found: Sequence[Topic] = (),
    media: Mapping[str, int] = {},
    readers: ReadersSay = "decide",
) -> Recall:
    """The note of a turn, without what the prompt shows already.

    Args:
        read: What was read and found since the last note.
        names: Topic names by id.
        costs: Token costs.
        budget: Tokens for what it recalls.
        after: Number of the message that calls for it.
        notes: Those that the prompt shows.
        in_view: Short ids of the messages that it shows.
        search: The turn's last one, if it searched.
        found: The topics to list, best first.
        media: Messages whose media are asked for and not in view, with the price of these.
        readers: How far models are followed.
    """
    listed = _list_topics(found, costs, budget // PARTS)
    budget -= sum(map(costs.text, listed.values()))
    again = _choose_media(media, notes, budget)
    budget = max(0, budget - sum(media[i] for i in again))
    topics, alone = select_quotes(
        read._replace(answers=_drop_told(read.answers, notes, after)),
        names,
        costs,
        budget,
        _list_quoted(read.answers, notes, costs),
        in_view,
        readers=readers,
        most_certain=0 if any(note.after == after for note in notes) else MOST_CERTAIN,
    )
    note = Note(
        after=after,
        topics=topics,
        # A search that adds nothing has to say so, or the model would ask the same once more.
        searched=search.query if search and not (topics or again) else "",
        scope=search.scope if search else None,
        media=again,
        listed=listed,
        candidates=tuple(names[t] for t in search.candidates if t in names) if search else (),
    )
    return Recall(note, compare_quotes(topics, alone) if read.answered else None)


def _choose_media(media: Mapping[str, int], notes: Sequence[Note], budget: int) -> tuple[str, ...]:
    """The messages whose media are shown again: those that fit, and that no note shows.

    The first of them comes in any case: a window may be so small that one is past the budget.
    """
    chosen: list[str] = []
    for message_id, price in media.items():
        fits = price <= budget - sum(media[i] for i in chosen)
        if (fits or not chosen) and all(message_id not in note.media for note in notes):
            chosen.append(message_id)
    return tuple(chosen)


def _list_quoted(
    readings: Sequence[Reading], notes: Sequence[Note], costs: PromptCosts
) -> set[str]:
    """Short ids of what notes quote, but for what is asked for by its id.

    An original that is quoted in part counts if the part has what is asked now.
    """
    quoted = set[str]()
    for topic in (topic for note in notes for topic in note.topics):
        quoted.update(i for i in topic.quotes if i not in topic.partial)
        for message_id, stretches in topic.excerpts.items():
            if any(begin <= costs.passage(message_id) < end for begin, end in stretches):
                quoted.add(message_id)
    return quoted - {q.id for r in readings if r.source == "asked" for q in r.quotes}


def _drop_told(readings: Sequence[Reading], notes: Sequence[Note], after: int) -> list[Reading]:
    """Readings without summaries that stand in notes, or come again in the same turn."""
    shown = [(note.after, topic) for note in notes for topic in note.topics if topic.summary]
    # A summary that stands there may be cut, and then ends in an ellipsis.
    known = tuple(topic.summary.removesuffix(" ...") for _, topic in shown)
    told = {topic.topic for number, topic in shown if number == after}
    return [
        r.model_copy(update={"summary": ""})
        if r.topic in told or r.summary.startswith(known)
        else r
        for r in readings
    ]


def compare_quotes(topics: Sequence[TopicNote], alone: Sequence[str]) -> ReadingEffect:
    """What models changed: what is quoted, and what would be quoted `alone` by the index."""
    quoted = [i for topic in topics for i in topic.quotes]
    return ReadingEffect(
        added=tuple(i for i in quoted if i not in alone),
        kept_out=tuple(sorted(set(alone) - set(quoted), key=parse_message_number)),
        summaries=sum(bool(topic.summary) for topic in topics),
    )


def read_named(notes: Sequence[Note], search: Search | None) -> list[Reading]:
    """Readings of the originals that notes quote in part and that a search asks for by their ids.

    The line that says how much is left out has the id: with it the main model asks for the rest.
    """
    named = set(re.findall(r"(?<![A-Za-z0-9])m[0-9]+", search.query)) if search else set[str]()
    return [
        Reading(topic=t.topic, score=1, quotes=(Quote(id=i, weight=1),), source="asked")
        for t in (topic for note in notes for topic in note.topics)
        for i in t.partial
        if i in named
    ]


def _list_topics(found: Sequence[Topic], costs: PromptCosts, budget: int) -> dict[str, str]:
    """Name and days of the first topics, as many as fit, by id; with briefs if all fit so."""
    heads = [f"- {topic.name} ({topic.id}, {topic.days})" for topic in found]
    briefs = (" ".join((topic.brief or topic.summary).split()) for topic in found)
    lines = [
        f"{head}: {costs.shorten(brief, _LISTED_BRIEF)}"
        for head, brief in zip(heads, briefs, strict=True)
    ]
    if sum(map(costs.text, lines)) > budget:
        lines = heads
    listed: dict[str, str] = {}
    for topic, line in zip(found, lines, strict=True):
        budget -= costs.text(line)
        if budget < 0:
            break
        listed[topic.id] = line
    return listed


_CERTAIN = 0.9
"""Weight from which the index is all but certain of an original."""
_LISTED_BRIEF = 32
"""Tokens of a brief in that list: a line."""
