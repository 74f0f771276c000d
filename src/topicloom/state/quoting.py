"""The choice of what a turn quotes, within a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from topicloom.state.note_draft import NoteDraft, PromptCosts, RankedQuotes
from topicloom.state.recall import (
    OTHER_TOPICS,
    Note,
    Quote,
    Reading,
    TopicNote,
    parse_message_number,
)
from topicloom.state.session import ReadingEffect, Search
from topicloom.state.topics import Topic


class Recall(NamedTuple):
    """The note of a turn, and what models changed in it."""

    note: Note
    effect: ReadingEffect | None
    """None if no model read for it."""


def select_quotes(
    readings: Sequence[Reading],
    names: Mapping[str, str],
    costs: PromptCosts,
    budget: int,
    seen: Collection[str],
    in_view: Collection[str] = (),
) -> tuple[tuple[TopicNote, ...], list[str]]:
    """Choose quotes and summaries for the prompt.

    Quotes are chosen by weight across all topics, so that a strong original of a weaker topic goes
    before a weak one of the best topic. Those of models go first that the index found too, then
    some of the others that they name, then what the index found: so a model adds what no index
    sees, and no model can hide what the index is sure of. What a model names along with everything
    else in its topic comes last. An original that does not fit what is left of the budget is passed
    over for the next that does. What was quoted already is not quoted again but counts: a turn that
    goes on about the same things adds little. What is in view counts for nothing.

    What a model read and did not name is quoted only where the index is sure of it. What none named
    is quoted only if the index alone would have quoted it: the room of what a model kept out is not
    filled with worse. The summaries of the best topics that are quoted have a part of the note.

    Args:
        readings: Of all readers that ran, in any order.
        names: Topic names by id.
        costs: Token costs.
        budget: Tokens for what this turn recalls, what of it is seen already included.
        seen: Short ids already quoted; never quoted again.
        in_view: Short ids of messages that the prompt shows anyway; never quoted.

    Returns:
        The topics with something to say, by score, best first (`render_note` lists their quotes by
        number); and the short ids of what would be quoted if no model had read.
    """
    ranked = sorted(readings, key=lambda r: (r.source != "model", -r.score, r.topic))
    readers = [r for r in ranked if r.source == "model" and not r.failed]
    chosen = _select_chosen(readers, costs, budget)
    named = _rank_quotes(chosen)
    asked = _rank_quotes(r for r in ranked if r.source == "asked")
    found = _rank_quotes(r for r in ranked if r.source == "index")
    alone = draft = NoteDraft(costs, budget, seen, in_view)
    if readers:
        alone = NoteDraft(costs, budget, seen, in_view)
        alone.add_quotes(asked, in_part=True)
        _add_likely(alone, found)
        alone.add_quotes(found)
        found = _drop_rejected(found, [r for r in readers if r.selective], costs, budget)
        ids = {quote.id for reading in readers for quote in reading.quotes}
        found = [pair for pair in found if pair[1].id in alone.taken | ids]
    agreed = [pair for pair in named if pair[1].id in alone.taken]
    doubtful = [pair for pair in named if pair[1].id not in alone.taken]
    draft.add_quotes(asked, in_part=True)
    draft.keep_room([r for r in chosen if r.summary and r.quotes])
    draft.add_quotes(agreed)
    before = _believe(readers) * max(budget, 1)
    right, either = (before + _price(some, costs) for some in (agreed, named))
    draft.add_quotes(doubtful, limit=round(budget * right / either))
    _add_likely(draft, found, agreed)
    draft.add_summaries(chosen)
    everything = _rank_quotes(r for r in readers if r not in chosen)
    draft.add_quotes([*found, *doubtful, *everything])
    scores: dict[str, float] = {}
    for reading in ranked:
        for topic in (reading.topic, *(quote.topic for quote in reading.quotes)):
            scores.setdefault(topic, reading.score)
    quoted = sorted(filter(draft.mentions, scores), key=lambda t: (-scores[t], t))
    topics = tuple(draft.build_topic_note(t, names.get(t, t), scores[t]) for t in quoted)
    return topics, alone.quoted


def _rank_quotes(readings: Iterable[Reading]) -> RankedQuotes:
    quotes = [(q.topic or r.topic, q) for r in readings for q in r.quotes]
    return sorted(quotes, key=lambda pair: -pair[1].weight)


def _select_chosen(readers: Sequence[Reading], costs: PromptCosts, budget: int) -> list[Reading]:
    """The readers whose quotes are used.

    A reader that names nearly everything in its topic has not said what matters, and is ignored.
    Exception: all readers are used if such readers name little all in all while most others name
    nothing.
    """
    selective = [r for r in readers if r.selective]
    everything = _rank_quotes(r for r in readers if not r.selective)
    silent = sum(not r.quotes for r in selective)
    many = len(readers) - len(selective) > silent / _SILENT
    return selective if many or _price(everything, costs) > budget * _LITTLE else list(readers)


def _believe(readers: Sequence[Reading]) -> float:
    """Budgets' worth of right quotes with which readers begin.

    What models name and the index does not find has the share of the budget that right quotes have
    of all: these, and those that the index found too. Wrong readers name much that it does not
    find, in many topics. So readers are believed by the share of them that names nothing, which is
    a half before any is heard (Laplace's rule of succession).
    """
    return _BELIEVED * (sum(not r.quotes for r in readers) + 1) / (len(readers) + 2)


def _price(quotes: RankedQuotes, costs: PromptCosts) -> int:
    return sum(map(costs.quote, {quote.id for _, quote in quotes}))


def _select_likely(quotes: RankedQuotes, share: float) -> RankedQuotes:
    """Those whose weight is at least a share of the best one's."""
    return [pair for pair in quotes if pair[1].weight >= share * quotes[0][1].weight]


def _add_likely(
    draft: NoteDraft, found: RankedQuotes, named: Iterable[tuple[str, Quote]] = ()
) -> None:
    """Enter what the index found and is likely: what fits whole, then what was due, in part.

    What models `named` too is due before that.
    """
    draft.add_quotes(_select_likely(found, _FITS))
    draft.add_quotes([*named, *_select_likely(found, _DUE)], in_part=True)


def _drop_rejected(
    found: RankedQuotes, readers: Sequence[Reading], costs: PromptCosts, budget: int
) -> RankedQuotes:
    """What the index found, without what a reader left out and the index is not sure of.

    Of an original that no budget holds a reader may have seen a part alone.
    """
    if not found:
        return found
    named = {quote.id for reading in readers for quote in reading.quotes}
    read = {reading.topic: reading.since for reading in readers if reading.topic != OTHER_TOPICS}
    sure = _SURE * found[0][1].weight

    def stays(topic: str, quote: Quote) -> bool:
        is_read = topic in read and parse_message_number(quote.id) >= read[topic]
        if not is_read or quote.id in named or quote.weight >= sure:
            return True
        return costs.quote(quote.id) > budget

    return [pair for pair in found if stays(*pair)]


def compose_note(
    readings: Sequence[Reading],
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
) -> Recall:
    """The note of a turn, without what the prompt shows already.

    Args:
        readings: Of the readers that ran since the last note, in any order.
        names: Topic names by id.
        costs: Token costs.
        budget: Tokens for what it recalls.
        after: Number of the message that calls for it.
        notes: Those that the prompt shows.
        in_view: Short ids of the messages that it shows.
        search: The turn's last one, if it searched.
        found: The topics to list, best first.
        media: Messages whose media are asked for and not in view, with the price of these.
    """
    listed = _list_topics(found, costs, round(_LIST_SHARE * budget))
    budget -= sum(map(costs.text, listed.values()))
    again: list[str] = []
    for message_id, price in media.items():
        # The first of them comes in any case: a window may be so small that one is past the budget.
        if (price <= budget or not again) and all(message_id not in note.media for note in notes):
            again.append(message_id)
            budget = max(0, budget - price)
    shown = [topic for note in notes for topic in note.topics]
    quoted = {i for t in shown for i in t.quotes if i not in t.partial}
    for message_id, stretches in (pair for t in shown for pair in t.excerpts.items()):
        if any(begin <= costs.passage(message_id) < end for begin, end in stretches):
            quoted.add(message_id)
    quoted -= {q.id for r in read_named(notes, search) for q in r.quotes}
    known = {t.summary for t in shown}
    new = [r.model_copy(update={"summary": ""}) if r.summary in known else r for r in readings]
    topics, alone = select_quotes(new, names, costs, budget, quoted, in_view)
    read = any(r.source == "model" for r in readings)
    note = Note(
        after=after,
        topics=topics,
        # A search that adds nothing has to say so, or the model would ask the same once more.
        searched=search.query if search and not (topics or again) else "",
        scope=search.scope if search else None,
        media=tuple(again),
        listed=listed,
        candidates=tuple(names[t] for t in search.candidates if t in names) if search else (),
    )
    return Recall(note, compare_quotes(topics, alone) if read else None)


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


_DUE = 1 / 2
"""Share of the best weight from which an original is quoted in part where it does not fit whole.
Half of the best weight means that all better ones together just fill the budget."""
_FITS = 1 / 2.5
"""Share of the best weight from which an original is quoted where it fits whole."""
_BELIEVED = 4
"""Budgets' worth with which readers begin if nearly all name nothing. With more, ideal ones gain
little, and those that are wrong one time in five lose."""
_LITTLE = 1 / 2
"""Share of the budget that those may name together who name all of their topics."""
_SILENT = 5
"""Readers that name nothing for each of those."""
_SURE = 1 / 1.5
"""Share of the best weight from which the index is sure: what it holds for half of the budget."""
_LIST_SHARE = 1 / 4
"""Share of the budget for the list of the topics found; quotes have the rest."""
_LISTED_BRIEF = 32
"""Tokens of a brief in that list: a line."""
