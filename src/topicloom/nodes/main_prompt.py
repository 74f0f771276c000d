"""The prompt of the main model, laid out of what is kept of a session."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langgraph.store.base import BaseStore

from topicloom.context.layout import MainPrompt
from topicloom.context.notes import format_facts
from topicloom.context.transcript import shorten
from topicloom.context.window import MainWindow
from topicloom.errors import TopicLoomWarning
from topicloom.nodes.deps import Deps
from topicloom.nodes.facts import read_facts
from topicloom.nodes.thread_quotes import read_thread_quotes
from topicloom.nodes.workspace import Workspace
from topicloom.state.channels import TurnOptions
from topicloom.state.fence import fence_line
from topicloom.state.recall import Note, select_notes
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.sessions import SessionStore
from topicloom.texts import FilledText

_NO_OPTIONS = TurnOptions()


def lay_out_prompt(
    deps: Deps,
    kept: BaseStore | None,
    workspace: Workspace,
    session: Session,
    view: Sequence[StoredMessage],
    *,
    loop: Sequence[BaseMessage] = (),
    options: TurnOptions = _NO_OPTIONS,
) -> MainPrompt:
    """The main prompt of a session, with the messages in view and the `loop` of tools behind them.

    Notes behind what is in view are not shown. The graph's store has facts, and what other threads
    say.
    """
    store, window = workspace.store, deps.window
    last = view[-1].seq if view else session.count
    notes = [note for note in store.notes(session) if note.after <= last]
    if any(note.other_threads for note in notes):
        notes = read_thread_quotes(deps, kept, workspace, session, notes)
    headings = None
    if deps.settings.layout == "spec":
        headings = _write_headings(window, store, session, view, notes)
    return window.build_prompt(
        session,
        view,
        notes,
        store.fetcher(session),
        facts=show_instructions_and_facts(deps, kept, workspace, session, options.instructions),
        loop=loop,
        headings=headings,
        view_tokens=sum(workspace.sizes.between(session, session.view, last, window.layout)),
        callers_tools=options.tools,
    )


def show_instructions_and_facts(
    deps: Deps, kept: BaseStore | None, workspace: Workspace, session: Session, instructions: str
) -> str:
    """The caller's instructions for the turn, and the chosen facts as they stand in the prompt.

    "" if there is neither. A fact that is kept no more is not shown.
    """
    if not session.facts:
        return instructions
    known = read_facts(deps, kept, workspace, session)
    shown = [(day, known[key].text) for key, day in session.facts.items() if key in known]
    return "\n\n".join(filter(None, [instructions, format_facts(shown, session.language)]))


def _write_headings(
    window: MainWindow,
    store: SessionStore,
    session: Session,
    view: Sequence[StoredMessage],
    notes: Sequence[Note],
) -> dict[str, str]:
    """Name, file and brief of each topic that the spec's order shows.

    Briefs share what the quotes leave of the room for recall.
    """
    layout, language = window.layout, session.language
    newest = max((m.seq for m in view if m.role == "user"), default=0)
    shown = select_notes(notes, newest, layout.order)
    table, files = store.topic_table(session), store.log.topic_files
    topics = {t.topic: table[t.topic] for note in shown for t in note.topics if t.topic in table}
    fetch = store.fetcher(session)
    spare = window.recall - sum(layout.count_note(note, fetch, language) for note in shown)
    found: dict[str, str] = {}
    for topic in topics.values():
        name = fence_line(topic.name) + (f" ({files.name(topic)})" if files else "")
        brief = shorten(fence_line(topic.brief), spare // len(topics), window.counter.text)
        found[topic.id] = "\n".join(filter(None, [f"## {name}", brief]))
    return found


def note_left_out(turn: Turn, prompt: MainPrompt) -> Turn:
    """The turn, whose receipt says what of its own messages its prompt has no room for.

    Warns, once, if a user's message is cut.
    """
    new = [event for event in prompt.left_out if event not in turn.events]
    if new and f"m{turn.user}" in f"{new[0]} ".split():
        warnings.warn(
            FilledText("{new}: give it a larger window, or less at once", new=new[0]),
            TopicLoomWarning,
            stacklevel=2,
        )
    return turn.model_copy(update={"events": (*turn.events, *new)})
