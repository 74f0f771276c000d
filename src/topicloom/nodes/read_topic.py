"""read_topic: one reader, one topic window."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.nodes.step import Update, current_session, current_turn, dumped, node, open_workspace
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.base import ReadRequest, Roles
from topicloom.roles.calls import Step, ask
from topicloom.state.channels import ReadTask
from topicloom.state.recall import Reading


def read_topic(*, workspaces: Workspaces, roles: Roles) -> Runnable[ReadTask, Update]:
    """The node that has one topic read; the embedded reader stands in for one that fails."""

    def step(task: ReadTask) -> Step[Update]:
        session, turn = current_session(task), current_turn(task)
        workspace = open_workspace(workspaces, session)
        topic = workspace.store.roster(session)[task["topic"]]
        hits = workspace.index.search(turn.query)
        request = ReadRequest(
            session=session.id,
            topic=topic,
            records=workspace.store.topic_records(topic),
            tail=workspace.store.records(session, session.view),
            query=turn.query,
            language=session.language,
            weights=hits.weights,
            prior=hits.topics.get(topic.id, 0.0),
        )
        reading, call = yield from ask("reader", roles.reader, request, topic.id)
        calls = [call]
        if reading is None:
            reading, call = yield from ask("reader", roles.fallback.reader, request, topic.id)
            calls.append(call)
        if reading is None:
            reading = Reading(topic=topic.id, score=0.0, failed=True)
        return {
            "readings": [reading.model_dump(mode="json", exclude_defaults=True)],
            "calls": dumped(calls),
        }

    return node(step, "read_topic")
