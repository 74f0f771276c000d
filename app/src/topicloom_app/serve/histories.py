"""Finds where a client's history ends in the session that it belongs to.

Each turn's checkpoint is marked with a digest of the conversation that the client had when it
asked. So nothing is stored besides the checkpoints, and what is deleted with them is forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.types import StateSnapshot

from topicloom import InputError, Session, SessionStore
from topicloom.hosting import REMOVED, Graph, find_deps, get_text, name_thread, take_back
from topicloom_app.serve.sent_messages import are_sent_again, digest_histories, find_ends, list_sent
from topicloom_app.serve.side_calls import (
    Newest,
    is_side_call,
    is_side_call_about,
    is_side_call_behind,
    was_side_call,
)
from topicloom_app.serve.turns import (
    Answered,
    TurnRequest,
    UnknownResponseError,
    read_answer_id,
    write_answer_id,
)

_MARK, _FROM = "topicloom_history", "topicloom_from"
"""Keys in a checkpoint's metadata: the digest of all that came before its newest message, and that
of the history that the turn went on from."""
_ANSWER, _COMPLETE = "topicloom_answer", "topicloom_complete"
"""Keys for the name of a turn's answer, and for `TurnRequest.complete`."""
_MANNER, _STREAMED = "topicloom_manner", "topicloom_streamed"
"""Keys for how it was asked: `TurnRequest.manner` and `TurnRequest.stream`."""
_INSTRUCTED = "topicloom_instructed"
"""Key for whether it had instructions."""
_KEY = "topicloom_key"
"""Key for `TurnRequest.key`."""
_RESENT = 300.0
"""Seconds behind a reply in which the same message by itself is the same request: a client repeats
one that was cut off within seconds, a person wants another answer within minutes."""
_MODEL, _PREVIOUS = "topicloom_model", "topicloom_previous"
"""Keys for the model that was asked for, and for `TurnRequest.previous`."""
SIDE_SUFFIX = ".side"
"""Ends the name of a chat's second session. It holds requests that are no part of the conversation:
clients also ask for a title or for tags."""
_LOOK_BACK = 32
"""Checkpoints in which a history is looked for whose beginning the client left out."""


@dataclass(frozen=True, slots=True)
class Start:
    """The place that a turn goes on from."""

    config: RunnableConfig
    known: int = 0
    """How many of the client's messages have been said there."""


