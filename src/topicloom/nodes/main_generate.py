"""main_generate: the main model answers, or asks for more topics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from topicloom.context.layout import MainPrompt
from topicloom.effects import Step
from topicloom.nodes.catch_up import take_later_edits
from topicloom.nodes.deps import Deps
from topicloom.nodes.main_prompt import lay_out_prompt, note_left_out
from topicloom.nodes.step import (
    Node,
    Update,
    dump,
    emit,
    graph_store,
    load_readings,
    open_turn,
    publish_on_failure,
    turn_options,
)
from topicloom.nodes.workspace import Workspace
from topicloom.prompts.wording import get_wording
from topicloom.roles.brief import BRIEF, make_segment_request
from topicloom.roles.calls import ask_all
from topicloom.roles.reply_stream import Reply
from topicloom.roles.responder import RESPONDER, ReplyRequest
from topicloom.state.channels import SessionState, TurnOptions
from topicloom.state.messages import put_before
from topicloom.state.recall import Reading
from topicloom.state.receipt import Call
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage
from topicloom.storage.sessions import SessionStore


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A reply that is to be asked for, and the accounts that go with it."""

    store: SessionStore
    session: Session
    turn: Turn
    prompt: MainPrompt
    reply: Reply
    begun: str
    """The beginning of the reply, if it is asked to go on."""
    window: int
    """Tokens of the window that the prompt was made for."""


def _rank_sources(
    sources: Sequence[StoredMessage], readings: Sequence[Reading]
) -> list[StoredMessage]:
    """The quoted originals: those that readings of the turn name, the best first, then others."""
    quotes = sorted((q for r in readings for q in r.quotes), key=lambda q: q.weight)
    weights = {q.id: q.weight for q in quotes}  # the most that any of them gives it
    return sorted(sources, key=lambda m: -weights.get(m.id, 0.0))


def offers_search(deps: Deps, session: Session, turn: Turn, options: TurnOptions) -> bool:
    """True if the main model may search once more; past the last round it has to answer."""
    free = session.topics and not options.reply_form
    return bool(free) and len(turn.searches) < deps.settings.search_rounds


def _ask_to_go_on(begun: str, session: Session) -> list[BaseMessage]:
    """Messages behind the prompt that ask for the rest of a reply, if the caller has its beginning.

    They ask in words, because many providers answer a prompt that ends with an assistant's message
    with a new reply, or not at all.
    """
    return [AIMessage(begun), HumanMessage(get_wording(session.language).go_on)] if begun else []


