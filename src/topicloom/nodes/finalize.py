"""finalize: close the turn; reply into storage, activation updated, receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.background import defer_exit
from topicloom.nodes.catch_up import Replay, report_taken, show_newest, take_later_edits
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import (
    Node,
    Update,
    dump,
    emit,
    graph_store,
    load_readings,
    open_turn,
    read_store,
    turn_options,
)
from topicloom.nodes.workspace import Workspace
from topicloom.search.embedder import CachedEmbedder
from topicloom.state.channels import SessionState
from topicloom.state.closing import TurnRecord, close_channel, close_turn, number_replies
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Call, PlannedTurn, Receipt
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topic_names import find_owner
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore
from topicloom.storage.topic_changes import make_changes
from topicloom.storage.writers import Tip, find_same_turn, give_way, read_tips, write_tip
from topicloom.telemetry.spans import TurnTexts

_AHEAD = 16
"""Turns whose messages may wait to be embedded ahead; those of more are left to later turns."""


def finalize(deps: Deps, replay: Replay | None = None) -> Runnable[SessionState, Update]:
    """The node that ends a turn; `replay` makes other writers' edits of a document.

    Raises `ConflictError` if another writer's turn ended meanwhile and the settings say so.
    """

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        store, keep = workspace.store, deps.settings.visible_messages
        session, turn, messages = take_later_edits(
            deps, workspace, session, turn, state["messages"]
        )
        recent, replies = workspace.compare(session, messages)
        now = session.place(deps.clock())
        stored = number_replies(session, replies, now)
        written = [*(m for m in recent if m.seq >= turn.user), *stored]
        end = _TurnEnd(deps, workspace, state, now, replay, turn)
        closed, turn, receipt = end.write(store.append(session, stored))
        workspace.unread.clear()
        read = partial(_read_texts, store, closed, written, receipt)
        deps.telemetry.report_turn(receipt, closed.id, read)
        emit("receipt", receipt=receipt.model_dump(mode="json"))
        shown, kept = close_channel(messages, replies, receipt, keep)
        if end.merged:
            shown = show_newest(store, closed, keep)
            kept = Overwrite(shown)
        closed = workspace.mark_shown(closed, shown)
        if deps.settings.on_edit == "purge":
            closed = _purge_superseded(store, closed)
        if closed.user_id:
            # Within the run: an application may close its store as soon as a run has ended.
            read_store(graph_store(), workspace, lambda kept: deps.user.share(kept, store, closed))
        # The user is reading now: what the next turn waits for is begun behind this one.
        ahead = partial(_embed_written, deps, written, written if session.topics else ())
        current_run().call_afterwards(ahead)
        rest = {"messages": kept, "readings": None, "calls": None}
        return {**dump(closed, turn), **end.changed, **rest}

    return Node(step, "finalize")


@dataclass(slots=True)
class _TurnEnd:
    """The end of a turn, which others may have come before."""

    deps: Deps
    workspace: Workspace
    state: SessionState
    now: datetime
    replay: Replay | None
    turn: Turn
    merged: bool = False
    """True if another came first, and what it did was taken over."""
    changed: Update = field(default_factory=dict)
    """The update of the document by that."""

    def write(self, session: Session) -> tuple[Session, Turn, Receipt]:
        """Close the turn and write the session as the tip of its branch, behind those of others.

        What this same turn wrote before it was killed stands, or gives way to another reply.
        """
        store, user = self.workspace.store, self.turn.user
        tips = read_tips(store)
        ends = [m.source for m in store.messages(session, user)]
        same = find_same_turn(store, session, user, self.turn.started, tips)
        for tip in same:
            if [m.source for m in store.messages(tip.session, user)] == ends:
                (receipt,) = store.receipts(tip.session, 1)
                return tip.session, self.turn, receipt
        replaced = [tip.ref for tip in same]
        closed, ended, _ = write_tip(store, session, self._close, self._give_way, replaced, tips)
        return closed, *ended

    def _give_way(self, session: Session, others: Sequence[Tip]) -> Session:
        """The session as the settings have it where others came first; the turn follows it."""
        store, turn, before = self.workspace.store, self.turn, session
        mode, thread = self.deps.settings.on_conflict, current_run().thread
        session, taken = give_way(store, session, others, mode, thread)
        if not taken:
            event = "another writer came first: this turn stays on a branch of its own"
            self.turn = turn.model_copy(update={"events": (*turn.events, event)})
            return session
        document = self.changed.get("document") or self.state.get("document")
        events, changed = report_taken(taken, document, self.replay)
        self.merged, self.changed = True, self.changed | changed
        own = turn.user >= turn.first and others[-1].session.turn >= before.turn
        moved = session.count - before.count if own else 0
        events = (*turn.events, *events)
        turn = turn.model_copy(update={"user": turn.user + moved, "events": events})
        session, self.turn = make_changes(store, session, turn, turn_options().changes)
        return session

    def _close(self, session: Session) -> tuple[Session, tuple[Turn, Receipt]]:
        workspace, settings = self.workspace, self.deps.settings
        store, session = workspace.store, _apply_late_briefs(workspace, session)
        if workspace.waiting:
            emit("embedding", left=workspace.waiting)
        plan = self.state.get("plan")
        record = TurnRecord(
            load_readings(self.state),
            calls=[Call.model_validate(c) for c in self.state.get("calls") or ()],
            plan=None if plan is None else PlannedTurn.model_validate(plan),
            notes=store.notes(session),
            order=settings.layout,
            window=self.deps.window.size,
            now=self.now,
            limits=self.deps.spending.list_used(session.id),
            trouble=workspace.list_trouble(),
        )
        table, policy = store.topic_table(session), settings.activation
        session, turn, receipt = close_turn(session, self.turn, table, policy, record)
        return store.add_receipt(session, receipt), (turn, receipt)


def _apply_late_briefs(workspace: Workspace, session: Session) -> Session:
    """The session with the briefs by models that were late at a split.

    One whose topic has got messages, a name or a brief since is passed over: something newer has
    been written then.
    """
    store, changed = workspace.store, dict[str, Topic]()
    table = store.topic_table(session)
    for topic_id in tuple(workspace.late_briefs):
        purges, was, brief = workspace.late_briefs.pop(topic_id)
        now = table.get(topic_id)
        if now is None or now.status != "open" or purges != store.log.purges:
            continue
        if (now.content, now.name, now.brief) == (was.content, was.name, was.brief):
            others = [changed.get(t.id, t) for t in table.open()]
            name = "" if find_owner(brief.name, others, [topic_id]) else brief.name
            changed[topic_id] = now.described(name, brief.text)
    return store.save_topics(session, list(changed.values())) if changed else session


def _embed_written(
    deps: Deps, heard: Sequence[StoredMessage], leaving: Sequence[StoredMessage]
) -> None:
    """Begin to embed, while the user reads, what later turns would wait for.

    Args:
        deps: Has the encoders.
        heard: Messages that the next one is judged by.
        leaving: Messages whose lines are needed when they leave the view; none of a session that
            was never split, as it may end before.
    """
    remembers = isinstance(deps.embedder, CachedEmbedder)

    def work() -> None:
        with defer_exit():
            deps.adsorber.expect(heard)
        for message in leaving if remembers else ():
            with defer_exit():
                deps.embedder.embed([message.line])

    if deps.ahead.waiting < _AHEAD:
        deps.ahead.submit(work)


def _read_texts(
    store: SessionStore, session: Session, said: Sequence[StoredMessage], receipt: Receipt
) -> TurnTexts:
    """What was said in a turn, and what was quoted for it."""
    ids = [quote for note in receipt.quoted for quote in note.quotes]
    quoted = store.pick(session, map(parse_message_number, ids))
    return TurnTexts(
        asked=next((m.text for m in said if m.id == receipt.user), ""),
        replied=next((m.text for m in reversed(said) if m.role == "assistant"), ""),
        quoted={f"m{number}": message.text for number, message in quoted.items()},
    )


def _purge_superseded(store: SessionStore, session: Session) -> Session:
    """Purge what the application edited; the session, whose channel has nothing of that left."""
    up_to_date = session.purges == store.log.purges
    store.purge_superseded(session)
    return session.model_copy(update={"purges": store.log.purges}) if up_to_date else session
