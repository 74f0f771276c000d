"""reconcile: settle what others left, before a turn takes anything in.

| what was left | what becomes of it |
|---|---|
| messages that the application changed or removed in the channel | an edit of the conversation |
| turns of another writer that ended since this checkpoint | they come first |
| a fork, where a checkpoint is named | it knows the facts of that time |
| texts in the channel that were purged | the channel is written anew |
| messages, readings and calls of a turn that failed | it is repeated, or only closed |

In the usual turn there is none of this: `begin_turn` finds out, and the node does not run.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import get_runtime
from langgraph.types import Overwrite

from topicloom.effects import Step
from topicloom.errors import StorageUnavailableError, TopicLoomWarning
from topicloom.nodes.catch_up import Replay, report_taken, show_newest
from topicloom.nodes.deps import Deps
from topicloom.nodes.runs import current_run
from topicloom.nodes.step import (
    Node,
    Update,
    current_session,
    dump,
    dumped,
    graph_store,
    open_current,
    place_user,
    read_unfinished,
    turn_options,
)
from topicloom.nodes.workspace import Workspace
from topicloom.roles.brief import BRIEF, BriefRequest
from topicloom.roles.calls import ask_first
from topicloom.state.channels import SessionState
from topicloom.state.identity import select_unstored
from topicloom.state.persons import claim_session, find_person
from topicloom.state.receipt import Call
from topicloom.state.session import Session, Turn
from topicloom.state.superseding import NO_EDIT, Edit
from topicloom.state.topics import Topic
from topicloom.storage.sessions import SessionStore
from topicloom.storage.superseding import list_nameless, supersede
from topicloom.storage.writers import Tip, find_concurrent, read_tips, resume
from topicloom.texts import FilledText


def begin_turn(deps: Deps, state: SessionState) -> bool:
    """The entry of a turn; True if others left something for `reconcile` to settle."""
    # `update_state(..., as_node=START)` asks for the way outside of any run.
    if getattr(get_runtime(), "execution_info", None) is None:
        return True
    session = place_user(current_session(state))
    deps.waits.get(session.id).begin(waited=turn_options().answer)
    deps.spending.open(session, graph_store())
    try:
        left = _find_unsettled(deps, state)
        behind = find_concurrent(left.workspace.store, left.session, left.tips)
    except (OSError, StorageUnavailableError):  # the node looks once more, and has a second attempt
        return True
    other = left.session != left.known or left.hidden or left.failed or left.purged
    return bool(other or behind or left.edit != NO_EDIT)


def reconcile(deps: Deps, replay: Replay | None = None) -> Runnable[SessionState, Update]:
    """The node that settles what others left; `replay` makes their edits of a document."""

    def step(state: SessionState) -> Step[Update]:
        left = _find_unsettled(deps, state)
        store, known, messages = left.workspace.store, left.known, left.messages
        edited, edits = supersede(store, left.session, left.edit), left.edit.describe()
        session, events, update = _come_behind(store, edited, left.tips, state, replay)
        unfinished = read_unfinished(state, session)
        if unfinished and _lacks_its_end(unfinished, messages) and not edits:
            return dump(turn=unfinished.model_copy(update={"answer": False}))
        if left.purged:
            # A title may tell what was purged.
            session = session.model_copy(update={"purges": store.log.purges, "titles": {}})
        calls = list[Call]()
        if edits:
            session = yield from _name_topics(deps, store, session, calls)
        if events or edits or left.failed or left.purged or left.hidden:
            # The channel is as old as the session that the checkpoint holds.
            stored = left.workspace.recent(session, messages, session.count - known.count)
            if events:  # what another writer took out of view is not new
                stored = [*left.workspace.recent(edited, messages), *stored]
            shown = show_newest(store, session, deps.settings.visible_messages)
            update["messages"] = Overwrite([*shown, *select_unstored(messages, stored)])
            session = left.workspace.mark_shown(session, shown)
        before = left.begun.events if left.begun and not left.failed else ()
        turn = Turn(
            number=session.turn + 1,
            silent=bool(edits or left.failed or events),
            events=(*before, *edits, *events),
        )
        anew = {"readings": None, "calls": Overwrite(dumped(calls))}
        return {**dump(session, turn), **anew, **update}

    return Node(step, "reconcile")


@dataclass(frozen=True, slots=True)
class _Unsettled:
    """What others left behind a checkpoint."""

    known: Session
    """The session as the checkpoint has it."""
    session: Session
    """The same as one of the person whose it is by what is stored; a fork with its time."""
    workspace: Workspace
    tips: Sequence[Tip]
    """The tips of all branches, the oldest first."""
    edit: Edit
    """What the application changed in the channel."""
    messages: Sequence[AnyMessage]
    """The messages of the channel that are in view."""
    hidden: bool
    """True if these are not all of it."""
    begun: Turn | None
    """The turn that is not closed."""

    @property
    def failed(self) -> bool:
        """True if that turn had taken its message in."""
        return bool(self.begun and self.begun.first)

    @property
    def purged(self) -> bool:
        """True if something was purged since."""
        return self.workspace.store.log.purges != self.known.purges


def _find_unsettled(deps: Deps, state: SessionState) -> _Unsettled:
    known, workspace = open_current(deps.workspaces, state)
    tips = read_tips(workspace.store)
    owner = find_person(tip.session for tip in tips)
    session = _date_fork(known if owner is None else claim_session(known, owner), state)
    given, mode = state.get("messages", []), deps.settings.on_edit
    edit, messages = workspace.find_edits(
        session, given, mode, answer=turn_options().answer, cleared=current_run().cleared
    )
    begun = read_unfinished(state, known)
    hidden = messages is not given
    return _Unsettled(known, session, workspace, tips, edit, messages, hidden, begun)


def _lacks_its_end(begun: Turn, messages: Sequence[AnyMessage]) -> bool:
    """True if a turn failed behind its reply and is sent again: it only has to be closed."""
    last = messages[-1] if messages else None
    return bool(begun.first) and isinstance(last, AIMessage) and not last.tool_calls


def _date_fork(session: Session, state: SessionState) -> Session:
    """The session; where a fork begins with this run, with the time of the checkpoint."""
    before = state.get("session") or {}
    if not (before and session.user_id and session.branch != Session.model_validate(before).branch):
        return session
    return session.model_copy(update={"facts_at": (state.get("turn") or {}).get("started", "")})


def _come_behind(
    store: SessionStore,
    session: Session,
    tips: Sequence[Tip],
    state: SessionState,
    replay: Replay | None,
) -> tuple[Session, tuple[str, ...], Update]:
    """The session behind what other writers did since its checkpoint.

    Also returns what they did, in words for the receipt, and the update of the document by that.
    """
    run = current_run()
    session, taken, lost = resume(store, session, run.thread, run.began, tips)
    if not lost:
        return session, *report_taken(taken, state.get("document"), replay)
    warnings.warn(
        FilledText(
            "session {session!r} begins anew: its checkpointer knows nothing of the {lost}"
            " messages that are stored of it. One that outlives the program is"
            " local_checkpointer()",
            session=session.id,
            lost=lost,
        ),
        TopicLoomWarning,
        stacklevel=2,
    )
    return session, (f"begun anew: an earlier conversation of {lost} messages stays stored",), {}


def _name_topics(
    deps: Deps, store: SessionStore, session: Session, calls: list[Call]
) -> Step[Session]:
    """The session, whose topics have names and briefs again that were made of what is gone."""
    named, waits = list[Topic](), deps.waits.get(session.id)
    for topic in list_nameless(store, session):
        messages = store.topic_messages(session, topic)
        request = BriefRequest(session.id, topic, messages, session.language)
        writers = deps.roles.in_turn(BRIEF)
        brief = yield from ask_first("brief", writers, request, calls, topic.id, waits=waits)
        if brief is not None:
            named.append(topic.described(brief.name, brief.text))
    return store.save_topics(session, named)