def main_generate(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that has the main model reply, in the user's stream.

    Raises `ReplyError` if it fails or says nothing, `LimitReachedError` if it may not be asked. If
    its server turns out to take less, it writes nothing, and the turn goes back to the estimate.
    The user's message is kept all the same.
    """
    return Node(_MainWindow(deps).reply, "main_generate")


@dataclass(frozen=True, slots=True)
class _MainWindow:
    """The main window at work."""

    deps: Deps

    @property
    def _by_model(self) -> bool:
        return not self.deps.roles.by_index(RESPONDER)

    def reply(self, state: SessionState) -> Step[Update]:
        """Lay the prompt out, pass the reply on, account for it."""
        session, turn, workspace = open_turn(self.deps.workspaces, state)
        with publish_on_failure(workspace.store, session):
            if self._by_model:
                self.deps.spending.check_reply(session, graph_store())
        written = yield from self._summarize_beginning(session, workspace.store)
        prepared = self._prepare(state, session, turn, workspace)
        reply = prepared.reply
        with publish_on_failure(prepared.store, prepared.session):
            try:
                message, seen = yield from reply.stream()
            except GraphBubbleUp:
                raise
            except Exception as error:  # noqa: BLE001 - providers raise anything
                if reply.learn(error, prepared.window):
                    return dump(calls=written)
                # What caused it repeats the prompt, maybe: it stands in no traceback.
                raise reply.make_error(error) from None
        return self._conclude(prepared, message, seen, written)

    def _summarize_beginning(self, session: Session, store: SessionStore) -> Step[list[Call]]:
        """Have a model sum up what the first layout shows in summaries; extracts stand in."""
        roles, window = self.deps.roles, self.deps.window
        if window.beginning is None or roles.get(BRIEF) is roles.stand_in(BRIEF):
            return []
        beginning = window.find_beginning(session, store.notes(session))
        if beginning is None:
            return []
        parts = beginning.list_unwritten(store.messages(session, session.view))
        requests = [make_segment_request(session.id, part, session.language) for part in parts]
        waits = self.deps.waits.get(session.id)
        answers = yield from ask_all("brief", roles[BRIEF], requests, waits=waits)
        for part, (brief, _) in zip(parts, answers, strict=True):
            if brief is not None:
                beginning.summaries.keep(part, brief.text)
        return [call for _, call in answers]

    def _prepare(
        self, state: SessionState, session: Session, turn: Turn, workspace: Workspace
    ) -> _Prepared:
        store, window, settings = workspace.store, self.deps.window, self.deps.settings
        options, responder = turn_options(), self.deps.roles[RESPONDER]
        store.renew()  # something may have been purged while the topics were read
        session, turn, messages = take_later_edits(
            self.deps, workspace, session, turn, state["messages"]
        )
        recent, loop = workspace.compare(session, messages)
        taken = frozenset([m.source for m in recent] + [m.id for m in state["messages"]])
        view = store.messages(session, session.view)
        prompt = lay_out_prompt(
            self.deps, graph_store(), workspace, session, view, loop=loop, options=options
        )
        turn = note_left_out(turn, prompt)
        may_search = offers_search(self.deps, session, turn, options)
        asked = prompt.messages
        begun = options.begun if isinstance(asked[-1], HumanMessage) else ""
        recalled = _rank_sources(prompt.sources, load_readings(state))
        sources = [*recalled, *reversed(view[:-1])]
        request = ReplyRequest(
            session=session.id,
            messages=[*asked, *_ask_to_go_on(begun, session)],
            tools=window.list_tools(session, search=may_search),
            query=turn.query,
            sources=sources,
            language=session.language,
            search=window.search.name if may_search else "",
            callers_tools=options.tools,
            form=options.reply_form,
            tokens=options.reply_tokens,
            stop=options.stop,
            days=turn.searches[-1].days if turn.searches else None,
            topics=self._name_topics(store, session, sources),
        )
        info = get_runtime().execution_info
        if info is not None and info.node_attempt > 1:
            emit("reply_restarted")
        reply = Reply(
            responder,
            request,
            hold=settings.hold_characters,
            seconds=settings.reply_deadline,
            taken=taken,
        )
        return _Prepared(store, session, turn, prompt, reply, begun, window.size)

    def _name_topics(
        self, store: SessionStore, session: Session, messages: Sequence[StoredMessage]
    ) -> dict[int, str]:
        """The names of the messages' topics by number, where no model replies."""
        if self._by_model:
            return {}
        ranges, table = store.ranges(session), store.topic_table(session)
        owners = {m.seq: table.get(ranges.topic_of(m.seq) or "") for m in messages}
        return {seq: topic.name for seq, topic in owners.items() if topic}

    def _conclude(
        self, prepared: _Prepared, answer: AIMessage, seen: bool, written: Sequence[Call]
    ) -> Update:
        session, turn, reply = prepared.session, prepared.turn, prepared.reply
        deps, window = self.deps, self.deps.window
        message, request = reply.settle(
            answer,
            seen=seen,
            edit=window.edit.name if window.edit else "",
            runs_tools=bool(window.tools or reply.request.callers_tools),
        )
        cut = [f"the reply was cut off: {reply.cut}"] if reply.cut else ()
        turn = turn.model_copy(
            update={
                "request": request,
                "abandoned": turn.abandoned + (not seen),
                "sections": prepared.prompt.sections,
                "events": (*turn.events, *cut),
            }
        )
        session, call = reply.account(deps.meter, window, session, prepared.prompt, message)
        deps.spending.note(session.id, call)
        update = dump(session, turn, calls=[*written, call])
        if seen:
            begun = prepared.begun
            update["messages"] = [put_before(message, begun) if begun else message]
        return update
