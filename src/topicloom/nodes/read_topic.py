"""read_topic: one call of a reader, for whole topics or for what the index finds in the others."""

from __future__ import annotations

import math
from collections.abc import Sequence

from langchain_core.runnables import Runnable

from topicloom.effects import Step
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Node, Update, dump, open_current
from topicloom.prompts.wording import get_wording
from topicloom.roles.calls import ask_first
from topicloom.roles.reader import READER, ReadRequest, TopicWindow
from topicloom.search.message_search import Hits
from topicloom.search.time_expressions import Days
from topicloom.state.activation import plan_calls
from topicloom.state.channels import ReadTask
from topicloom.state.recall import Reading
from topicloom.state.receipt import Call
from topicloom.state.session import Lookup, Session, Turn
from topicloom.state.topics import TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.storage.topic_windows import pick_fitting, read_topic_window

_LATEST = 6
"""Messages of the conversation that are shown beside what the index found: no cache has them."""


def plan_reading(
    deps: Deps, table: TopicTable, session: Session, turn: Turn, topics: Sequence[str], hits: Hits
) -> Turn:
    """The turn with the calls of readers that come next.

    Args:
        deps: Has the readers.
        table: The topics.
        session: Its active topics are read already, in this call or before.
        turn: The turn so far.
        topics: Those to read whole now.
        hits: What the index found; where models read, they read it in all other topics too.
    """
    known = {*topics, *session.active}
    tokens = {t: table[t].tokens for t in topics}
    others = hits.find_in_other_topics(known, deps.settings.activation.base)
    return turn.model_copy(
        update={
            "unread": plan_calls(topics, tokens, deps.rooms.call),
            "reads_others": bool(others) and not deps.roles.by_index(READER),
        }
    )


def read_topic(deps: Deps) -> Runnable[ReadTask, Update]:
    """The node that has topics read; the embedded reader stands in for one that fails."""

    def step(task: ReadTask) -> Step[Update]:
        session, workspace = open_current(deps.workspaces, task)
        store, words = workspace.store, get_wording(session.language)
        lookup = Lookup.model_validate(task["lookup"])
        hits = workspace.look_up(session, lookup)
        tail = store.tail(session, min(session.tail, session.count))
        if task["others"]:
            windows = _show_found(deps, store, session, hits, task["topics"])
            tail = tail[-_LATEST:]
        else:
            windows = _show_whole(deps, store, session, hits, task["topics"])
        if not windows:  # a search that came between found nothing there
            return dump(calls=[], readings=[])
        dated = words.days.format(days=Days.of(lookup.days)) if lookup.days else ""
        request = ReadRequest(
            session=session.id,
            windows=windows,
            tail=tail,
            query=lookup.query,
            language=session.language,
            weights=hits.weights,
            sought=f"{lookup.query} {dated}".strip()
            if dated or lookup.query != tail[-1].text
            else "",
        )
        calls, waits = list[Call](), deps.waits.get(session.id)
        about = windows[0].topic.id if len(windows) == 1 else None
        readers = deps.roles.in_turn(READER)
        readings = yield from ask_first("reader", readers, request, calls, about, waits=waits)
        if readings is None:
            readings = tuple(Reading(topic=w.topic.id, score=0.0, failed=True) for w in windows)
        return dump(calls=calls, readings=_restrict_readings(readings, request, task["search"]))

    return Node(step, "read_topic")


def _show_whole(
    deps: Deps, store: SessionStore, session: Session, hits: Hits, topics: Sequence[str]
) -> list[TopicWindow]:
    table, measure = store.topic_table(session), deps.rooms.reader.measure
    windows = []
    for topic in map(table.__getitem__, topics):
        messages = read_topic_window(store, session, topic, measure, deps.rooms.topic)
        windows.append(TopicWindow(topic, messages, hits.topics.get(topic.id, 0.0)))
    return [w for w in windows if w.messages]


def _show_found(
    deps: Deps, store: SessionStore, session: Session, hits: Hits, topics: Sequence[str]
) -> list[TopicWindow]:
    """All topics but these with what the index found in them."""
    window, table = deps.rooms.reader, store.topic_table(session)
    room = min(deps.window.recall, window.topic_room() // 2)
    found = hits.find_in_other_topics(topics, deps.settings.activation.base)
    messages = pick_fitting(store, session, found, window.counter.text, room)
    owners = dict.fromkeys(hits.owners[m.id] for m in messages)
    return [
        TopicWindow(
            table[topic],
            [m for m in messages if hits.owners[m.id] == topic],
            hits.topics.get(topic, 0.0),
            whole=False,
        )
        for topic in owners
    ]


def _restrict_readings(
    readings: Sequence[Reading], request: ReadRequest, search: int
) -> list[Reading]:
    """Those of the topics that were read, with scores from 0 to 1 and only with ids in them."""
    known = {w.topic.id: {m.id for m in w.messages} for w in request.windows}
    return [
        reading.model_copy(
            update={
                "search": search,
                "score": min(max(reading.score, 0.0), 1.0) if math.isfinite(reading.score) else 0.0,
                "quotes": tuple(q for q in reading.quotes if q.id in known[reading.topic]),
            }
        )
        for reading in readings
        if reading.topic in known
    ]
