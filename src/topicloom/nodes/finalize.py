"""finalize: close the turn; reply into storage, activation updated, receipt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, RemoveMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.nodes.catch_up import Replay, show_newest, take_later_edits
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import Node, Update, dump, emit, graph_store, open_turn, read_store
from topicloom.nodes.turn_end import TurnEnd, embed_written
from topicloom.state.channels import SessionState
from topicloom.state.messages import split_visible
from topicloom.state.recall import parse_message_number
from topicloom.state.receipt import Call, Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage, number_messages
from topicloom.storage.sessions import SessionStore
from topicloom.telemetry.spans import TurnTexts


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
        now = deps.now(session)
        stored = number_messages(replies, session.count + 1, now.isoformat(timespec="seconds"))
        written = [*(m for m in recent if m.seq >= turn.user), *stored]
        end = TurnEnd(deps, workspace, state, now, replay, turn)
        closed, turn, receipt = end.write(store.append(session, stored))
        workspace.unread.clear()
        read = partial(_read_texts, store, closed, written, receipt)
        deps.telemetry.report_turn(receipt, closed.id, read)
        emit("receipt", receipt=receipt.model_dump(mode="json"))
        hidden, shown = split_visible(messages, keep)
        gone = [RemoveMessage(id=m.id) for m in hidden if m.id is not None]
        kept: Any = [*gone, *_report_usage(replies, receipt)]
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
        ahead = partial(embed_written, deps, written, written if session.topics else ())
        current_run().call_afterwards(ahead)
        rest = {"messages": kept, "readings": None, "calls": None}
        return {**dump(closed, turn), **end.changed, **rest}

    return Node(step, "finalize")


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


def _report_usage(replies: Sequence[AnyMessage], receipt: Receipt) -> list[AIMessage]:
    """The turn's reply with the tokens of all its models; none if it has none."""
    if not (replies and isinstance(reply := replies[-1], AIMessage)):
        return []
    spent = {**reply.response_metadata, "turn_usage": sum_tokens(receipt.calls)}
    return [reply.model_copy(update={"response_metadata": spent})]


def sum_tokens(calls: Sequence[Call]) -> UsageMetadata:
    """The tokens of all models that were called in a turn."""
    sent, received = sum(c.input_tokens for c in calls), sum(c.output_tokens for c in calls)
    cached = InputTokenDetails(cache_read=sum(c.cached_tokens for c in calls))
    return UsageMetadata(
        input_tokens=sent,
        output_tokens=received,
        total_tokens=sent + received,
        input_token_details=cached,
    )
