"""retrieve: activate the dormant topics that the message is about."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.index.time_expressions import asked_for
from topicloom.nodes.activate_topic import activate_topics
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, dump, node, open_turn
from topicloom.state.channels import SessionState
from topicloom.state.session import SearchRequest


def retrieve(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that activates topics by what the index finds in them.

    If the user says that something was forgotten, or asks for what was said before, it wants a
    search of all topics as well.
    """

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        table = workspace.store.topic_table(session)
        found = workspace.indexed(table).search(turn.query).topics
        relevance = {t.id: found[t.id] for t in table.open() if t.id in found}
        policy = deps.settings.activation
        session, turn = activate_topics(workspace.store, session, turn, relevance, policy)
        request = asked_for(turn.query, deps.clock())
        if request is None and turn.amnesia:
            request = SearchRequest(query=turn.query)
        if not session.topics:
            request = None  # there is nothing to search
        request = request and request.model_copy(update={"forgotten": True})
        # What a split has just taken out of view is read too, though it could not be activated.
        fresh = [topic for topic in reversed(turn.split) if topic not in session.active]
        update = {"unread": (*session.active, *fresh)[: policy.ceiling], "request": request}
        return dump(session, turn.model_copy(update=update))

    return node(step, "retrieve")
