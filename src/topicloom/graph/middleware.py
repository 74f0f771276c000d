"""Endless memory for agents: the steps of a session's turn around those of `create_agent`.

What comes before the reply is the same graph as in a session (`wire_memory`), run by the hooks
`before_agent` and `before_model`; the agent's own model is sent the main window in the place of
`messages`, of which none is ever removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, NotRequired, Unpack, cast

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage
from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Command, Overwrite

from topicloom.effects import Step, both, either
from topicloom.errors import ConfigurationError, NoNewMessageError
from topicloom.extras import name_install
from topicloom.graph.agent_state import find_loop, find_run, find_searches, read_turn, take_over
from topicloom.graph.deps import DEFAULT_WINDOW, make_deps
from topicloom.graph.given import warn_of_lost, warn_of_part
from topicloom.graph.parts import GraphParts, MemoryOptions
from topicloom.graph.receipts import ReceiptStream
from topicloom.graph.session import trace_steps, wire_memory
from topicloom.nodes.activate_topic import ACTIVATE_TOPIC, ActivateTopic, make_tool
from topicloom.nodes.catch_up import take_later_edits
from topicloom.nodes.finalize import finalize
from topicloom.nodes.main_generate import offers_search
from topicloom.nodes.main_prompt import lay_out_prompt, note_left_out
from topicloom.nodes.runs import Run
from topicloom.nodes.step import (
    Update,
    dump,
    dumped,
    graph_store,
    open_workspace,
    publish_on_failure,
    turn_options,
)
from topicloom.nodes.workspace import Workspace
from topicloom.prompts.wording import get_wording
from topicloom.roles.models import find_provider, get_model_name
from topicloom.roles.reply_account import account_reply
from topicloom.settings import Settings
from topicloom.state.identity import mark_seen
from topicloom.state.limits import REPLY
from topicloom.state.message_form import make_result_storable, make_storable
from topicloom.state.messages import find_search_request
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import REMOVED, get_text

try:
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, hook_config
    from langchain.agents.middleware.types import ExtendedModelResponse, PrivateStateAttr
    from langchain.tools import ToolRuntime
    from langgraph.prebuilt.tool_node import ToolCallRequest
except ImportError as error:
    raise ConfigurationError(
        "TopicMiddleware is for agents of the package langchain, which is missing: {install}",
        install=name_install("providers"),
    ) from error

_ALL = 2**53
"""More messages than there are."""

_DURABILITY = "__pregel_durability"
"""Where LangGraph hands on how an agent's checkpoints are written. A graph without checkpoints
fails where it is handed "sync" (1.2.22), and `invoke(durability=...)` warns there, so that this is
set instead. `tests/graph/test_what_langgraph_is_like.py` fails when either changes."""

Handler = Callable[[ModelRequest[Any]], Any]


class AgentTopicState(AgentState[Any]):
    """What is kept of the session in the agent's checkpoints."""

    topicloom: NotRequired[Annotated[dict[str, Any], PrivateStateAttr]]


