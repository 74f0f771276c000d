"""finalize: close the turn; reply into storage, activation updated, receipt."""

from __future__ import annotations

from datetime import datetime

from langchain_core.runnables import Runnable

from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, current_plan, dump, emit, node, open_turn, read_beside
from topicloom.state.activation import average_scores, update_activation
from topicloom.state.changes import apply_brief_updates
from topicloom.state.channels import SessionState
from topicloom.state.messages import list_removals, select_unstored
from topicloom.state.recall import Reading
from topicloom.state.receipt import Call, Receipt
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import to_stored_message
from topicloom.storage.sessions import SessionStore


def finalize(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that ends a turn."""

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        store, messages = workspace.store, state["messages"]
        readings = [Reading.model_validate(r) for r in state.get("readings") or ()]
        now = deps.clock()
        time = now.isoformat(timespec="seconds")
        recent = workspace.recent(session, messages)
        replies = select_unstored(messages, recent)
        session = store.append(
            session,
            [
                to_stored_message(m, seq=n, time=time)
                for n, m in enumerate(replies, session.count + 1)
            ],
        )
        ranked = sorted(readings, key=lambda r: r.score)
        scores = {r.topic: r.score for r in ranked if not r.failed}
        result = update_activation(session.active, scores, deps.settings.activation)
        session = session.model_copy(update={"active": result.active, "turn": session.turn + 1})
        session = _apply_new_briefs(deps, store, session)
        turn = turn.model_copy(update={"slept": (*turn.slept, *result.deactivated)})
        calls = tuple(Call.model_validate(c) for c in state.get("calls") or ())
        plan = current_plan(state) if turn.answer else None
        receipt = _make_receipt(store, session, turn, scores, now).model_copy(
            update={"calls": calls, "plan": plan, "window": deps.window.size}
        )
        session = store.add_receipt(session, receipt)
        emit("receipt", receipt=receipt.model_dump(mode="json"))
        return {
            **dump(session, turn),
            "messages": list_removals(messages, deps.settings.visible_messages),
            "readings": None,
            "calls": None,
        }

    return node(step, "finalize")


def _apply_new_briefs(deps: Deps, store: SessionStore, session: Session) -> Session:
    """The session with the briefs that reflection left in the graph's store, if it has one."""
    briefs = (read_beside(deps.new_briefs, session) if session.topics else None) or ()
    topics = apply_brief_updates(store.topic_table(session), briefs)
    return store.save_topics(session, topics) if topics else session


def _make_receipt(
    store: SessionStore, session: Session, turn: Turn, scores: dict[str, float], now: datetime
) -> Receipt:
    """The receipt of a turn, as far as session and turn tell."""
    ranked = sorted(session.active, key=lambda t: -average_scores(session.active[t]))
    damage = [f"damaged: {report}" for report in store.new_reports()]
    return Receipt(
        turn=session.turn,
        user=f"m{turn.user}",
        started=turn.started,
        seconds=round((now - datetime.fromisoformat(turn.started)).total_seconds(), 4),
        scores=scores,
        quoted=tuple(t for n in store.notes(session) if n.after == turn.user for t in n.topics),
        active=tuple(ranked),
        woken=tuple(t for t in turn.woken if t in session.active),
        slept=turn.slept,
        sections=turn.sections,
        abandoned=turn.abandoned,
        split=turn.split,
        searches=turn.searches,
        edits=turn.edited,
        edit_errors=turn.rejected,
        events=(*turn.events, *damage),
    )
