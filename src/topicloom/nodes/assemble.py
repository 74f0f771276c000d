"""assemble: the readings of the turn become one note of the recall ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.context.layout import Layout
from topicloom.context.transcript import shorten
from topicloom.context.window import MainWindow
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Node, Update, dump, dumped, load_readings, open_turn
from topicloom.nodes.thread_quotes import quote_other_threads
from topicloom.search.excerpts import RankedSentences
from topicloom.search.message_search import Hits
from topicloom.state.channels import SessionState
from topicloom.state.layers import Layer
from topicloom.state.note_draft import PARTS, PromptCosts
from topicloom.state.quoting import Readings, Recall, compose_note, read_named
from topicloom.state.recall import Note, Reading, Stretches, parse_message_number, select_notes
from topicloom.state.session import ReadingEffect, Session, Turn
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import TopicTable
from topicloom.storage.sessions import SessionStore
from topicloom.storage.topic_changes import activate_topics


def assemble(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that decides what is quoted and enters it in the ledger.

    The prompt itself is laid out from the ledger when the reply is generated: a checkpoint
    holds no bodies.
    """
    window = deps.window

    def step(state: SessionState) -> Update:
        session, turn, workspace = open_turn(deps.workspaces, state)
        store = workspace.store
        table = store.topic_table(session)
        known = load_readings(state)
        by_models = [r for r in known if r.source == "model" and not r.failed]
        session, turn = _activate_read(deps, store, session, turn, table, by_models)
        # What was read before the newest search stands in the note before this one.
        newest = [r for r in known if r.search == len(turn.searches)]
        found = list[Reading]()
        if not (turn.fast or (turn.searches and turn.searches[-1].media)):
            hits = workspace.look_up(session, turn.lookup)
            found = read_by_index(hits, table, archived=turn.lookup.archived)
        read = Readings(newest, found, answered=bool(by_models))
        note, effect = _compose(deps, store, session, turn, table, read)
        if effect is not None:
            effect = (turn.effect or ReadingEffect()).join(effect)
            turn = turn.model_copy(update={"effect": effect})
        note = note.model_copy(update={"layers": load_layers(state)})
        if session.user_id and turn.answer and not turn.fast:
            note = quote_other_threads(deps, workspace, session, turn, note)
        if not note.empty:
            session = enter_note(store, session, note, window)
        update = dump(session, turn.model_copy(update={"unread": (), "reads_others": False}))
        if any(r.summary for r in known):  # it is in the note, or had no room
            known = [r.model_copy(update={"summary": ""}) for r in known]
            update["readings"] = Overwrite(dumped(known))
        return update | ({"layers": None} if note.layers else {})

    return Node(step, "assemble")


def enter_note(store: SessionStore, session: Session, note: Note, window: MainWindow) -> Session:
    """Enter a note in the ledger, and what it costs in the session."""

    fetch, layout = store.fetcher(session), window.layout

    def cost(part: Note) -> int:
        return layout.count_note(part, fetch, session.language)

    # The skeleton is counted as it is; the average is of what is not known before.
    exact = tuple(layer for layer in note.layers if layer.kind == "deterministic")
    rest = tuple(layer for layer in note.layers if layer.kind != "deterministic")
    recalled = cost(note.model_copy(update={"layers": rest}))
    stays = recalled + (cost(Note(after=note.after, layers=exact)) if exact else 0)
    update = {}
    if recalled:
        update["note_tokens"] = (3 * session.note_tokens + recalled) // 4 or recalled
    if layout.order == "ledger":
        update["ledger_tokens"] = session.ledger_tokens + stays
    return store.add_note(session, note).model_copy(update=update)


def load_layers(state: Mapping[str, Any]) -> tuple[Layer, ...]:
    """The layers that the application's domain adds, the most reliable first."""
    layers = [Layer.model_validate(layer) for layer in state.get("layers") or ()]
    return tuple(sorted(layers, key=lambda layer: layer.kind))


