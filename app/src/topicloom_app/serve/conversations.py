"""Turns of clients, whatever they send and however they are asked: one internal turn for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast
from uuid import uuid4
from weakref import WeakValueDictionary

from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import StateSnapshot

from topicloom import RESPONDER, InputError, Receipt, ReplyError, TurnOptions
from topicloom.hosting import Graph, find_deps, get_text, name_thread
from topicloom_app.serve.histories import (
    SIDE_SUFFIX,
    HistoryFinder,
    Start,
    digest_turn,
    mark,
    was_complete,
)
from topicloom_app.serve.sent_messages import find_ends, is_part
from topicloom_app.serve.turns import Answered, AnswerReference, Part, TurnRequest


def get_now() -> datetime:
    """Now, as LangGraph dates checkpoints."""
    return datetime.now(UTC)


class Conversations:
    """The sessions of a graph; the requests of one are answered one after the other."""

    def __init__(self, graph: Graph, now: Callable[[], datetime]) -> None:
        """Over a graph; `now` tells when a request comes, by the clock of the checkpoints."""
        self.graph, self._now, self._histories = graph, now, HistoryFinder(graph)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def hold(self, session: str) -> asyncio.Lock:
        """The lock by which the turns of a session, and changes of it, wait for each other."""
        return self._locks.setdefault(session, asyncio.Lock())

    async def answer(self, turn: TurnRequest) -> AsyncGenerator[Part]:
        """The pieces of the reply, then its end.

        The turn continues from where the known part of the history ended. Messages that the session
        does not know are recorded first.

        Raises:
            InputError: The model cannot be asked for the form that the reply is to have.
            UnknownResponseError: The turn goes on from an answer that is not there.
            TopicLoomError: As a turn of the graph.
        """
        came = self._now()
        responder = find_deps(self.graph).roles.get(RESPONDER)
        if turn.form and not getattr(responder, "takes_form", False):
            raise InputError(
                f"the model here takes no {' and no '.join(turn.form)}: only one of OpenAI's"
                " protocol does"
            )
        before, turn = await self._look_up(turn)
        if turn.recorded:
            parts = self._answer_recorded(turn, before, came)
        else:
            parts = self._answer_unrecorded(turn)
        async with aclosing(parts) as said:
            async for part in said:
                yield part

    async def read_answer(self, owner: str, id_: str) -> tuple[Answered, datetime]:
        """An answer that was given to an owner, by its id, and when it was.

        Raises:
            UnknownResponseError: It is not there, or somebody else's.
        """
        return await self._histories.read_answer(owner, id_)

    async def find_known_answer(self, turn: TurnRequest) -> str:
        """The id of the newest answer in a turn's history that is kept.

        Raises:
            InputError: None is.
        """
        before, turn = await self._look_up(turn)
        if before is not None and len(turn.messages) == 1:
            return turn.previous
        return await self._histories.find_known_answer(turn, digest_turn(before, turn))

    def count_tokens(self, turn: TurnRequest) -> int:
        """Tokens of what a turn asks, as its client sent it, by the counter of the main model."""
        counter = find_deps(self.graph).window.counter
        sent = [SystemMessage(turn.instructions), *turn.messages, AIMessage(turn.begun)]
        given = [m for m in sent if not isinstance(m, AnswerReference) and m.content]
        return sum(map(counter.message, given)) + counter.tools(turn.tools)

    async def _look_up(self, turn: TurnRequest) -> tuple[StateSnapshot | None, TurnRequest]:
        """The place behind the answer that a turn goes on from, and the turn with all that its
        client only names."""
        if turn.previous and not turn.recorded:
            raise InputError(
                "store: false keeps nothing and cannot continue from a stored reply: leave out"
                " previous_response_id and send the whole conversation"
            )
        before = None
        if turn.previous:
            session, before = await self._histories.find_answer(turn, turn.previous)
            turn = replace(turn, session=session, complete=was_complete(before))
        messages: list[AnyMessage] = []
        for said in turn.messages:
            if isinstance(said, AnswerReference):
                reply = await self._read_reference(turn, said)
                if messages and is_part(messages[-1], reply):
                    messages.pop()
                messages.append(reply)
            elif not (messages and is_part(said, messages[-1])):
                messages.append(said)
        return before, replace(turn, messages=messages)

    async def _read_reference(self, turn: TurnRequest, reference: AnswerReference) -> AnyMessage:
        _, place = await self._histories.find_answer(turn, reference.id)
        return cast("AnyMessage", place.values["messages"][-1])

    async def _answer_recorded(
        self, turn: TurnRequest, before: StateSnapshot | None, came: datetime
    ) -> AsyncGenerator[Part]:
        """Answer in the session, or beside it if what is asked is no part of what was said."""
        digests = digest_turn(before, turn)
        for session in (turn.session, turn.session + SIDE_SUFFIX):
            there = replace(
                turn, session=session, complete=turn.complete or session != turn.session
            )
            if session != turn.session:  # no person says what a client asks for itself
                there = replace(there, user_id="", scope="")
            async with self.hold(session):
                start = await self._histories.find_start(there, digests, before, came)
                if start is None:
                    continue
                parts = _answer_from(self.graph, there, digests, start)
                async with aclosing(parts) as said:
                    async for part in said:
                        yield part
                return

    async def _answer_unrecorded(self, turn: TurnRequest) -> AsyncGenerator[Part]:
        """Answer in a session of its own, which is nobody's, and of which nothing is stored."""
        turn = replace(turn, session=f"unrecorded-{uuid4().hex}", user_id="", scope="")
        graph = self.graph.copy({"checkpointer": InMemorySaver()})
        with find_deps(graph).workspaces.keep_in_memory(turn.session):
            start = Start(name_thread(turn.session))
            parts = _answer_from(graph, turn, digest_turn(None, turn), start)
            async with aclosing(parts) as said:
                async for part in said:
                    yield part