class HistoryFinder:
    """The places in the sessions of a graph, by what their turns are marked with."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find_answer(self, turn: TurnRequest, id_: str) -> tuple[str, StateSnapshot]:
        """The session of an answer that a turn names, and the newest checkpoint behind it.

        Raises:
            UnknownResponseError: It is not there, or somebody else's.
        """
        named, name = read_answer_id(id_)
        if not turn.owner or named.startswith(f"{turn.owner}."):
            for session in (named, named + SIDE_SUFFIX):
                found = self._graph.aget_state_history(name_thread(session), filter={_ANSWER: name})
                async for state in found:
                    if not state.next and _is_of(turn, state):
                        return session, state
        raise UnknownResponseError(id_)

    async def read_answer(self, owner: str, id_: str) -> tuple[Answered, datetime]:
        """An answer that was given, by its id, and when it was; raises as `find_answer`."""
        sought = TurnRequest(model="", messages=[], owner=owner)
        session, place = await self.find_answer(sought, id_)
        marks, stored = read_marks(place), await self._open(session)
        receipt = await asyncio.to_thread(stored.last_receipt, _read_session(place))
        turn = replace(
            sought,
            session=session,
            id=marks[_ANSWER],
            model=marks.get(_MODEL, ""),
            previous=marks.get(_PREVIOUS, ""),
        )
        if receipt is None or place.created_at is None:
            raise UnknownResponseError(id_)
        answered = Answered(place.values["messages"][-1], receipt, turn)
        return answered, datetime.fromisoformat(place.created_at)

    async def find_start(
        self,
        turn: TurnRequest,
        digests: Sequence[str],
        before: StateSnapshot | None,
        came: datetime,
    ) -> Start | None:
        """The place to go on from; None if what is asked is no part of what was said there."""
        thread = name_thread(turn.session)
        newest = await self._graph.aget_state(thread)
        if newest.created_at is None:
            return Start(thread)
        start = await self._find_place(turn, digests, before, came, newest)
        if start and start.config == thread and turn.complete:
            sent = cast("Sequence[AnyMessage]", turn.messages)[start.known :]
            said = [get_text(m) for m in sent if isinstance(m, HumanMessage)]
            stored = await self._open(turn.session)
            await asyncio.to_thread(take_back, stored, _read_session(newest), said)
        return start

    async def _find_place(
        self,
        turn: TurnRequest,
        digests: Sequence[str],
        before: StateSnapshot | None,
        came: datetime,
        newest: StateSnapshot,
    ) -> Start | None:
        thread, messages = name_thread(turn.session), cast("Sequence[AnyMessage]", turn.messages)
        if before is not None:
            return await self._go_on(turn, before, newest, digests[0])
        known, place = await self._find_known(newest, messages, digests)
        if place is None and (ends := find_ends(messages)):
            known, place = ends[-1], await self._find_end(turn.session, messages[: ends[-1]])
        last = await self._read_newest(turn, newest, came)
        said = get_text(messages[-1])
        if last and is_side_call_about(turn, said, last):
            return None
        if place is not None:
            behind = _is_same_place(place, newest) and len(messages) == known + 1
            asks = behind and isinstance(messages[-1], HumanMessage)
            if last and asks and is_side_call_behind(turn, last):
                return None
            start = await self._go_on(turn, place, newest, digests[known])
            return replace(start, known=known)
        alone = len(messages) == 1 and not _is_sent_again(turn, newest, came)
        begins = turn.complete and await self._has(thread, {_MARK: digests[1]})
        if last and not begins and is_side_call(turn, said, last):
            return None
        if begins and alone and not turn.named:
            return Start(thread)
        if turn.complete:
            return await self._find_beginning(turn, digests, begins)
        again = not alone and read_marks(newest).get(_MARK) == digests[-1]
        if len(messages) == 1 and (again or (last and was_side_call(turn, said, last))):
            return Start(newest.parent_config or await self._begin_anew(thread))
        return Start(thread)

    async def find_known_answer(self, turn: TurnRequest, digests: Sequence[str]) -> str:
        """The id of the newest answer in a turn's history that is known.

        Raises:
            InputError: None is.
        """
        newest = await self._graph.aget_state(name_thread(turn.session))
        place = None
        if newest.created_at is not None:
            said = cast("Sequence[AnyMessage]", turn.messages)
            _, place = await self._find_known(newest, said, digests)
        if place is None:
            raise InputError(
                "nothing of this conversation is kept here, so it cannot be made shorter: send"
                " store: true, or have this server record with --record"
            )
        return write_answer_id(turn.session, read_marks(place)[_ANSWER])

    async def _go_on(
        self, turn: TurnRequest, place: StateSnapshot, newest: StateSnapshot, digest: str
    ) -> Start:
        """The place to go on from behind a history that is known, of this digest."""
        thread = name_thread(turn.session)
        if not turn.complete and await self._goes_on_from(place, newest):
            # What the user said in other chats meanwhile stays in view; what is said anew does not.
            found = self._graph.aget_state_history(thread, filter={_FROM: digest})
            replaced = await anext(found, None)
            return Start((replaced and replaced.parent_config) or thread)
        return Start(thread if _is_same_place(place, newest) else place.config)

    async def _find_beginning(
        self, turn: TurnRequest, digests: Sequence[str], begins: bool
    ) -> Start | None:
        """The place before a chat's first message, for one that is edited or asked again.

        What was in the session before the chat stays in view. None if the history belongs to
        another conversation, with replies that were given elsewhere: it does not begin as the chat
        did, nor with a question of the chat's second session. A client that continues such a
        question is a person.
        """
        thread = name_thread(turn.session)
        if turn.session.endswith(SIDE_SUFFIX):
            return Start(await self._begin_anew(thread))
        if len(digests) > 2 and not begins:
            side = name_thread(turn.session + SIDE_SUFFIX)
            if not await self._has(side, {_MARK: digests[1], _COMPLETE: True}):
                return None
        begun = await anext(self._graph.aget_state_history(thread, filter={_FROM: ""}), None)
        if begun is None:
            return Start(thread)
        return Start(begun.parent_config or await self._begin_anew(thread))

    async def _has(self, thread: RunnableConfig, marks: dict[str, Any]) -> bool:
        found = self._graph.aget_state_history(thread, filter=marks)
        return await anext(found, None) is not None

    async def _read_newest(
        self, turn: TurnRequest, newest: StateSnapshot, came: datetime
    ) -> Newest | None:
        """The newest messages of a session; None for a second session, or if none was asked."""
        shown: list[AnyMessage] = newest.values.get("messages", [])
        asked = next((m for m in reversed(shown) if isinstance(m, HumanMessage)), None)
        if turn.session.endswith(SIDE_SUFFIX) or asked is None:
            return None
        # Of several questions, a client asks the next one when it has the answer to the first.
        side = await self._graph.aget_state(name_thread(turn.session + SIDE_SUFFIX))
        ended = max(filter(None, (newest.created_at, side.created_at)))
        marks = read_marks(newest)
        return Newest(
            asked=get_text(asked),
            replied=get_text(shown[-1]) if isinstance(shown[-1], AIMessage) else "",
            manner=marks.get(_MANNER, ""),
            streamed=bool(marks.get(_STREAMED)),
            instructed=bool(marks.get(_INSTRUCTED)),
            seconds=(came - datetime.fromisoformat(ended)).total_seconds(),
        )

    async def _find_known(
        self, newest: StateSnapshot, messages: Sequence[AnyMessage], digests: Sequence[str]
    ) -> tuple[int, StateSnapshot | None]:
        """The length of the longest history that is known, and the checkpoint at its end."""
        ends, place = find_ends(messages), None
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
            sent = [*list_sent(shown)][-1:]
            return marked and not state.next and are_sent_again(sent, [said])

        if fits(newest):
            return newest
        thread = name_thread(newest.config["configurable"]["thread_id"])
        found = self._graph.aget_state_history(thread, filter={_MARK: digest})
        return await anext((state async for state in found if fits(state)), None)

    async def _find_end(self, session: str, said: Sequence[AnyMessage]) -> StateSnapshot | None:
        """The newest checkpoint that ends as a history does whose beginning the client left out."""
        history = [m for m, _ in list_sent(said)]
        stored = await self._open(session)
        async for state in self._graph.aget_state_history(name_thread(session), limit=_LOOK_BACK):
            if state.next:
                continue
            sent = await asyncio.to_thread(_read_sent, stored, _read_session(state), len(history))
            known = any(get_text(reply) != REMOVED for reply, _ in sent)  # or anything would fit
            if known and are_sent_again(sent, history):
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


def _is_of(turn: TurnRequest, state: StateSnapshot) -> bool:
    """True if a place belongs to the user that a turn names, or to nobody."""
    session = _read_session(state)
    owner = session.user_id, session.scope
    return not session.user_id or owner == (turn.user_id, turn.scope)


def _is_sent_again(turn: TurnRequest, newest: StateSnapshot, came: datetime) -> bool:
    """True if a client sends the newest request once more: it says so, does it at once, or has no
    reply to it."""
    said: list[AnyMessage] = newest.values.get("messages", [])
    if turn.again or not (said and isinstance(said[-1], AIMessage)):
        return True
    if turn.key and read_marks(newest).get(_KEY) == turn.key:
        return True
    ended = datetime.fromisoformat(newest.created_at or came.isoformat())
    return not turn.key and (came - ended).total_seconds() <= _RESENT


def _is_same_place(one: StateSnapshot, other: StateSnapshot) -> bool:
    here, there = (state.config["configurable"] for state in (one, other))
    return bool(here["checkpoint_id"] == there["checkpoint_id"])


def digest_turn(before: StateSnapshot | None, turn: TurnRequest) -> list[str]:
    """The digests of a turn's histories, behind those of the answer that it goes on from."""
    messages = cast("Sequence[AnyMessage]", turn.messages)
    if before is None:
        return digest_histories(messages)
    reply = before.values["messages"][-1]
    (*_, known) = digest_histories([reply], read_marks(before).get(_MARK, ""))
    return digest_histories(messages, known)


