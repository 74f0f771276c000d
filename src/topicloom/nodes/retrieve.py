"""retrieve: find out which topics are read for the message."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.nodes.deps import Deps
from topicloom.nodes.read_topic import plan_reading
from topicloom.nodes.step import Node, Update, dump, open_turn
from topicloom.roles.reader import READER
from topicloom.search.time_expressions import asked_for
from topicloom.state.activation import activate_candidates
from topicloom.state.channels import SessionState
from topicloom.state.session import Lookup, SearchRequest, Session, Turn
from topicloom.storage.topic_changes import activate_topics


def retrieve(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that says which topics are read: those that the index suggests, and active ones.

    A suggested topic becomes active by what its reader says. Without a model the index activates
    it. Where models read, they also read what the index finds in all other topics.

    If the user says that something was forgotten, or asks about earlier messages, it wants a
    search of all topics as well. For a message that needs nothing from earlier messages, such as
    "ok", nothing is activated and nothing is read.
    """

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        table = workspace.store.topic_table(session)
        own = Lookup(query=turn.query, before=turn.before, from_user=True)
        hits = workspace.look_up(session, own)
        request = _find_request(deps, session, turn) if session.topics else None
        turn = turn.model_copy(update={"request": request, "about": dict(hits.about)})
        if hits.idle:
            # What is active stays so, unread: the talk may go on about it.
            return dump(session, turn.model_copy(update={"idle": True}))
        relevance = {t.id: hits.topics[t.id] for t in table.open() if t.id in hits.topics}
        policy = deps.settings.activation
        # What the index suggests is read too, before the least relevant of the active topics.
        due = activate_candidates(session.active, relevance, policy, table.pinned()).active
        if deps.roles.by_index(READER):
            session, change = activate_topics(workspace.store, session, relevance, policy)
            turn = turn.join(change)
        # What a split has just taken out of view is read too, though it could not be activated.
        topics = tuple(dict.fromkeys([*due, *reversed(turn.split)]))
        turn = plan_reading(deps, table, session, turn, topics[: policy.ceiling], hits)
        return dump(session, turn)

    return Node(step, "retrieve")


def _find_request(deps: Deps, session: Session, turn: Turn) -> SearchRequest | None:
    """The search that the user's message wants, if it wants one."""
    request = asked_for(turn.query, session.place(deps.clock()))
    if request is None and turn.amnesia:
        request = SearchRequest(query=turn.query)
    return request and request.model_copy(update={"forgotten": True})
