"""The end of a turn: what is active after it, the receipt, and what its channel shows then. Nothing
is read or written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata

from topicloom.state.activation import ActivationPolicy, average_scores, update_activation
from topicloom.state.messages import split_visible
from topicloom.state.recall import LayoutName, Note, Reading, parse_message_number, select_notes
from topicloom.state.receipt import Call, PlannedTurn, Receipt, list_unasked
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage, number_messages
from topicloom.state.topics import TopicTable

_CROWDED_OUT = 32
"""Messages named by readers without being quoted, of which a receipt says so."""


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """What a receipt tells of, besides the session and the turn."""

    readings: Sequence[Reading]
    calls: Sequence[Call]
    plan: PlannedTurn | None
    """The plan of a turn that was planned."""
    notes: Sequence[Note]
    """All notes of the ledger."""
    order: LayoutName
    """How the prompt showed them."""
    window: int
    """The main window in tokens."""
    now: datetime
    limits: Mapping[str, float]
    """Share of each daily limit that is used."""
    trouble: Sequence[str]
    """What could not be read or done, in words."""


def number_replies(
    session: Session, replies: Iterable[AnyMessage], now: datetime
) -> list[StoredMessage]:
    """What a turn adds to the conversation, as it is stored."""
    return number_messages(replies, session.count + 1, now.isoformat(timespec="seconds"))


def close_turn(
    session: Session, turn: Turn, table: TopicTable, policy: ActivationPolicy, record: TurnRecord
) -> tuple[Session, Turn, Receipt]:
    """The session after a turn, the turn, and its receipt.

    Topics fall asleep by the scores of their readers.
    """
    ranked = sorted(record.readings, key=lambda r: r.score)
    scores = {r.topic: r.score for r in ranked if not r.failed}
    result = update_activation(session.active, scores, policy, table.pinned())
    session = session.model_copy(update={"active": result.active, "turn": session.turn + 1})
    turn = turn.join(result)
    return session, turn, _write_receipt(session, turn, record, scores)


def _count_seconds(started: str, now: datetime) -> float:
    begun = datetime.fromisoformat(started)
    if begun.tzinfo is None or now.tzinfo is None:  # a clock without a zone
        begun, now = begun.replace(tzinfo=None), now.replace(tzinfo=None)
    return round((now - begun).total_seconds(), 4)


def _write_receipt(
    session: Session, turn: Turn, record: TurnRecord, scores: Mapping[str, float]
) -> Receipt:
    own = [note for note in record.notes if note.after == turn.user]
    shown = select_notes(record.notes, turn.user, record.order)
    return Receipt(
        turn=session.turn,
        user=f"m{turn.user}",
        started=turn.started,
        seconds=_count_seconds(turn.started, record.now),
        scores=dict(scores),
        quoted=tuple(topic for note in own for topic in note.topics),
        other_threads=tuple(quote for note in own for quote in note.other_threads),
        curated=tuple(entry.item for note in own for entry in note.curated),
        crowded_out=_find_crowded_out(session, record.readings, shown),
        reading=turn.effect,
        idle=turn.idle or turn.fast,
        about=turn.about,
        view=session.view,
        noted=min((note.after for note in shown), default=0),
        roster=session.roster,
        active=tuple(sorted(session.active, key=lambda t: -average_scores(session.active[t]))),
        activated=tuple(t for t in turn.activated if t in session.active),
        deactivated=turn.deactivated,
        sections=turn.sections,
        window=record.window,
        split=turn.split,
        searches=turn.searches,
        abandoned=turn.abandoned,
        calls=tuple(call for call in record.calls if not call.skipped),
        steps=turn.steps,
        unasked=list_unasked(record.calls),
        limits=dict(record.limits),
        plan=record.plan if turn.answer else None,
        edits=turn.edited,
        edit_errors=turn.rejected,
        events=(*turn.events, *record.trouble),
    )


def _find_crowded_out(
    session: Session, readings: Sequence[Reading], shown: Sequence[Note]
) -> tuple[str, ...]:
    """Short ids of what models named, best first, that is neither quoted nor in view."""
    quoted = {i for note in shown for topic in note.topics for i in topic.quotes}
    named = {q.id: -q.weight for r in readings if r.source == "model" for q in r.quotes}
    left = [i for i in named if i not in quoted and parse_message_number(i) < session.view]
    return tuple(sorted(left, key=named.__getitem__)[:_CROWDED_OUT])


def close_channel(
    messages: Sequence[AnyMessage], replies: Sequence[AnyMessage], receipt: Receipt, keep: int
) -> tuple[Sequence[AnyMessage], Any]:
    """What the `messages` channel shows from now on, and the update that makes it so.

    Args:
        messages: The channel.
        replies: What the turn added to it; the last one gets the tokens of all the turn's models.
        receipt: Has these.
        keep: Messages that are shown at least, in whole rounds.
    """
    hidden, shown = split_visible(messages, keep)
    update: list[Any] = [RemoveMessage(id=m.id) for m in hidden if m.id is not None]
    if replies and isinstance(reply := replies[-1], AIMessage):
        spent = {**reply.response_metadata, "turn_usage": _sum_tokens(receipt.calls)}
        update.append(reply.model_copy(update={"response_metadata": spent}))
    return shown, update


def _sum_tokens(calls: Sequence[Call]) -> UsageMetadata:
    """The tokens of all models that were called in a turn."""
    sent, received = sum(c.input_tokens for c in calls), sum(c.output_tokens for c in calls)
    cached = InputTokenDetails(cache_read=sum(c.cached_tokens for c in calls))
    return UsageMetadata(
        input_tokens=sent,
        output_tokens=received,
        total_tokens=sent + received,
        input_token_details=cached,
    )