async def _answer_from(
    graph: Graph, turn: TurnRequest, digests: Sequence[str], start: Start
) -> AsyncGenerator[Part]:
    """Record what is unknown of a history, then answer its newest message."""
    known, config = start.known, start.config
    messages = cast("Sequence[AnyMessage]", turn.messages)
    for end in find_ends(messages):
        if end > known:  # others answered these: they are kept as they are
            await graph.ainvoke(
                {"messages": messages[known:end]},
                mark(config, digests, known, end - 1),
                context=TurnOptions(
                    answer=False,
                    user_id=turn.user_id,
                    scope=turn.scope,
                    timezone=turn.timezone,
                    usual_timezone=turn.usual_timezone,
                    account=turn.owner,
                ),
                durability="exit",
            )
            known, config = end, name_thread(turn.session)
    parts = _take_turn(graph, turn, known, mark(config, digests, known, -1, turn))
    async with aclosing(parts) as said:
        async for part in said:
            yield part


async def _take_turn(
    graph: Graph, turn: TurnRequest, known: int, config: RunnableConfig
) -> AsyncGenerator[Part]:
    state: dict[str, Any] = {}
    receipt: dict[str, Any] = {}
    said = False
    stream: Any = graph.astream(
        {"messages": turn.messages[known:]},
        config,
        context=TurnOptions(
            user_id=turn.user_id,
            scope=turn.scope,
            instructions=turn.instructions,
            tools=turn.tools,
            reply_form=turn.form,
            reply_tokens=turn.tokens,
            timezone=turn.timezone,
            usual_timezone=turn.usual_timezone,
            account=turn.owner,
            stop=turn.stop,
            begun=turn.begun,
        ),
        stream_mode=["messages", "custom", "values"],
        durability="exit",
    )
    async with aclosing(stream) as parts:
        async for kind, data in parts:
            match kind, data:
                case "values", _:
                    state = data
                case "custom", {"type": "receipt"}:
                    receipt = data["receipt"]
                case "custom", {"type": "reply_restarted"} if said and turn.stream:
                    raise ReplyError("the reply broke off", reason="the reply broke off")
                case "messages", (AIMessageChunk() as chunk, {"langgraph_node": node}):
                    if node == "main_generate" and (text := get_text(chunk)):
                        said = True
                        yield text
    reply = state["messages"][-1]
    if not isinstance(reply, AIMessage):
        raise InputError("there is nothing to answer: there is no user's message before it")
    yield Answered(reply, Receipt.model_validate(receipt), turn)
