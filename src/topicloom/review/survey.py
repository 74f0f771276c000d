"""survey: the topics to assess, and their figures; assess: a reviewer's assessment of one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.errors import StorageError
from topicloom.nodes.runs import name_thread
from topicloom.nodes.step import Update, dumped, node
from topicloom.review.channels import AssessTask, ReviewState
from topicloom.review.decisions import Assessment, TopicStats, is_due
from topicloom.review.reviewer import REVIEWER, ReviewRequest
from topicloom.review.session_client import ReviewDeps
from topicloom.roles.calls import ask_first
from topicloom.roles.registry import Roles
from topicloom.state.lifecycle import find_survivor
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Call, Receipt
from topicloom.state.session import Session
from topicloom.state.topics import TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.storage.writers import catch_up

_KEPT_AWAKE = {"pinned", "restored"}
"""Marks of topics that no review archives."""
_LOOK_BACK = 500
"""Newest receipts that are read: some weeks of them."""


def survey(deps: ReviewDeps) -> Runnable[ReviewState, Update]:
    """The node that finds which topics are due, and their figures."""

    def step(state: ReviewState) -> Step[Update]:
        session, _ = yield from deps.client.read(name_thread(state["thread"]))
        store = deps.open_store(session)
        session = catch_up(store, session)
        table = store.topic_table(session)
        looks = collect_stats(store, session, table)
        return {
            "now": state.get("now") or deps.shared.clock().isoformat(),
            "dry_run": state.get("dry_run", False),
            "session": session.model_dump(mode="json", exclude_defaults=True),
            "looks": [look.model_dump(mode="json", exclude_defaults=True) for look in looks],
            "due": [t.id for t in table if is_due(t) and not t.loose],
            "assessed": None,
            "troubles": None,
            "calls": None,
            "changes": [],
            "told": [],
            "changed": [],
            "refused": {},
        }

    return node(step, "survey")


def collect_stats(store: SessionStore, session: Session, table: TopicTable) -> list[TopicStats]:
    """The figures of each open topic that holds messages."""
    receipts = store.receipts(session, _LOOK_BACK)
    kept = {t.id: find_survivor(t, table.topics) for t in table}
    last_active = _find_last_active(store, session, receipts, kept)
    uses = Counter(kept.get(n.topic, n.topic) for r in receipts for n in r.quoted if n.quotes)
    ranges = store.ranges(session)
    for topic in (*table.open(), *table.loose(), *table.archived()):
        uses.update({ranges.topic_of(r[0]) or "" for r in ranges.references(topic.id)})
    return [
        TopicStats(
            topic=topic.id,
            awake=topic.id in session.active or not _KEPT_AWAKE.isdisjoint(topic.by_hand),
            spoken=tuple(t for t in (topic.last_at, last_active.get(topic.id)) if t),
            uses=uses[topic.id],
        )
        for topic in table.open()
        if topic.count
    ]


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


def assess(deps: ReviewDeps) -> Runnable[AssessTask, Update]:
    """The node that has one topic reviewed; if every reviewer fails, it is left out."""

    def step(task: AssessTask) -> Step[Update]:
        session = Session.model_validate(task["session"])
        store = deps.open_store(session)
        topic = store.topic_table(session)[task["topic"]]
        try:
            messages = store.topic_messages(session, topic)
        except StorageError as error:
            return {"troubles": [f"{topic.id} cannot be read: {error}"]}
        request = ReviewRequest(session.id, topic, messages, session.language, task["uses"])
        calls: list[Call] = []
        found = yield from ask_reviewer(deps.shared.roles, request, calls)
        rows = [{"topic": topic.id, **found.model_dump(mode="json")}] if found else []
        return {"assessed": rows, "calls": dumped(calls)}

    return node(step, "assess")


def ask_reviewer(
    roles: Roles, request: ReviewRequest, calls: list[Call]
) -> Step[Assessment | None]:
    """The assessment by the reviewer or its stand-in; the calls are added to `calls`."""
    reviewers = roles.in_turn(REVIEWER)
    found = yield from ask_first("reviewer", reviewers, request, calls, request.topic.id)
    if found is None:
        return None
    return found.model_copy(update={"importance": min(1.0, max(0.0, found.importance))})
