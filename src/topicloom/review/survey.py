"""The topics that a review assesses, their figures, and what a reviewer says of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.nodes.deps import Deps
from topicloom.review.decisions import Assessment, TopicStats, is_due
from topicloom.review.reviewer import REVIEWER, ReviewRequest
from topicloom.roles.calls import ask_all, ask_first
from topicloom.state.lifecycle import find_survivor
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Call, Receipt
from topicloom.state.session import Session
from topicloom.state.topics import TopicTable
from topicloom.storage.sessions import SessionStore

_KEPT_AWAKE = {"pinned", "restored"}
"""Marks of topics that no review archives."""
_LOOK_BACK = 500
"""Newest receipts that are read: some weeks of them."""
_AT_ONCE = 8
"""Topics that are read and assessed in parallel."""


@dataclass(frozen=True, slots=True)
class SurveyedSession:
    """A session as a review found it, and what came of its calls so far."""

    deps: Deps
    session: Session
    store: SessionStore
    stats: Mapping[str, TopicStats]
    """The figures of each open topic that holds messages, by id."""
    calls: list[Call] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    @property
    def table(self) -> TopicTable:
        return self.store.topic_table(self.session)

    @property
    def due(self) -> list[str]:
        """Ids of the topics that have to be assessed."""
        return [t.id for t in self.table if is_due(t) and not t.loose]

    def assess(self) -> Step[dict[str, Assessment]]:
        """Within a step: assessments of what is due; a topic that nobody could assess has none."""
        found, due = dict[str, Assessment](), self.due
        for begin in range(0, len(due), _AT_ONCE):
            requests = list(self._make_requests(due[begin : begin + _AT_ONCE]))
            answers = yield from self.ask_reviewers(requests)
            pairs = zip(requests, answers, strict=True)
            found |= {request.topic.id: answer for request, answer in pairs if answer}
        return found

    def _make_requests(self, topics: Sequence[str]) -> Iterator[ReviewRequest]:
        session, table = self.session, self.table
        for i in topics:
            try:
                messages = self.store.topic_messages(session, table[i])
            except StorageError as error:
                self.troubles.append(f"{i} cannot be read: {error}")
                continue
            uses = self.stats[i].uses
            yield ReviewRequest(session.id, table[i], messages, session.language, uses)

    def ask_reviewers(self, requests: Sequence[ReviewRequest]) -> Step[list[Assessment | None]]:
        """Within a step: assessments by the reviewer or its stand-in, in parallel."""
        reviewer, *stand_ins = self.deps.roles.in_turn(REVIEWER)
        topics = [request.topic.id for request in requests]
        found: list[Assessment | None] = []
        answers = yield from ask_all("reviewer", reviewer, requests, topics)
        for request, (answer, call) in zip(requests, answers, strict=True):
            self.calls.append(call)
            if answer is None:
                about = request.topic.id
                answer = yield from ask_first("reviewer", stand_ins, request, self.calls, about)
            sure = answer and min(1.0, max(0.0, answer.importance))
            found.append(answer and answer.model_copy(update={"importance": sure}))
        return found


def collect_stats(store: SessionStore, session: Session) -> dict[str, TopicStats]:
    """The figures of each open topic that holds messages, by id."""
    table = store.topic_table(session)
    receipts = store.receipts(session, _LOOK_BACK)
    kept = {t.id: find_survivor(t, table.topics) for t in table}
    last_active = _find_last_active(store, session, receipts, kept)
    uses = Counter(kept.get(n.topic, n.topic) for r in receipts for n in r.quoted if n.quotes)
    ranges = store.ranges(session)
    for topic in (*table.open(), *table.loose(), *table.archived()):
        uses.update({ranges.topic_of(r[0]) or "" for r in ranges.references(topic.id)})
    return {
        topic.id: TopicStats(
            topic=topic.id,
            awake=topic.id in session.active or not _KEPT_AWAKE.isdisjoint(topic.by_hand),
            spoken=tuple(t for t in (topic.last_at, last_active.get(topic.id)) if t),
            uses=uses[topic.id],
        )
        for topic in table.open()
        if topic.count
    }


def _find_last_active(
    store: SessionStore, session: Session, receipts: Sequence[Receipt], kept: Mapping[str, str]
) -> dict[str, str]:
    """By topic, the time of the newest message that it was active for.

    Times are those of messages, not those of turns: recordings have times of their own. A message
    that was removed since still has its time.
    """
    newest: dict[str, int] = {}
    for receipt in receipts:
        for topic in receipt.active:
            owner = kept.get(topic, topic)
            newest[owner] = max(newest.get(owner, 0), parse_message_number(receipt.user))
    fetch = store.fetcher(session)
    return {topic: fetch(number).time for topic, number in newest.items()}
