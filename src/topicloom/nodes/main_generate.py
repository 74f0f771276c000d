"""main_generate: the main model answers, or asks for more topics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from topicloom.context.layout import MainPrompt
from topicloom.effects import Step
from topicloom.errors import InputError, ReplyError
from topicloom.nodes.catch_up import take_later_edits
from topicloom.nodes.deps import Deps
from topicloom.nodes.main_prompt import lay_out_prompt, note_left_out
from topicloom.nodes.step import (
    Update,
    dump,
    dumped,
    emit,
    graph_store,
    load_readings,
    node,
    open_turn,
    publish_on_failure,
    turn_options,
)
from topicloom.nodes.workspace import Workspace
from topicloom.prompts.wording import get_wording
from topicloom.roles.brief import BRIEF, make_segment_request
from topicloom.roles.calls import ask_all
from topicloom.roles.models import get_usage
from topicloom.roles.reply_stream import Reply
from topicloom.roles.responder import RESPONDER, ReplyRequest
from topicloom.roles.servers import Server, read_refusal
from topicloom.state.channels import SessionState
from topicloom.state.identity import select_unstored
from topicloom.state.message_form import make_storable
from topicloom.state.messages import (
    find_edit_calls,
    find_search_request,
    put_before,
    says_something,
    strip_tool_calls,
)
from topicloom.state.recall import Reading
from topicloom.state.receipt import Call
from topicloom.state.safe_text import describe_error
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage, get_text
from topicloom.storage.sessions import SessionStore

_BEGINNING = 8
"""Messages among which the first one of the user is looked for."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A reply that is to be asked for, and the accounts that go with it."""

    store: SessionStore
    session: Session
    turn: Turn
    prompt: MainPrompt
    reply: Reply
    window: int
    """Tokens of the window that the prompt was made for."""


def _rank_sources(
    sources: Sequence[StoredMessage], readings: Sequence[Reading]
) -> tuple[list[StoredMessage], list[StoredMessage]]:
    """The quoted originals that readings of the turn name, the best first, and the others."""
    quotes = sorted((q for r in readings for q in r.quotes), key=lambda q: q.weight)
    weights = {q.id: q.weight for q in quotes}  # the most that any of them gives it
    named = [m for m in sources if m.id in weights]
    others = [m for m in sources if m.id not in weights]
    return sorted(named, key=lambda m: -weights[m.id]), others


def offers_search(deps: Deps, session: Session, turn: Turn) -> bool:
    """True if the main model may search once more; past the last round it has to answer."""
    free = session.topics and not turn_options().reply_form
    return bool(free) and len(turn.searches) < deps.settings.search_rounds


def calibrate(session: Session, message: AIMessage, estimated: int) -> Session:
    """The session, with its estimates of tokens calibrated by the provider's report of a reply."""
    usage = get_usage(message)
    correction = session.correction.observe(estimated, usage["input_tokens"] if usage else 0)
    return session.model_copy(update={"correction": correction})


def account_reply(
    deps: Deps,
    session: Session,
    model: str,
    sent: Sequence[BaseMessage],
    message: AIMessage,
    size: int,
) -> Call:
    """The cost of a reply, as reported, else as counted: `size` tokens were sent."""
    usage, counter = get_usage(message), deps.window.counter
    details = usage.get("input_token_details", {}) if usage else {}
    return Call(
        role="responder",
        model=model,
        input_tokens=usage["input_tokens"] if usage else size,
        output_tokens=usage["output_tokens"] if usage else counter.message(message),
        cached_tokens=details.get("cache_read") or 0,
        repeated=deps.meter.measure(session.id, "main", sent, counter.message),
    )


def _ask_to_go_on(prompt: MainPrompt, session: Session) -> list[BaseMessage]:
    """Messages behind the prompt that ask for the rest of a reply, if the caller has its beginning.

    They ask in words, because many providers answer a prompt that ends with an assistant's message
    with a new reply, or not at all.
    """
    begun = turn_options().begun
    if not begun or not isinstance(prompt.messages[-1], HumanMessage):
        return []
    return [AIMessage(begun), HumanMessage(get_wording(session.language).go_on)]


