"""read_topic: one reader, one topic window."""

from __future__ import annotations

import math

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.index.time_expressions import Days
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, current_session, dumped, node, open_workspace
from topicloom.prompts.wording import get_wording
from topicloom.roles.calls import ask_first
from topicloom.roles.reader import READER, ReadRequest
from topicloom.state.channels import ReadTask
from topicloom.state.recall import Reading
from topicloom.state.receipt import Call
from topicloom.storage.references import read_topic_window

_STEP = 256
"""Messages by which the beginning of the conversation moves that readers are shown: in longer
steps than the main window's, so that a split does not change the prompt of every topic."""


def read_topic(deps: Deps) -> Runnable[ReadTask, Update]:
    """The node that has one topic read; the embedded reader stands in for one that fails."""

    def step(task: ReadTask) -> Step[Update]:
        session = current_session(task)
        workspace = open_workspace(deps.workspaces, session)
        table = workspace.store.topic_table(session)
        topic, query, days = table[task["topic"]], task["query"], Days.of(task["days"])
        # Up to date already, but for a turn that another process began.
        hits = workspace.indexed(table).search(query, days)
        tail = workspace.store.tail(session, session.view // _STEP * _STEP)
        dated = get_wording(session.language).days.format(days=days) if days else ""
        request = ReadRequest(
            session=session.id,
            topic=topic,
            messages=read_topic_window(
                workspace.store, session, topic, deps.reader_window.measure, deps.topic_tokens
            ),
            tail=tail,
            query=query,
            language=session.language,
            weights=hits.weights,
            prior=hits.topics.get(topic.id, 0.0),
            sought=f"{query} {dated}".strip() if dated or query != tail[-1].text else "",
        )
        calls: list[Call] = []
        readers = deps.roles.in_turn(READER)
        reading = yield from ask_first("reader", readers, request, calls, topic.id)
        if reading is None:
            reading = Reading(topic=topic.id, score=0.0, failed=True)
        reading = _restrict_reading(reading, request, task.get("search", 0))
        return {"readings": dumped([reading]), "calls": dumped(calls)}

    return node(step, "read_topic")


def _restrict_reading(reading: Reading, request: ReadRequest, search: int) -> Reading:
    """The reading of this topic, with a score from 0 to 1 and only with ids that are in it."""
    known = {r.id for r in request.messages}
    score = reading.score if math.isfinite(reading.score) else 0.0
    return reading.model_copy(
        update={
            "topic": request.topic.id,
            "search": search,
            "score": min(max(score, 0.0), 1.0),
            "quotes": tuple(q for q in reading.quotes if q.id in known),
        }
    )
