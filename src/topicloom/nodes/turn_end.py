"""The end of a turn: closed, with a receipt, behind other writers whose turns ended meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from topicloom.nodes.apply_changes import make_changes
from topicloom.nodes.catch_up import Replay, report_taken
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import (
    Update,
    emit,
    load_readings,
    turn_options,
)
from topicloom.nodes.workspace import Workspace
from topicloom.state.activation import average_scores, update_activation
from topicloom.state.changes import apply_brief_updates, keep_names_apart
from topicloom.state.channels import SessionState
from topicloom.state.recall import OTHER_TOPICS, Reading, parse_message_number
from topicloom.state.receipt import Call, PlannedTurn, Receipt, list_unasked
from topicloom.state.session import Session, Turn
from topicloom.storage.writers import (
    Tip,
    find_concurrent,
    give_way,
    is_same_turn,
    read_tips,
    write_tip,
)


@dataclass(slots=True)
class TurnEnd:
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
        same = [
            tip
            for tip in find_concurrent(store, session, tips)
            if is_same_turn(store, tip, session, user, self.turn.started)
        ]
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
        """The session after the turn, and the turn and its receipt."""
        store, readings = self.workspace.store, load_readings(self.state)
        ranked = sorted(readings, key=lambda r: r.score)
        scores = {r.topic: r.score for r in ranked if r.topic != OTHER_TOPICS and not r.failed}
        pinned, policy = store.topic_table(session).pinned(), self.deps.settings.activation
        result = update_activation(session.active, scores, policy, pinned)
        session = session.model_copy(update={"active": result.active, "turn": session.turn + 1})
        session = _apply_late_briefs(self.workspace, session)
        deactivated = (*self.turn.deactivated, *result.deactivated)
        turn = self.turn.model_copy(update={"deactivated": deactivated})
        receipt = self._make_receipt(session, turn, readings, scores)
        return store.add_receipt(session, receipt), (turn, receipt)

    def _make_receipt(
        self, session: Session, turn: Turn, readings: Sequence[Reading], scores: dict[str, float]
    ) -> Receipt:
        written, window = self.workspace.store.notes(session), self.deps.window
        notes = window.layout.select_shown(written, turn.user)
        shown = {i for note in notes for topic in note.topics for i in topic.quotes}
        named = {q.id: -q.weight for r in readings if r.source == "model" for q in r.quotes}
        left = [i for i in named if i not in shown and parse_message_number(i) < session.view]
        calls = [Call.model_validate(c) for c in self.state.get("calls") or ()]
        # Without zones: a turn that failed may go on in a program whose clock has none.
        began = datetime.fromisoformat(turn.started).replace(tzinfo=None)
        took = self.now.replace(tzinfo=None) - began
        plan = self.state.get("plan") if turn.answer else None
        return Receipt(
            turn=session.turn,
            user=f"m{turn.user}",
            started=turn.started,
            seconds=round(took.total_seconds(), 4),
            scores=scores,
            quoted=tuple(t for n in written if n.after == turn.user for t in n.topics),
            other_threads=tuple(
                q for n in written if n.after == turn.user for q in n.other_threads
            ),
            curated=tuple(e.item for n in written if n.after == turn.user for e in n.curated),
            crowded_out=tuple(sorted(left, key=named.__getitem__)[:_CROWDED_OUT]),
            reading=turn.effect,
            idle=turn.idle or turn.fast,
            about=turn.about,
            view=session.view,
            noted=min((n.after for n in notes), default=0),
            roster=session.roster,
            active=tuple(sorted(session.active, key=lambda t: -average_scores(session.active[t]))),
            activated=tuple(t for t in turn.activated if t in session.active),
            deactivated=turn.deactivated,
            sections=turn.sections,
            window=window.size,
            split=turn.split,
            searches=turn.searches,
            abandoned=turn.abandoned,
            calls=tuple(c for c in calls if not c.skipped),
            unasked=list_unasked(calls),
            plan=PlannedTurn.model_validate(plan) if plan is not None else None,
            edits=turn.edited,
            edit_errors=turn.rejected,
            events=(*turn.events, *self._list_trouble()),
        )

    def _list_trouble(self) -> Iterator[str]:
        """What could not be read or done in the turn, in words."""
        if left := self.workspace.index.waiting:
            emit("embedding", left=left)
            yield f"the encoder is another one now: {left} older messages go by words alone as yet"
        for report in self.workspace.store.new_reports():
            yield f"damaged: {report}"
        for why in self.workspace.unread:
            yield f"the graph's store cannot be read: {why}"
        if failure := getattr(self.deps.embedder, "failure", ""):
            yield f"the encoder failed, and what was said is found by its words alone: {failure}"


_CROWDED_OUT = 32
"""Messages named by readers without being quoted, of which a receipt says so."""


def _apply_late_briefs(workspace: Workspace, session: Session) -> Session:
    """The session with the briefs by models that were late at a split."""
    store = workspace.store
    left = [workspace.late_briefs.pop(i) for i in tuple(workspace.late_briefs)]
    late = [update for purges, update in left if purges == store.log.purges]
    table = store.topic_table(session)
    topics = apply_brief_updates(table, keep_names_apart(table, late))
    return store.save_topics(session, topics) if topics else session
