"""Briefs of the topics that a split touched, written in parallel."""

from __future__ import annotations

from topicloom.effects import Step
from topicloom.roles.brief import BRIEF, make_brief_request
from topicloom.roles.calls import ask_all, ask_first
from topicloom.roles.split_work import SplitWork
from topicloom.roles.splitter import SPLITTER


def write_briefs(work: SplitWork) -> Step[None]:
    """Write the briefs of what was touched.

    Where a model sorts, the stand-in leaves the names and briefs that it gave as they are.
    """
    draft, roles = work.draft, work.roles
    topics = [t for t in draft.touched.values() if not t.loose]
    if not topics:
        return
    messages = {t.id: draft.store.topic_messages(draft.session, t) for t in topics}
    known = draft.topics
    requests = [make_brief_request(draft.session, t, messages, known) for t in topics]
    ids = [t.id for t in topics]
    answers = yield from ask_all("brief", roles[BRIEF], requests, ids, waits=work.waits)
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
