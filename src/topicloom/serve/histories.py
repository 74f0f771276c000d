"""Clients that send the whole conversation each time, over sessions that know it.

Each turn is marked with a digest of the conversation that the client had when it asked. So the
checkpoints themselves say which histories are known: nothing has to be kept beside them, and what
is deleted is forgotten with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, cast
from weakref import WeakValueDictionary

from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.types import StateSnapshot

from topicloom.errors import InputError, ReplyError
from topicloom.graph.stored import Graph, find_deps
from topicloom.nodes.runs import name_thread
from topicloom.roles.responder import RESPONDER
from topicloom.serve.wire import ChatRequest, describe_said, digest_histories
from topicloom.state.channels import TurnOptions
from topicloom.state.receipt import Receipt
from topicloom.state.session import Session
from topicloom.state.stored_message import REMOVED, get_text
from topicloom.storage.sessions import SessionStore

_MARK, _FROM = "topicloom_history", "topicloom_from"
"""Keys in a checkpoint's metadata: the digest of all that came before its newest message, and that
of the history that the turn went on from."""
_BESIDE = ".beside"
"""Ends the name of a chat's second session, for all that does not go on from the first: clients
also ask for a title or for tags under the chat's id, and that is no part of what was said."""
_LOOK_BACK = 32
"""Checkpoints in which a history is looked for whose beginning the client left out."""


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a turn."""

    reply: AIMessage
    receipt: Receipt


class Conversations:
    """The sessions of a graph; the requests of one are answered one after the other."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def answer(self, chat: ChatRequest) -> AsyncIterator[str | Answered]:
        """The pieces of the reply, then its end.

        A history that the session knows is gone on with from where it ended; what it does not
        know is recorded first.

        Raises:
            InputError: The model cannot be asked for the form that the reply is to have.
            TopicLoomError: As a turn of the graph.
        """
        responder = find_deps(self._graph).roles.get(RESPONDER)
        if chat.form and not getattr(responder, "takes_form", False):
            raise InputError(
                f"the model here takes no {' and no '.join(chat.form)}: only one of OpenAI's"
                " protocol does"
            )
        async with self._lines.setdefault(chat.session, asyncio.Lock()):
            digests = digest_histories(chat.messages)
            known, config = await self._find_place(chat, digests)
            thread = config["configurable"]["thread_id"]
            for end in _find_ends(chat.messages):
                if end > known:  # others answered these: they are kept as they are
                    await self._graph.ainvoke(
                        {"messages": chat.messages[known:end]},
                        _mark(config, digests, known, end - 1),
                        context=TurnOptions(answer=False),
                        durability="exit",
                    )
                    known, config = end, name_thread(thread)
            turn = self._take_turn(chat, known, _mark(config, digests, known, -1))
            async with aclosing(turn) as parts:
                async for part in parts:
                    yield part

    async def _take_turn(
        self, chat: ChatRequest, known: int, config: RunnableConfig
    ) -> AsyncGenerator[str | Answered]:
        state: dict[str, Any] = {}
        receipt: dict[str, Any] = {}
        said = False
        stream: Any = self._graph.astream(
            {"messages": chat.messages[known:]},
            config,
            context=TurnOptions(
                instructions=chat.instructions, tools=chat.tools, reply_form=chat.form
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
                    case "custom", {"type": "reply_restarted"} if said and chat.stream:
                        raise ReplyError("the reply broke off; ask for it again")
                    case "messages", (AIMessageChunk() as chunk, {"langgraph_node": node}):
                        if node == "main_generate" and (text := get_text(chunk)):
                            said = True
                            yield text
        reply = state["messages"][-1]
        if not isinstance(reply, AIMessage):
            raise InputError("there is nothing to answer: no user's message comes before")
        yield Answered(reply, Receipt.model_validate(receipt))

    async def _find_place(
        self, chat: ChatRequest, digests: Sequence[str]
    ) -> tuple[int, RunnableConfig]:
        """How many of the messages are known, and the checkpoint to go on from with the others."""
        thread, ends = name_thread(chat.session), _find_ends(chat.messages)
        newest = await self._graph.aget_state(thread)
        if newest.created_at is None:
            return 0, thread
        if not (ends or chat.whole):
            if (newest.metadata or {}).get(_MARK) != digests[-1]:
                return 0, thread
            return 0, newest.parent_config or await self._begin_anew(thread)
        known, place = await self._find_known(newest, chat.messages, digests)
        if place is not None and not chat.whole and await self._goes_on_from(place, newest):
            # What the user said in other chats meanwhile stays in view; what is said anew does not.
            found = self._graph.aget_state_history(thread, filter={_FROM: digests[known]})
            if replaced := await anext(found, None):
                return known, replaced.parent_config or thread
            return known, thread
        if place is None and ends:
            known, place = ends[-1], await self._find_end(chat, ends[-1])
        if place is not None:
            here, there = (state.config["configurable"] for state in (newest, place))
            is_newest = here["checkpoint_id"] == there["checkpoint_id"]
            return known, thread if is_newest else place.config
        if not chat.whole:
            return 0, thread
        if chat.session.endswith(_BESIDE):
            return 0, await self._begin_anew(thread)
        return await self._find_place(replace(chat, session=chat.session + _BESIDE), digests)

    async def _find_known(
        self, newest: StateSnapshot, messages: Sequence[AnyMessage], digests: Sequence[str]
    ) -> tuple[int, StateSnapshot | None]:
        """The length of the longest history that is known, and the checkpoint at its end."""
        ends, place = _find_ends(messages), None
        # What begins with an unknown history is not known either.
        low, high, probe = -1, len(ends), len(ends) - 1
        while probe > low:
            last = ends[probe] - 1
            found = await self._find_checkpoint(newest, messages[last], digests[last])
            low, place, high = (probe, found, high) if found else (low, place, probe)
            probe = (low + high) // 2
        return ends[low] if place else 0, place

    async def _find_checkpoint(
        self, newest: StateSnapshot, said: AnyMessage, digest: str
    ) -> StateSnapshot | None:
        """The newest checkpoint behind a message, and all that came before it."""

        def fits(state: StateSnapshot) -> bool:
            marked = (state.metadata or {}).get(_MARK) == digest
            shown: list[AnyMessage] = state.values.get("messages", [])
            told = [*_tell(shown)][-1:]
            return marked and not state.next and _ends_alike(told, [said])

        if fits(newest):
            return newest
        thread = name_thread(newest.config["configurable"]["thread_id"])
        found = self._graph.aget_state_history(thread, filter={_MARK: digest})
        return await anext((state async for state in found if fits(state)), None)

    async def _find_end(self, chat: ChatRequest, end: int) -> StateSnapshot | None:
        """The newest checkpoint that ends as a history does whose beginning the client left out."""
        history = [said for said, _ in _tell(chat.messages[:end])]
        thread = name_thread(chat.session)
        stored = await self._open(chat.session)
        async for state in self._graph.aget_state_history(thread, limit=_LOOK_BACK):
            if state.next:
                continue
            told = await asyncio.to_thread(_read_told, stored, _read_session(state), len(history))
            known = any(get_text(reply) != REMOVED for reply, _ in told)  # or anything would fit
            if known and _ends_alike(told, history):
                return state
        return None

    async def _goes_on_from(self, place: StateSnapshot, newest: StateSnapshot) -> bool:
        """True if the newest conversation begins with that of a place, and is longer."""
        session, later = _read_session(place), _read_session(newest)
        stored = await self._open(session.id)
        refs = await asyncio.to_thread(stored.transcript_refs, later)
        return session.count < len(refs) and refs[session.count - 1] == session.transcript

    async def _open(self, session: str) -> SessionStore:
        workspaces = find_deps(self._graph).workspaces
        return (await asyncio.to_thread(workspaces.open, session, self._graph.store)).store

    async def _begin_anew(self, thread: RunnableConfig) -> RunnableConfig:
        """A checkpoint of the session at which nothing has been said yet."""
        config: RunnableConfig = {"configurable": {**thread["configurable"], "checkpoint_ns": ""}}
        saver = cast("BaseCheckpointSaver[Any]", self._graph.checkpointer)
        return await saver.aput(config, empty_checkpoint(), {"source": "fork", "step": -1}, {})


def _mark(config: RunnableConfig, digests: Sequence[str], first: int, last: int) -> RunnableConfig:
    """A turn's configuration, with the histories that it goes on from and that it answers."""
    return {**config, "metadata": {_FROM: digests[first], _MARK: digests[last]}}


def _read_session(state: StateSnapshot) -> Session:
    known = state.values.get("session") or {"id": state.config["configurable"]["thread_id"]}
    return Session.model_validate(known)


def _tell(shown: Iterable[AnyMessage]) -> Iterator[tuple[AnyMessage, AnyMessage]]:
    """Each message as a client may have it, once or twice the same.

    Of a loop of tools that is the reply: its end, and with what a stream told before calls.
    """
    for by_user, group in groupby(shown, lambda m: isinstance(m, HumanMessage)):
        said = list(group)
        if by_user:
            yield from zip(said, said, strict=True)
        else:
            text = "".join(get_text(m) for m in said if isinstance(m, AIMessage))
            yield said[-1], said[-1].model_copy(update={"content": text})


def _read_told(
    stored: SessionStore, session: Session, count: int
) -> list[tuple[AnyMessage, AnyMessage]]:
    """So many of the newest messages as a client may have them, or all if there are fewer."""
    read = count
    while True:
        said = stored.messages(session, max(1, session.count - read))
        told = list(_tell(m.message for m in said))
        if len(told) > count or read >= session.count:  # the first may be cut
            return told[-count:]
        read *= 2


def _ends_alike(told: Sequence[tuple[AnyMessage, AnyMessage]], said: Sequence[AnyMessage]) -> bool:
    """True if a client that was told so much sends it again."""
    return len(told) == len(said) and all(
        any(_is_same(reply, again) for reply in replies)
        for replies, again in zip(told, said, strict=True)
    )


def _find_ends(messages: Sequence[AnyMessage]) -> list[int]:
    """The lengths of the histories that end with a reply."""
    return [n for n, message in enumerate(messages, 1) if isinstance(message, AIMessage)]


def _is_same(stored: AnyMessage, said: AnyMessage) -> bool:
    """True if a client sends a stored message again; it may not know that it was purged."""
    return get_text(stored) == REMOVED or describe_said(stored) == describe_said(said)
