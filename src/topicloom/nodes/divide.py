"""Dividing topics that outgrew their reader's window into sub-topics."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from topicloom.boundary.adsorber import Adsorber
from topicloom.effects import Step
from topicloom.nodes.split_draft import SplitDraft, sort_rounds
from topicloom.roles.registry import Roles
from topicloom.roles.splitter import SplitRequest
from topicloom.state.dividing import TopicPart, divide_rounds
from topicloom.state.references import distribute_references, own_room
from topicloom.state.rounds import Round, group_rounds
from topicloom.state.splitting import Portion, cut_runs, merge_assignments
from topicloom.state.topics import Topic
from topicloom.storage.references import add_references, read_references

_GLANCE = 24
"""Tokens of a message by which a splitter is asked about it when a topic is divided; its prompt
shows this much of every message at least."""


@dataclass(frozen=True, slots=True)
class TopicDivider:
    """Divides the topics of a split that became too large."""

    draft: SplitDraft
    roles: Roles
    """The splitter and its stand-in."""
    adsorber: Adsorber
    """Its segments are the splitter's hint."""
    chunk_tokens: int
    """Tokens that one call of the splitter is given."""

    def divide_large(self) -> Step[list[str]]:
        """Divide every topic that is too large, until all fit; returns the divisions.

        A round that is too large by itself is a topic of its own, and stays one.
        """
        events: list[str] = []
        draft = self.draft
        for topic in draft.find_large():
            rounds = group_rounds(draft.store.topic_messages(topic))
            if len(rounds) > 1:
                parts = yield from self._divide(topic, rounds)
                names = ", ".join(f"{t.id} “{t.name}”" for t in parts)
                events.append(f"divided {topic.id} “{topic.name}” into {names}")
        return events

    def _divide(self, topic: Topic, rounds: Sequence[Round]) -> Step[list[Topic]]:
        """Divide one topic, and parts of it that are still too large; returns those that fit."""
        draft, limit = self.draft, own_room(self.draft.limit, topic.borrowed)
        queue = deque([(topic, tuple(rounds))])
        done: dict[str, tuple[Round, ...]] = {}
        while queue:
            whole, held = queue.popleft()
            fits = whole is not topic and sum(map(draft.tokens, held)) <= limit
            if len(held) == 1 or fits:
                draft.put(whole, held)
                done[whole.id] = held
                continue
            proposed = yield from self._propose_parts(whole, held)
            taken = {t.name for t in draft.topics.values()}
            parts = divide_rounds(whole.name, held, proposed, draft.tokens, limit, taken)
            draft.divide(whole)
            for part in parts:
                child = draft.open(part.name, part.brief, parent=whole.id)
                queue.append((child, part.rounds))
        _hand_down(draft, topic, done)
        return [draft.touched[i] for i in done]

    def _propose_parts(self, topic: Topic, rounds: Sequence[Round]) -> Step[list[TopicPart]]:
        """The parts that the splitter proposes; it is shown those that it has named before."""
        draft = self.draft
        labels = self.adsorber.segments(rounds)
        named: list[Topic] = []
        portions: list[Portion] = []
        glances = [min(_GLANCE * len(b.messages), draft.tokens(b)) for b in rounds]
        for start, stop in cut_runs(glances, self.chunk_tokens):
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
            for portion in (yield from sort_rounds(request, self.roles, draft.calls)):
                name = names[portion.topic] if portion.topic else portion.name
                portions.append(Portion(None, name, portion.brief, portion.rounds))
            portions = merge_assignments(portions)
            # As a later request shows a part; it has no id of the session's yet.
            named = [
                Topic(id=f"t{n}", name=p.name, brief=p.brief) for n, p in enumerate(portions, 1)
            ]
        return [TopicPart(p.name, p.brief, p.rounds) for p in portions]


def _hand_down(draft: SplitDraft, topic: Topic, parts: dict[str, tuple[Round, ...]]) -> None:
    """Give a divided topic's references and its rounds of this split to its parts."""
    for part, found in distribute_references(read_references(draft.store, topic), parts).items():
        draft.touched[part] = add_references(draft.store, draft.touched[part], found)
    tail = {b.first for b in draft.moved.pop(topic.id, ())}
    for part, rounds in parts.items():
        fresh = [b for b in rounds if b.first in tail]
        if fresh:
            draft.moved[part] = fresh
