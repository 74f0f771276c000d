"""read_topic: one reader, one topic window; or the messages found in topics that none reads."""

from __future__ import annotations

import math
from collections.abc import Mapping

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, dump, node, open_session
from topicloom.prompts.wording import get_wording
from topicloom.roles.calls import ask_first
from topicloom.roles.reader import READER, ReadRequest
from topicloom.search.time_expressions import Days
from topicloom.state.channels import ReadTask
from topicloom.state.recall import OTHER_TOPICS, Reading
from topicloom.state.receipt import Call
from topicloom.state.session import Lookup
from topicloom.state.topics import Topic
from topicloom.storage.references import pick_fitting, read_topic_window

_FOUND, _LATEST = 2_000, 6
"""Tokens that are read of several topics, without ids and days, and messages of the conversation
shown with them: no cache has such a prompt. With 4,000, ideal readers find .0001 more in meetings
(`docs/research/benchmarks.md`)."""
_STEP = 256
"""Messages by which the beginning of the conversation moves that readers are shown: in longer
steps than the main window's, so that a split does not change the prompt of every topic."""


def read_topic(deps: Deps) -> Runnable[ReadTask, Update]:
    """The node that has one topic read; the embedded reader stands in for one that fails.

    The reader of messages in other topics has no stand-in: what the index found counts anyway.
    """

    def step(task: ReadTask) -> Step[Update]:
        session, workspace = open_session(deps.workspaces, task)
        store, words = workspace.store, get_wording(session.language)
        table = store.topic_table(session)
        lookup = Lookup.model_validate(task["lookup"])
        query, window = lookup.query, deps.reader_window
        hits = workspace.look_up(session, lookup)
        tail = store.tail(session, session.view // _STEP * _STEP)
        readers, owners = deps.roles.in_turn(READER), dict[str, str]()
        if task["topic"] == OTHER_TOPICS:
            readers, owners = readers[:1], dict(hits.owners)
            topic = Topic(id=OTHER_TOPICS, name=words.other_topics)
            found = hits.find_in_other_topics(task["read"], deps.settings.activation.base)
            room = min(deps.window.recall, window.topic_room() // 2, _FOUND)
            messages = pick_fitting(store, session, found, window.counter.text, room)
            tail = tail[-_LATEST:]
        else:
            topic = table[task["topic"]]
            messages = read_topic_window(store, session, topic, window.measure, deps.topic_tokens)
        if not messages:  # a search that came between found nothing there
            return dump(calls=[], readings=[])
        dated = words.days.format(days=Days.of(lookup.days)) if lookup.days else ""
        request = ReadRequest(
            session=session.id,
            topic=topic,
            messages=messages,
            tail=tail,
            query=query,
            language=session.language,
            weights=hits.weights,
            prior=hits.topics.get(topic.id, 0.0),
            sought=f"{query} {dated}".strip() if dated or query != tail[-1].text else "",
        )
        calls, waits = list[Call](), deps.waits.of(session.id)
        reading = yield from ask_first(
            "reader", readers, request, calls, topic.id or None, waits=waits
        )
        if reading is None:
            reading = Reading(topic=topic.id, score=0.0, failed=True)
        reading = _restrict_reading(reading, request, task["search"], owners)
        return dump(calls=calls, readings=[reading])

    return node(step, "read_topic")


def _restrict_reading(
    reading: Reading, request: ReadRequest, search: int, owners: Mapping[str, str]
) -> Reading:
    """The reading of this topic, with a score from 0 to 1 and only with ids that are in it.

    Where messages of several topics are read, `owners` has the topic of each, by its short id.
    """
    known = {r.id for r in request.messages}
    score = reading.score if math.isfinite(reading.score) else 0.0
    quotes = (q for q in reading.quotes if q.id in known)
    return reading.model_copy(
        update={
            "topic": request.topic.id,
            "search": search,
            "since": min(m.seq for m in request.messages),
            "score": min(max(score, 0.0), 1.0),
            "quotes": tuple(q.model_copy(update={"topic": owners.get(q.id, "")}) for q in quotes),
            "summary": "" if owners else reading.summary,
        }
    )
