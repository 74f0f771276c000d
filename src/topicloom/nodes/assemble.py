"""assemble: the readings of the turn become one note of the recall ledger."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.types import Overwrite

from topicloom.context.transcript import shorten
from topicloom.context.window import MainWindow
from topicloom.nodes.deps import Deps
from topicloom.nodes.step import Update, dump, dumped, load_readings, node, open_turn
from topicloom.nodes.thread_quotes import quote_other_threads
from topicloom.roles.reader import read_by_weights
from topicloom.search.excerpts import RankedSentences
from topicloom.search.hits import EXCERPT_PARTS, Hits
from topicloom.state.channels import SessionState
from topicloom.state.layers import Layer
from topicloom.state.note_draft import PromptCosts
from topicloom.state.quoting import Recall, compose_note, read_named
from topicloom.state.recall import Note, Reading, Stretches, parse_message_number
from topicloom.state.session import ReadingEffect, Session, Turn
from topicloom.state.stored_message import StoredMessage
from topicloom.state.topics import TopicTable
from topicloom.storage.sessions import SessionStore

_LEAST = 48
"""Tokens of an original that is quoted in part, at least: half of them are for the lines around
it."""


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
        # What was read before the newest search stands in the note before this one.
        readings = [r for r in known if r.search == len(turn.searches)]
        if not (turn.fast or (turn.searches and turn.searches[-1].media)):
            read = {r.topic for r in readings if r.source == "index"}
            hits = workspace.look_up(session, turn.lookup)
            readings += read_by_index(hits, table, read, archived=turn.lookup.archived)
        note, effect = _compose(store, session, turn, table, readings, window)
        if effect is not None:
            effect = (turn.effect or ReadingEffect()).join(effect)
            turn = turn.model_copy(update={"effect": effect})
        note = note.model_copy(update={"layers": load_layers(state)})
        note = quote_other_threads(deps, workspace, session, turn, note)
        if not note.empty:
            session = enter_note(store, session, note, window)
        update = dump(session, turn.model_copy(update={"unread": (), "reads_others": False}))
        if any(r.summary for r in known):  # it is in the note, or had no room
            known = [r.model_copy(update={"summary": ""}) for r in known]
            update["readings"] = Overwrite(dumped(known))
        return update | ({"layers": None} if note.layers else {})

    return node(step, "assemble")


def enter_note(store: SessionStore, session: Session, note: Note, window: MainWindow) -> Session:
    """Enter a note in the ledger, and what it costs in the session."""

    fetch = store.fetcher(session)

    def cost(part: Note) -> int:
        return window.layout.count_note(part, fetch, session.language)

    # The skeleton is counted as it is; the average is of what is not known before.
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


def load_layers(state: Mapping[str, Any]) -> tuple[Layer, ...]:
    """The layers that the application's domain adds, the most reliable first."""
    layers = [Layer.model_validate(layer) for layer in state.get("layers") or ()]
    return tuple(sorted(layers, key=lambda layer: layer.kind))


def _compose(
    store: SessionStore,
    session: Session,
    turn: Turn,
    table: TopicTable,
    readings: list[Reading],
    window: MainWindow,
) -> Recall:
    """The note of this turn, without what the prompt shows already."""
    layout = window.layout
    notes = layout.select_shown(store.notes(session), turn.user)
    search = turn.searches[-1] if turn.searches else None
    readings = [*read_named(notes, search), *readings]
    numbers = (parse_message_number(q.id) for r in readings for q in r.quotes)
    picked = store.pick(session, (n for n in numbers if 1 <= n <= session.count))
    originals = {message.id: message for message in picked.values()}

    def price_media(message_id: str) -> int:
        note = Note(after=turn.user, media=(message_id,))
        return layout.count_note(note, store.fetcher(session), session.language)

    names = {t.id: t.name for t in table}
    in_view = {i for i, m in originals.items() if m.seq >= session.view and layout.shows_all(m)}
    return compose_note(
        readings,
        names,
        _make_costs(session, turn, originals, names, window),
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
    )


def _make_costs(
    session: Session,
    turn: Turn,
    originals: Mapping[str, StoredMessage],
    names: Mapping[str, str],
    window: MainWindow,
) -> PromptCosts:
    """What the originals of this turn cost in its note, whole and in part."""
    layout, count, language = window.layout, window.counter.text, session.language

    @cache
    def price(message_id: str) -> int:
        return layout.count_quote(originals[message_id], language)

    @cache
    def rank(message_id: str) -> RankedSentences:
        text = originals[message_id].text if message_id in originals else ""
        return RankedSentences.of(text, turn.sought)

    def take(message_id: str, room: int) -> tuple[Stretches, int]:
        if room < _LEAST:
            return (), 0
        message = originals[message_id]
        frame = layout.count_frame(message, language)
        room = min(room, window.recall // EXCERPT_PARTS)
        stretches = rank(message_id).select(room - frame, count)
        price = layout.count_quote(message, language, stretches)
        return (stretches, price) if price <= room else ((), 0)

    return PromptCosts(
        quote=price,
        day=lambda i: originals[i].day,
        text=count,
        heading=lambda t: layout.count_heading(names.get(t, t), language),
        excerpt=take,
        shorten=lambda text, limit: shorten(text, limit, count),
        passage=lambda i: rank(i).best,
    )


def read_by_index(
    hits: Hits, table: TopicTable, read: Collection[str], *, archived: bool
) -> list[Reading]:
    """Readings of all topics that it has not `read` yet, by what the index found for the turn.

    They compete with those of models, so that none of these hides what the index finds. And an
    answer may rest on a message each of many topics: dormant ones are quoted without being
    activated, archived ones too if the user asked about earlier messages.
    """
    topics = table.open() + table.loose() + (table.archived() if archived else [])
    unread = {topic.id for topic in topics} - set(read)
    weights: dict[str, dict[str, float]] = {}
    for message, weight in hits.weights.items():
        topic = hits.owners[message]
        if topic in unread:
            weights.setdefault(topic, {})[message] = weight
    best = max(hits.weights.values(), default=0.0)
    return [read_by_weights(t, hits.topics[t], found, best) for t, found in weights.items()]