class TopicMiddleware(AgentMiddleware[AgentTopicState, Any, Any]):
    """Endless memory for an agent of LangChain's `create_agent`.

    Older messages move into topics, which are read before every turn; what they hand over is quoted
    in the prompt of the agent's own model. The state's `messages` stay whole.

        create_agent(model, tools, middleware=[TopicMiddleware(cheap_model="openai:gpt-5-nano")])

    It comes first in the list: before what caches prompts, and before what adds to them.
    """

    state_schema = AgentTopicState

    def __init__(self, *, name: str = "TopicMiddleware", **options: Unpack[MemoryOptions]) -> None:
        """As `build_session_graph` has it, but for these.

        Args:
            name: Its name in the agent. deepagents puts what is called `SummarizationMiddleware`
                into the place of its own.
            options: See `MemoryOptions`. The `model` splits, the cheap one if not given; the
                agent's own model replies. Without a `window`, the settings have 32,000 tokens. The
                storage `"store"` is the store of the agent.

        Raises:
            ConfigurationError: A model cannot be opened, or a setting cannot be used.
        """
        parts = GraphParts(**options)
        settings = parts.settings or Settings()
        cheap = parts.cheap_model or settings.cheap_model
        own = {
            # The agent's own model is not known yet when its prompt is planned.
            "window": settings.window or DEFAULT_WINDOW,
            "beginning": settings.beginning or "whole",
            "visible_messages": _ALL,
        }
        self.deps = make_deps(
            replace(
                parts,
                model=parts.model or settings.model or cheap,
                cheap_model=cheap,
                settings=settings.model_copy(update=own),
            )
        )
        graph = wire_memory(self.deps, parts.archive_index).compile(checkpointer=False)
        self._memory = graph.with_config(configurable={_DURABILITY: "async"})
        self._finalize = finalize(self.deps)
        self._name = name
        self.transformers, self.trace_policy = (ReceiptStream,), trace_steps(settings)
        self.tools = [make_tool(ACTIVATE_TOPIC, ActivateTopic, _point_to_memory)]

    @property
    def name(self) -> str:
        """Its name in the agent."""
        return self._name

    def _before_agent(self, state: AgentTopicState, runtime: Runtime[Any]) -> Step[Update | None]:
        """Take in what is new, and recall what it needs."""
        try:
            update = yield from self._perform(self._memory, state)
            update["topicloom"]["loop"] = []
            return update if turn_options().answer else {**update, "jump_to": "end"}
        except NoNewMessageError:
            return None  # the agent was called for something else

    def _before_model(self, state: AgentTopicState, runtime: Runtime[Any]) -> Step[Update | None]:
        """Make the searches that the model called for."""
        update: Update | None = None
        for call in find_searches(state["messages"]):
            known = (update or cast("Update", state)).get("topicloom")
            if known is None:
                return None
            session, turn = read_turn(known)
            if not offers_search(self.deps, session, turn, turn_options()):
                return update
            asked = find_search_request(AIMessage("", tool_calls=[call]), ACTIVATE_TOPIC)
            turn = turn.model_copy(update={"request": asked})
            given = {**state, "topicloom": {**known, **dump(turn=turn)}}
            update = yield from self._perform(self._memory, cast("AgentTopicState", given))
        return update

    def _after_agent(self, state: AgentTopicState, runtime: Runtime[Any]) -> Step[Update | None]:
        """Keep the replies, and write the receipt."""
        if (known := state.get("topicloom")) is None:
            return None
        session, turn = read_turn(known)
        if turn.number <= session.turn:
            return None
        shown = {m.id for m in state["messages"]}
        if lost := [id_ for id_ in known.get("loop") or () if id_ and id_ not in shown]:
            warn_of_lost(len(lost))
        return (yield from self._perform(self._finalize, state))

    def _perform(self, work: Runnable[Any, Update], state: AgentTopicState) -> Step[Update]:
        """Have a part of the turn done; the update of the agent's state by that."""
        known, before, messages = take_over(state)
        run, fork = find_run(known)
        if not known and ":" in run.namespace:  # the name of a task, which is another every time
            warn_of_part(messages)
        given = {"readings": [], "calls": [], **known, "messages": messages}
        invoke, ainvoke = partial(work.invoke, given), partial(work.ainvoke, given)
        with self._tell_failure(known):
            done = yield from either(invoke, ainvoke, run.inside())
        own_state: Update = {
            key: done[key] or [] for key in ("session", "turn", "readings", "calls")
        }
        own_state |= {"fork": fork, "seen": known.get("seen"), "loop": known.get("loop")}
        shown, whole = done["messages"], [*before, *messages]
        ended = work is self._finalize
        if isinstance(shown, Overwrite) or not (ended or shown == messages):
            own = {m.id: m for m in whole}
            # A session that knows from where on its channel shows all has written it anew, whole.
            rest = [] if own_state["session"].get("shown") else before
            new = shown.value if isinstance(shown, Overwrite) else [*rest, *shown]
            whole = [m if get_text(m) == REMOVED else own.get(m.id, m) for m in new]
        elif before:  # the channel shows as much as it did, and what came behind it
            shown_since = state["topicloom"]["session"].get("shown", 0)
            own_state["session"] = own_state["session"] | {"shown": shown_since}
        changed = {"messages": shown} if ended and shown else Update()
        if ended:
            own_state["seen"] = mark_seen(whole)
        if whole != state["messages"]:
            changed = {"messages": Overwrite(whole)}
        return {"topicloom": own_state, **changed}

    def _wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> Step[Any]:
        """Have the agent's model reply to the main window."""
        known = cast("AgentTopicState", request.state).get("topicloom")
        if known is None:
            return (yield from either(partial(handler, request), partial(handler, request)))
        with self._tell_failure(known):
            return (yield from self._reply(request, handler, known))

    def _reply(
        self, request: ModelRequest[Any], handler: Handler, known: dict[str, Any]
    ) -> Step[Any]:
        state = cast("AgentTopicState", request.state)
        deps, counter, options = self.deps, self.deps.window.counter, turn_options()
        run, fork = find_run(known)
        session, turn, workspace = self._take_edits(state, run)
        view = workspace.store.messages(session, session.view)
        loop = find_loop(request.messages, view[-1].source if view else None)
        offered = offers_search(deps, session, turn, options)
        others = [t for t in request.tools if getattr(t, "name", None) != ACTIVATE_TOPIC]
        head = [request.system_message] if request.system_message else []
        session = session.model_copy(
            update={"fixed": sum(map(counter.message, head)) + counter.tools(others)}
        )
        prompt = lay_out_prompt(
            deps, graph_store(), workspace, session, view, loop=loop, options=options
        )
        turn = note_left_out(turn, prompt)
        ours = [prompt.instructions] if prompt.instructions else []
        asked = request.override(
            messages=cast("list[AnyMessage]", prompt.said),
            system_message=_join([*head, *ours]),
            tools=request.tools if offered else others,
        )
        began = time.monotonic()
        with publish_on_failure(workspace.store, session):
            deps.spending.check_price(REPLY, get_model_name(request.model))
            deps.spending.check_reply(session, graph_store())
            response = yield from either(partial(handler, asked), partial(handler, asked))
        response = replace(response, result=[make_storable(m) for m in response.result])
        message = next(m for m in response.result if isinstance(m, AIMessage))
        size = prompt.size + session.fixed + (counter.tools(self.tools) if offered else 0)
        model, sent = get_model_name(request.model), [*head, *prompt.messages]
        deps.telemetry.providers.setdefault(model, find_provider(request.model))
        session, call = account_reply(
            deps.meter, counter, session, model, sent, message, size, began=began
        )
        deps.spending.note(session.id, call)
        turn, said = turn.model_copy(update={"sections": prompt.sections}), [*loop, message]
        own_state = {
            **known,
            **dump(session, turn),
            "calls": [*known["calls"], *dumped([call])],
            "fork": fork,
            "loop": [*dict.fromkeys([*(known.get("loop") or ()), *(m.id for m in said)])],
        }
        return ExtendedModelResponse(response, Command(update={"topicloom": own_state}))

    def _wrap_tool_call(self, request: ToolCallRequest, handler: Callable[..., Any]) -> Step[Any]:
        """Have what a tool gives in a form that the agent's checkpoints can hold."""
        with self._tell_failure(request.state.get("topicloom")):
            result = yield from either(partial(handler, request), partial(handler, request))
        return make_result_storable(request.tool_call["name"], result)

    @contextmanager
    def _tell_failure(self, known: Mapping[str, Any] | None) -> Iterator[None]:
        """Tell of a turn that an exception ends."""
        try:
            yield
        except (GraphBubbleUp, NoNewMessageError):
            raise
        except Exception as error:
            run, _ = find_run(known or {})
            steps = read_turn(known)[1].steps if known else ()
            began = min([run.began, *(step.began for step in steps)])
            self.deps.telemetry.report_failure(run.thread, began, error)
            raise

    def _take_edits(self, state: AgentTopicState, run: Run) -> tuple[Session, Turn, Workspace]:
        """The session behind what hooks of others edited since this turn was taken in."""
        known, _, messages = take_over(state)
        session, turn = read_turn(known)
        session = run.place(session)
        workspace = open_workspace(self.deps.workspaces, session)
        session, turn, _ = take_later_edits(self.deps, workspace, session, turn, messages)
        shown = state["topicloom"]["session"].get("shown", 0)
        return session.model_copy(update={"shown": shown}), turn, workspace

    before_agent, abefore_agent = both(_before_agent)
    for _hook in (before_agent, abefore_agent):
        hook_config(can_jump_to=["end"])(_hook)
    before_model, abefore_model = both(_before_model)
    wrap_model_call, awrap_model_call = both(_wrap_model_call)
    wrap_tool_call, awrap_tool_call = both(_wrap_tool_call)
    after_agent, aafter_agent = both(_after_agent)


def _point_to_memory(runtime: ToolRuntime[Any, Any], **arguments: object) -> str:
    known = runtime.state.get("topicloom")
    return get_wording(read_turn(known)[0].language if known else "en").searched_for


def _join(parts: Sequence[SystemMessage]) -> SystemMessage | None:
    """System messages as one; content blocks stay as they are, with what marks them for caches."""
    if len(parts) < 2:
        return parts[0] if parts else None
    first, second = parts
    if isinstance(first.content, str):
        return SystemMessage(f"{first.content}\n\n{get_text(second)}")
    return SystemMessage([*first.content, {"type": "text", "text": f"\n\n{get_text(second)}"}])
