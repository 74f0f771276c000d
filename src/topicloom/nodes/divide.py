"""Dividing topics that outgrew their reader's window into sub-topics (spec 000, 4.5)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from topicloom.boundary.adsorber import Adsorber
from topicloom.effects import Step
from topicloom.nodes.split_draft import SplitDraft, sort_rounds
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SplitRequest
from topicloom.state.dividing import TopicPart, divide_rounds
from topicloom.state.references import distribute_references
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.splitting import Portion, cut_runs, merge_assignments
from topicloom.state.topics import Topic
from topicloom.storage.references import add_references, read_references

_GLANCE = 24
"""Tokens of a message by which a splitter is asked about it when a topic is divided; its prompt
shows this much of every message at least."""


def divide_large(
    draft: SplitDraft, roles: Roles, adsorber: Adsorber, chunk_tokens: int
) -> Step[list[str]]:
    """Divide every topic that the split made too large, until all fit.

    A round that is too large by itself is a topic of its own, and stays one.

    Args:
        draft: The split so far.
        roles: The splitter and its stand-in.
        adsorber: Its segments are the splitter's hint.
        chunk_tokens: How much one splitter call is given.

    Returns:
        What was divided into what, for the receipt.
    """
    events: list[str] = []
    large = [t for t in draft.touched.values() if t.tokens > draft.limit]
    for topic in large:
        rounds = group_rounds(draft.store.topic_records(topic))
        if len(rounds) > 1:
            parts = yield from _divide(draft, topic, rounds, roles, adsorber, chunk_tokens)
            names = ", ".join(f"{t.id} “{t.name}”" for t in parts)
            events.append(f"divided {topic.id} “{topic.name}” into {names}")
    return events


def _divide(
    draft: SplitDraft,
    topic: Topic,
    rounds: Sequence[Round],
    roles: Roles,
    adsorber: Adsorber,
    chunk_tokens: int,
) -> Step[list[Topic]]:
    """Divide one topic, and parts of it that are still too large; returns those that fit."""
    queue = deque([(topic, tuple(rounds))])
    done: dict[str, tuple[Round, ...]] = {}
    while queue:
        whole, held = queue.popleft()
        if len(held) == 1 or (whole is not topic and sum(map(draft.tokens, held)) <= draft.limit):
            draft.put(whole, held)
            done[whole.id] = held
            continue
        said = yield from _asked(draft, whole, held, roles, adsorber, chunk_tokens)
        taken = {t.name for t in draft.topics.values()}
        parts = divide_rounds(whole.name, held, said, draft.tokens, draft.limit, taken)
        draft.divide(whole)
        for part in parts:
            child = draft.open(part.name, part.brief, parent=whole.id)
            queue.append((child.model_copy(update={"related": topic.related}), part.rounds))
    _hand_down(draft, topic, done)
    return [draft.touched[i] for i in done]


def _asked(
    draft: SplitDraft,
    topic: Topic,
    rounds: Sequence[Round],
    roles: Roles,
    adsorber: Adsorber,
    chunk_tokens: int,
) -> Step[list[TopicPart]]:
    """How the splitter would divide a topic; it is shown the parts that it has named before."""
    labels = adsorber.segments(rounds)
    named: list[Topic] = []
    portions: list[Portion] = []
    glances = [sum(min(_GLANCE, draft.size(r)) for r in b.records) for b in rounds]
    for start, stop in cut_runs(glances, chunk_tokens):
        request = SplitRequest(
            session=draft.session.id,
            rounds=rounds[start:stop],
            segments=labels[start:stop],
            topics=named,
            affinity={},
            active=frozenset(t.id for t in named),
            previous=None,
            language=draft.session.language,
            dividing=topic,
        )
        names = {t.id: t.name for t in named}
        for portion in (yield from sort_rounds(request, roles, draft.calls)):
            name = names[portion.topic] if portion.topic else portion.name
            portions.append(Portion(None, name, portion.brief, portion.rounds))
        portions = merge_assignments(portions)
        named = [_named(place, p) for place, p in enumerate(portions, start=1)]
    return [TopicPart(p.name, p.brief, p.rounds) for p in portions]


def _named(place: int, portion: Portion) -> Topic:
    """A part as a later request shows it; it has no id of the session's yet."""
    return Topic(id=f"t{place}", name=portion.name, brief=portion.brief)


def _hand_down(draft: SplitDraft, topic: Topic, parts: dict[str, tuple[Round, ...]]) -> None:
    """Give a divided topic's references and its rounds of this split to its parts."""
    for part, found in distribute_references(read_references(draft.store, topic), parts).items():
        draft.touched[part] = add_references(draft.store, draft.touched[part], found)
    tail = {b.first for b in draft.moved.pop(topic.id, ())}
    for part, rounds in parts.items():
        fresh = [b for b in rounds if b.first in tail]
        if fresh:
            draft.moved[part] = fresh
