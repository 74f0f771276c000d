"""retrieve: activate the dormant topics that the message is about."""

from __future__ import annotations

from langchain_core.runnables import Runnable

from topicloom.nodes.activate_topic import activate_topics
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, dump, node, open_turn
from topicloom.roles.reader import READER
from topicloom.search.time_expressions import asked_for
from topicloom.state.activation import choose_read, update_activation
from topicloom.state.channels import SessionState
from topicloom.state.session import Lookup, SearchRequest, Turn

_SMALL, _FEW = 400, 3
"""Tokens of small topics. More than so many of them have no readers of their own: what the index
finds in them is read, in one call, with what it finds in other topics that none reads."""


def retrieve(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that activates topics by what the index finds in them, and says which are read.

    Where models read, one more reads what the index finds in topics without a reader. An active
    topic that has none this turn counts as relevant as the index finds it.

    If the user says that something was forgotten, or asks about earlier messages, it wants a
    search of all topics as well. For a message that needs nothing from earlier messages, such as
    "ok", nothing is activated and nothing is read.
    """

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        table = workspace.store.topic_table(session)
        own = Lookup(query=turn.query, before=turn.before, from_user=True)
        hits = workspace.look_up(session, own)
        request = _find_request(deps, turn) if session.topics else None
        turn = turn.model_copy(update={"request": request})
        if hits.idle:
            # What is active stays so, unread: the talk may go on about it.
            return dump(session, turn.model_copy(update={"idle": True}))
        relevance = {t.id: hits.topics[t.id] for t in table.open() if t.id in hits.topics}
        policy = deps.settings.activation
        session, turn = activate_topics(workspace.store, session, turn, relevance, policy)
        # What a split has just taken out of view is read too, though it could not be activated.
        unread = tuple(dict.fromkeys([*session.active, *reversed(turn.split)]))[: policy.ceiling]
        others = False
        if not deps.roles.by_index(READER):
            pinned = table.pinned()
            unread = choose_read(session.active, turn.split[::-1], relevance, policy, pinned)
            small = {t for t in unread if table[t].tokens <= _SMALL}
            if len(small) > _FEW:
                unread = tuple(t for t in unread if t not in small)
            others = bool(hits.find_in_other_topics(unread, policy.base))
            idle = {t: relevance.get(t, 0.0) for t in session.active if t not in unread}
            if idle:
                settled = update_activation(session.active, idle, policy, pinned)
                session = session.model_copy(update={"active": settled.active})
                turn = turn.model_copy(
                    update={"deactivated": (*turn.deactivated, *settled.deactivated)}
                )
        update = {"unread": unread, "reads_others": others, "about": dict(hits.about)}
        return dump(session, turn.model_copy(update=update))

    return node(step, "retrieve")


def _find_request(deps: Deps, turn: Turn) -> SearchRequest | None:
    """The search that the user's message wants, if it wants one."""
    request = asked_for(turn.query, deps.clock())
    if request is None and turn.amnesia:
        request = SearchRequest(query=turn.query)
    return request and request.model_copy(update={"forgotten": True})
