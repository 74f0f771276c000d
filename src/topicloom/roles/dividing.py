"""Dividing the topics of a split that outgrew their windows into sub-topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from topicloom.effects import Step
from topicloom.roles.sorting import sort_rounds
from topicloom.roles.split_work import SplitWork
from topicloom.roles.splitter import SPLITTER, SplitRequest
from topicloom.state.dividing import divide_rounds
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.splitting import Portion, cut_to_size
from topicloom.state.topics import Topic

_GLANCE = 24
"""Tokens of a message by which a splitter is asked about it when a topic is divided; its prompt
shows this much of every message at least."""


def divide_large(work: SplitWork) -> Step[list[str]]:
    """Divide every topic that is too large, until all fit; returns the divisions, in words.

    A round that is too large by itself is a topic of its own, and stays one.
    """
    draft, events = work.draft, list[str]()
    for topic in draft.find_large():
        rounds = group_rounds(draft.store.topic_messages(draft.session, topic))
        if len(rounds) > 1:
            parts = yield from _divide(work, topic, rounds)
            names = ", ".join(t.label for t in parts)
            events.append(f"divided {topic.label} into {names}")
    return events


def _divide(work: SplitWork, topic: Topic, rounds: Sequence[Round]) -> Step[list[Topic]]:
    """Divide one topic, and parts of it that are still too large; returns those that fit."""
    draft, by_model = work.draft, not work.roles.by_index(SPLITTER)
    limit = draft.own_room(topic)
    queue = deque([(topic, tuple(rounds))])
    done: dict[str, tuple[Round, ...]] = {}
    while queue:
        large, held = queue.popleft()
        fits = large is not topic and sum(map(draft.tokens, held)) <= limit
        if len(held) == 1 or fits:
            draft.put(large, held)
            done[large.id] = held
            continue
        proposed = yield from _propose_parts(work, large, held)
        taken = {t.name for t in draft.topics.values()}
        parts = divide_rounds(
            large.name, held, proposed, draft.tokens, limit, taken, by_model=by_model
        )
        draft.divide(large)
        for part in parts:
            child = draft.create(part.name, part.brief, parent=large.id)
            queue.append((child, part.rounds))
    draft.hand_down(topic, done)
    return [draft.touched[i] for i in done]


def _propose_parts(work: SplitWork, topic: Topic, rounds: Sequence[Round]) -> Step[list[Portion]]:
    """The parts that the splitter proposes; it is shown those that it has named before."""
    continues, session = work.adsorber.continuity(rounds), work.draft.session
    portions: list[Portion] = []

    def glance(round_: Round) -> int:
        return min(_GLANCE * len(round_.messages), work.draft.tokens(round_))

    for part in cut_to_size(rounds, glance, work.rooms.splitter[1]):
        request = SplitRequest(
            session=session.id,
            rounds=rounds[part],
            continues=continues[part],
            topics=(),
            affinities=None,
            active=frozenset(),
            previous=None,
            language=session.language,
            dividing=topic,
        )
        portions = yield from sort_rounds(work, request, portions)
    return portions