def read_marks(state: StateSnapshot) -> Mapping[str, Any]:
    return state.metadata or {}


def mark(
    config: RunnableConfig,
    digests: Sequence[str],
    first: int,
    last: int,
    turn: TurnRequest | None = None,
) -> RunnableConfig:
    """A turn's configuration, with the histories that it goes on from and that it answers."""
    marks: dict[str, Any] = {_FROM: digests[first], _MARK: digests[last]}
    if turn is not None:
        marks |= {_ANSWER: turn.id, _COMPLETE: turn.complete}
        marks |= {_MANNER: turn.manner, _STREAMED: turn.stream}
        marks |= {_INSTRUCTED: bool(turn.instructions)}
        marks |= {_KEY: turn.key, _MODEL: turn.model, _PREVIOUS: turn.previous}
    return {**config, "metadata": marks}


def was_complete(place: StateSnapshot) -> bool:
    """`TurnRequest.complete` of the turn that a place is behind."""
    return bool(read_marks(place).get(_COMPLETE, True))


def _read_session(state: StateSnapshot) -> Session:
    known = state.values.get("session") or {"id": state.config["configurable"]["thread_id"]}
    return Session.model_validate(known)


def _read_sent(
    stored: SessionStore, session: Session, count: int
) -> list[tuple[AnyMessage, AnyMessage]]:
    """So many of the newest messages as a client may have them, or all if there are fewer."""
    read = count
    while True:
        said = stored.messages(session, max(1, session.count - read))
        sent = list(list_sent(m.message for m in said))
        if len(sent) > count or read >= session.count:  # the first may be cut
            return sent[-count:]
        read *= 2
