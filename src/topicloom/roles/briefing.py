"""Briefs of the topics that a split touched: written in parallel, late ones in a later turn."""

from __future__ import annotations

from collections.abc import MutableMapping
from concurrent.futures import Future
from functools import partial

from topicloom.effects import Step
from topicloom.roles.base import Answer
from topicloom.roles.brief import BRIEF, Brief, make_brief_request
from topicloom.roles.calls import ask_all, ask_first, read_late
from topicloom.roles.split_work import SplitWork
from topicloom.roles.splitter import SPLITTER
from topicloom.state.topics import Topic

LateBriefs = MutableMapping[str, tuple[int, Topic, Brief]]
"""Briefs that came late, by topic, each with the digest of the purges that it comes after and the
topic as it was."""


def write_briefs(work: SplitWork, left: LateBriefs) -> Step[None]:
    """Write the briefs of what was touched; those that are late are put into `left` as they come.

    Where a model sorts, the stand-in leaves the names and briefs that it gave as they are.
    """
    draft, roles = work.draft, work.roles
    topics = [t for t in draft.touched.values() if not t.loose]
    if not topics:
        return
    late = dict[str, Future[Answer[Brief]]]()
    messages = {t.id: draft.store.topic_messages(draft.session, t) for t in topics}
    known = draft.topics
    requests = [make_brief_request(draft.session, t, messages, known) for t in topics]
    ids = [t.id for t in topics]
    answers = yield from ask_all(
        "brief", roles[BRIEF], requests, ids, waits=work.waits, late=late.__setitem__
    )
    sorted_by_model = not roles.by_index(SPLITTER)
    for topic, request, (brief, call) in zip(topics, requests, answers, strict=True):
        work.calls.append(call)
        name = brief.name if brief else ""
        if brief is None and not (sorted_by_model and topic.brief):
            stand_in = roles.in_turn(BRIEF)[1:]
            brief = yield from ask_first("brief", stand_in, request, work.calls, topic.id)
            name = brief.name if brief and not sorted_by_model else ""
        if brief is not None:
            draft.describe(topic, name, brief.text)
    for topic_id, made in late.items():
        topic, purges = draft.touched[topic_id], draft.store.log.purges
        made.add_done_callback(partial(_leave_brief, left, topic, purges))


def _leave_brief(left: LateBriefs, topic: Topic, purges: int, made: Future[Answer[Brief]]) -> None:
    """Leave a brief that came late to a turn to come, which takes it over if it still fits."""
    brief = read_late("brief", made)
    if brief:
        left[topic.id] = (purges, topic, brief)