def main_generate(deps: Deps) -> Runnable[SessionState, Update]:
    """The node that has the main model reply, in the user's stream.

    Raises `ReplyError` if it fails or says nothing; if its server turns out to take less, writes
    nothing, and the turn goes back to the estimate. The user's message is kept all the same.
    """
    return node(_MainWindow(deps).reply, "main_generate")


@dataclass(frozen=True, slots=True)
class _MainWindow:
    """The main window at work."""

    deps: Deps

    def reply(self, state: SessionState) -> Step[Update]:
        """Lay the prompt out, pass the reply on, account for it."""
        session, turn, workspace = open_turn(self.deps.workspaces, state)
        written = yield from self._summarize_beginning(session, workspace.store)
        prepared = self._prepare(state, session, turn, workspace)
        reply = prepared.reply
        with publish_on_failure(prepared.store, prepared.session):
            try:
                message, seen = yield from reply.stream()
            except GraphBubbleUp:
                raise
            except Exception as error:  # noqa: BLE001 - providers raise anything
                server = self._server
                if server and not reply.held and server.learn(error, prepared.window):
                    return {"calls": dumped(written)}
                # What caused it repeats the prompt, maybe: it stands in no traceback.
                raise self._make_error(error, reply.request.messages) from None
        update = self._conclude(prepared, message, seen)
        return update | {"calls": [*dumped(written), *update["calls"]]}

    def _summarize_beginning(self, session: Session, store: SessionStore) -> Step[list[Call]]:
        """Have a model sum up what the first layout shows in summaries; extracts stand in."""
        roles = self.deps.roles
        beginning = self.deps.window.find_beginning(session, store.notes(session))
        if beginning is None or roles.get(BRIEF) is roles.stand_in(BRIEF):
            return []
        parts = beginning.list_unwritten(store.messages(session, session.view))
        requests = [make_segment_request(session.id, part, session.language) for part in parts]
        waits = self.deps.waits.of(session.id)
        answers = yield from ask_all("brief", roles[BRIEF], requests, waits=waits)
        for part, (brief, _) in zip(parts, answers, strict=True):
            if brief is not None:
                beginning.summaries.keep(part, brief.text)
        return [call for _, call in answers]

    def _prepare(
        self, state: SessionState, session: Session, turn: Turn, workspace: Workspace
    ) -> _Prepared:
        store, window, settings = workspace.store, self.deps.window, self.deps.settings
        store.log.renew()  # something may have been purged while the topics were read
        session, turn, messages = take_later_edits(
            self.deps, workspace, session, turn, state["messages"]
        )
        recent = workspace.recent(session, messages)
        taken = frozenset([m.source for m in recent] + [m.id for m in state["messages"]])
        loop = select_unstored(messages, recent)
        view = store.messages(session, session.view)
        prompt = lay_out_prompt(
            self.deps, graph_store(), workspace, session, view, loop=loop, options=turn_options()
        )
        turn = note_left_out(turn, prompt)
        may_search = offers_search(self.deps, session, turn)
        ranked, earlier = _rank_sources(prompt.sources, load_readings(state))
        request = ReplyRequest(
            session=session.id,
            messages=[*prompt.messages, *_ask_to_go_on(prompt, session)],
            tools=window.list_tools(session, search=may_search),
            query=turn.query,
            sources=[*ranked, *earlier, *reversed(view[:-1])],
            language=session.language,
            search=window.search.name if may_search else "",
            callers_tools=turn_options().tools,
            form=turn_options().reply_form,
            days=turn.searches[-1].days if turn.searches else None,
            ranked=len(ranked),
            first=self._find_first(store, session),
        )
        info = get_runtime().execution_info
        if info is not None and info.node_attempt > 1:
            emit("reply_restarted")
        reply = Reply(
            self.deps.roles[RESPONDER],
            request,
            hold=settings.hold_characters,
            seconds=settings.reply_deadline,
            taken=taken,
        )
        return _Prepared(store, session, turn, prompt, reply, window.size)

    def _find_first(self, store: SessionStore, session: Session) -> list[StoredMessage]:
        """The user's first message, where no model replies; it may have been purged."""
        if not self.deps.roles.by_index(RESPONDER):
            return []
        first = store.messages(session, 1, min(_BEGINNING, session.count))
        return [m for m in first if m.role == "user" and m.text.strip()][:1]

    def _conclude(self, prepared: _Prepared, message: AIMessage, seen: bool) -> Update:
        turn, reply, window = prepared.turn, prepared.reply, self.deps.window
        goes_on = len(reply.request.messages) > len(prepared.prompt.messages)
        try:
            message = make_storable(message)
        except InputError as error:
            raise ReplyError(
                "{model} gave a reply that cannot be stored: {error}. Your message is kept; send"
                " the next one",
                model=self._model,
                error=error,
                reason=f"a reply that cannot be kept: {error}",
            ) from None
        cut = reply.cut or (self._server.find_cut(message) if seen and self._server else "")
        if reply.broken:
            cut = cut or "a tool call whose arguments break off"
        if cut:  # no tool runs with half of its arguments
            message = strip_tool_calls(message)
        search, callers = reply.request.search, reply.request.callers_tools
        request = find_search_request(message, search) if search else None
        edits = window.edit is not None and bool(find_edit_calls(message, window.edit.name))
        if edits and seen:
            request = None  # an edit that the user has read about goes before a search
        if (request and seen) or not (request or window.tools or edits or callers):
            # What the user saw stands, even if it goes on to ask for more topics, and so do the
            # words of a reply that calls a tool which was not offered.
            message = strip_tool_calls(message)
        if not (says_something(message) or message.tool_calls or edits):
            why = f" ({cut})" if cut else ""
            raise ReplyError(
                "{model} gave an empty answer{why}. Your message is kept; send the next one",
                reason=f"an empty answer{why}",
                model=self._model,
                why=why,
            )
        turn = turn.model_copy(
            update={
                "request": request,
                "abandoned": turn.abandoned + (not seen),
                "sections": prepared.prompt.sections,
            }
        )
        if cut:
            # The reply is kept as it is, marked as not complete wherever it is stored.
            kwargs = {**message.additional_kwargs, "cut": cut}
            message = message.model_copy(update={"additional_kwargs": kwargs})
            event = f"the reply was cut off: {cut}"
            turn = turn.model_copy(update={"events": (*turn.events, event)})
        estimated = prepared.prompt.size + window.counter.tools(callers)
        estimated += window.count_tools(prepared.session, search=bool(search))
        update = dump(calibrate(prepared.session, message, estimated), turn)
        update["calls"] = dumped([self._make_call(prepared, message)])
        if seen:
            begun = turn_options().begun if goes_on else ""
            update["messages"] = [put_before(message, begun) if begun else message]
        return update

    def _make_call(self, prepared: _Prepared, message: AIMessage) -> Call:
        sent, size = prepared.reply.request.messages, prepared.prompt.size
        call = account_reply(self.deps, prepared.session, self._model, sent, message, size)
        seconds = round(time.monotonic() - prepared.reply.began, 4)
        remarks = self._server.remarks if self._server else ()
        return call.model_copy(update={"seconds": seconds, "remarks": remarks})

    @property
    def _server(self) -> Server | None:
        return getattr(self.deps.roles[RESPONDER], "server", None)

    @property
    def _model(self) -> str:
        return self.deps.roles[RESPONDER].model

    def _make_error(self, error: Exception, sent: Sequence[BaseMessage]) -> ReplyError:
        reason = describe_error(error, "\n".join(map(get_text, sent)))
        status, retry_after = read_refusal(error)
        return ReplyError(
            "{model} gave no reply ({why}). "
            "Your message is kept; send the next one, or run the turn again with invoke(None)",
            reason=reason,
            status=status,
            retry_after=retry_after,
            model=self._model,
            why=reason,
        )