def _activate_read(
    deps: Deps,
    store: SessionStore,
    session: Session,
    turn: Turn,
    table: TopicTable,
    readings: Sequence[Reading],
) -> tuple[Session, Turn]:
    """Activate dormant topics by what their readers say of them."""
    dormant = {t.id for t in table.open()} - session.active.keys()
    relevance = {r.topic: r.score for r in readings if r.topic in dormant}
    if not relevance:
        return session, turn
    session, change = activate_topics(store, session, relevance, deps.settings.activation)
    return session, turn.join(change)


def _compose(
    deps: Deps, store: SessionStore, session: Session, turn: Turn, table: TopicTable, read: Readings
) -> Recall:
    """The note of this turn, without what the prompt shows already."""
    window, layout = deps.window, deps.window.layout
    notes = select_notes(store.notes(session), turn.user, deps.settings.layout)
    search = turn.searches[-1] if turn.searches else None
    read = read._replace(answers=[*read_named(notes, search), *read.answers])
    quotes = (q for r in (*read.answers, *read.by_index) for q in r.quotes)
    numbers = (parse_message_number(q.id) for q in quotes)
    picked = store.pick(session, (n for n in numbers if 1 <= n <= session.count))
    originals = {message.id: message for message in picked.values()}

    def price_media(message_id: str) -> int:
        note = Note(after=turn.user, media=(message_id,))
        return layout.count_note(note, store.fetcher(session), session.language)

    names = {t.id: t.name for t in table}
    in_view = {i for i, m in originals.items() if m.seq >= session.view and layout.shows_all(m)}
    return compose_note(
        read,
        names,
        _make_costs(session, turn, originals, names, layout, window.recall),
        window.recall,
        after=turn.user,
        notes=notes,
        in_view=in_view,
        search=search,
        found=[table[topic] for topic in search.listed] if search else (),
        media={
            i: price_media(i)
            for i in (search.media if search else ())
            if parse_message_number(i) < session.view
        },
        readers=deps.settings.readers,
    )


def _make_costs(
    session: Session,
    turn: Turn,
    originals: Mapping[str, StoredMessage],
    names: Mapping[str, str],
    layout: Layout,
    recall: int,
) -> PromptCosts:
    """What the originals of this turn cost in its note, whole and in part."""
    count, language = layout.counter.text, session.language

    @cache
    def price(message_id: str) -> int:
        return layout.count_quote(originals[message_id], language)

    @cache
    def rank(message_id: str) -> RankedSentences:
        text = originals[message_id].text if message_id in originals else ""
        return RankedSentences.of(text, turn.sought)

    def take(message_id: str, room: int) -> tuple[Stretches, int]:
        message = originals[message_id]
        frame = layout.count_frame(message, language)
        # In a small window its part of the note holds no sentence: then it has all that is left.
        for most in (min(room, recall // PARTS), room):
            stretches = rank(message_id).select(most - frame, count) if most > frame else ()
            cost = layout.count_quote(message, language, stretches) if stretches else 0
            if stretches and cost <= most:
                return stretches, cost
        return (), 0

    return PromptCosts(
        quote=price,
        day=lambda i: originals[i].day,
        text=count,
        heading=lambda t: layout.count_heading(names.get(t, t), language),
        excerpt=take,
        shorten=lambda text, limit: shorten(text, limit, count),
        passage=lambda i: rank(i).best,
    )


def read_by_index(hits: Hits, table: TopicTable, *, archived: bool) -> list[Reading]:
    """Readings of all topics, by what the index found for the turn.

    An answer may rest on a message each of many topics: dormant ones are quoted without being
    activated, archived ones too if the user asked about earlier messages.
    """
    topics = table.open() + table.loose() + (table.archived() if archived else [])
    known = {topic.id for topic in topics}
    weights: dict[str, dict[str, float]] = {}
    for message, weight in hits.weights.items():
        topic = hits.owners[message]
        if topic in known:
            weights.setdefault(topic, {})[message] = weight
    return [Reading.by_weights(t, hits.topics[t], found) for t, found in weights.items()]
