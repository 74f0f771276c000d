"""assemble: what the readers handed over becomes one note of the recall ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.runnables import Runnable

from topicloom.context.notes import quote_line, render_note, topic_heading
from topicloom.context.window import MainWindow
from topicloom.nodes.sleeping import found_asleep
from topicloom.nodes.step import Update, current_session, current_turn, dump, node, open_workspace
from topicloom.nodes.workspace import Workspaces
from topicloom.roles.calls import Step
from topicloom.state.channels import SessionState
from topicloom.state.layers import Layer
from topicloom.state.recall import Costs, Note, Reading, compose, number_of
from topicloom.state.records import Record
from topicloom.state.session import Session, Turn
from topicloom.state.topics import Roster
from topicloom.storage.sessions import SessionStore


def assemble(
    *, workspaces: Workspaces, window: MainWindow, alone: bool = False
) -> Runnable[SessionState, Update]:
    """The node that decides what is quoted and enters it in the ledger.

    The prompt itself is laid out from the ledger when the reply is generated: a checkpoint
    holds no bodies.

    Args:
        workspaces: Of this process.
        window: The main prompt.
        alone: Whether the local index is the only reader. Then what it finds in topics that
            sleep is quoted, too: reading them costs nothing.
    """

    def step(state: SessionState) -> Step[Update]:
        session, turn = current_session(state), current_turn(state)
        workspace = open_workspace(workspaces, session)
        store = workspace.store
        roster = store.roster(session)
        readings = readings_of(state)
        if alone:
            readings += found_asleep(workspace, roster, turn, {r.topic for r in readings})
        note = compose_note(store, session, turn, roster, readings, window, window.counter.text)
        note = note.model_copy(update={"layers": layers_of(state)})
        if not note.empty:
            session = enter(store, session, note, window)
        update = dump(session, turn.model_copy(update={"unread": ()}))
        return update | ({"layers": None} if note.layers else {})
        yield  # a step is a generator, though this one asks nobody

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


def compose_note(
    store: SessionStore,
    session: Session,
    turn: Turn,
    roster: Roster,
    readings: list[Reading],
    window: MainWindow,
    count: Callable[[str], int],
) -> Note:
    """The note of this turn, without what the prompt shows already."""
    notes = store.notes(session)
    if window.layout.order == "spec":
        notes = [n for n in notes if n.after == turn.user]
    quoted = {i for note in notes for t in note.topics for i in t.quotes}
    in_view = {f"m{n}" for n in range(session.view, session.count + 1)}

    numbers = (number_of(q.id) for r in readings for q in r.quotes)
    records = store.pick(session, (n for n in numbers if 1 <= n <= session.count))

    def original(message_id: str) -> Record:
        return records[number_of(message_id)]

    def price(message_id: str) -> int:
        record = original(message_id)
        return count(f"{quote_line(record, record.text)}\n")

    names = {t.id: t.name for t in roster}
    costs = Costs(
        quote=price,
        day=lambda i: original(i).day,
        text=count,
        heading=lambda t: count(topic_heading(t, names.get(t, t))) + 1,
        part=window.layout.part,
    )
    told = {t.summary for note in notes for t in note.topics}
    readings = [r.model_copy(update={"summary": ""}) if r.summary in told else r for r in readings]
    topics = compose(readings, names, costs, window.recall, quoted | in_view)
    search = turn.searches[-1] if turn.searches else None
    candidates = [names[t] for t in search.candidates if t in names] if search else []
    # A search that adds nothing has to say so, or the model would be asked the same once more.
    nothing = search is not None and not topics
    return Note(
        after=turn.user,
        topics=topics,
        searched=search.query if search and nothing else "",
        candidates=tuple(candidates),
    )
