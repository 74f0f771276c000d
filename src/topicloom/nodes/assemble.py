"""assemble: what the readers handed over becomes one note of the recall ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from langchain_core.runnables import Runnable

from topicloom.context.notes import format_quote_line, format_topic_heading, render_note
from topicloom.context.transcript import shorten
from topicloom.context.window import MainWindow
from topicloom.index.time_expressions import Days
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, current_session, current_turn, dump, node, open_workspace
from topicloom.nodes.workspace import Workspace
from topicloom.roles.reader import read_by_worth
from topicloom.state.channels import SessionState
from topicloom.state.layers import Layer
from topicloom.state.recall import Note, PromptCosts, Reading, compose_note, parse_message_number
from topicloom.state.session import Search, Session, Turn
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import TopicTable
from topicloom.storage.sessions import SessionStore


def assemble(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that decides what is quoted and enters it in the ledger.

    The prompt itself is laid out from the ledger when the reply is generated: a checkpoint
    holds no bodies.
    """
    window = deps.window

    def step(state: SessionState) -> Update:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(deps.workspaces, session)
        store = workspace.store
        table = store.topic_table(session)
        readings = readings_of(state)
        read = {r.topic for r in readings if r.source == "index"}
        readings += read_by_index(workspace, table, turn, read)
        note = _composed(store, session, turn, table, readings, window)
        note = note.model_copy(update={"layers": layers_of(state)})
        if not note.empty:
            session = enter(store, session, note, window)
        update = dump(session, turn.model_copy(update={"unread": ()}))
        return update | ({"layers": None} if note.layers else {})

    return node(step, "assemble")


def enter(store: SessionStore, session: Session, note: Note, window: MainWindow) -> Session:
    """Enter a note in the ledger, and what it costs in the session."""

    def cost(part: Note) -> int:
        text = render_note(
            part,
            lambda i: store.record(session, i),
            lambda r, whole: window.layout.quoted(r, whole, session.language),
            session.language,
        )
        return window.counter.text(text) if text else 0

    # The skeleton is counted as it is; the average is of what nobody knows before.
    exact = tuple(layer for layer in note.layers if layer.kind == "deterministic")
    rest = tuple(layer for layer in note.layers if layer.kind != "deterministic")
    recalled = cost(note.model_copy(update={"layers": rest}))
    stays = recalled + (cost(Note(after=note.after, layers=exact)) if exact else 0)
    update = {}
    if recalled:
        update["note_tokens"] = (3 * session.note_tokens + recalled) // 4 or recalled
    if window.layout.order == "ledger":
        update["ledger_tokens"] = session.ledger_tokens + stays
    return store.add_note(session, note).model_copy(update=update)


def layers_of(state: Mapping[str, Any]) -> tuple[Layer, ...]:
    """What the application's domain adds, the most reliable first."""
    layers = [Layer.model_validate(layer) for layer in state.get("layers") or ()]
    return tuple(sorted(layers, key=lambda layer: layer.kind))


def readings_of(state: SessionState) -> list[Reading]:
    """The readings of the turn so far."""
    return [Reading.model_validate(r) for r in state.get("readings") or ()]


def _composed(
    store: SessionStore,
    session: Session,
    turn: Turn,
    table: TopicTable,
    readings: list[Reading],
    window: MainWindow,
) -> Note:
    """The note of this turn, without what the prompt shows already."""
    count = window.counter.text
    notes = store.notes(session)
    if window.layout.order == "spec":
        notes = [n for n in notes if n.after == turn.user]
    numbers = (parse_message_number(q.id) for r in readings for q in r.quotes)
    records = store.pick(session, (n for n in numbers if 1 <= n <= session.count))

    def original(message_id: str) -> StoredMessage:
        return records[parse_message_number(message_id)]

    def price(message_id: str) -> int:
        record = original(message_id)
        return count(f"{format_quote_line(record, record.text)}\n")

    names = {t.id: t.name for t in table}
    costs = PromptCosts(
        quote=price,
        day=lambda i: original(i).day,
        text=count,
        heading=lambda t: count(format_topic_heading(t, names.get(t, t))) + 1,
        part=window.layout.part,
        shorten=lambda text, limit: shorten(text, limit, count),
    )
    return compose_note(
        readings,
        names,
        costs,
        window.recall,
        after=turn.user,
        notes=notes,
        in_view={f"m{n}" for n in range(session.view, session.count + 1)},
        search=turn.searches[-1] if turn.searches else None,
    )


def read_by_index(
    workspace: Workspace, table: TopicTable, turn: Turn, read: Collection[str]
) -> list[Reading]:
    """Readings of all topics by what the index found for the turn.

    They compete with those of models, so that none of these hides what the index finds. And an
    answer may rest on a message each of many topics: dormant ones are quoted without being
    activated, archived ones too if the user asked for what was said before.

    Args:
        workspace: With the index.
        table: The topics.
        turn: What is looked for.
        read: Topics that the index has read for this turn already.
    """
    newest = turn.searches[-1] if turn.searches else Search(query=turn.query)
    hits = workspace.indexed(table).search(
        turn.query, Days.of(newest.days), include_archived=newest.archived
    )
    topics = table.open() + (table.archived() if newest.archived else [])
    unread = {topic.id for topic in topics} - set(read)
    worth: dict[str, dict[str, float]] = {}
    for message, weight in hits.weights.items():
        topic = hits.homes[message]
        if topic in unread:
            worth.setdefault(topic, {})[message] = weight
    best = max(hits.weights.values(), default=0.0)
    return [read_by_worth(t, hits.topics[t], found, best) for t, found in worth.items()]
