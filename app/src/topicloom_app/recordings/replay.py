"""A recording, turn by turn: cut into rounds, and fed to a session graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from topicloom import InputError, ReplyRequest, Responder, TurnOptions, get_session
from topicloom.hosting import Graph, to_chunk
from topicloom_app.recordings.conversations import (
    Conversation,
    Question,
    RecordedMessage,
    load_conversations,
)
from topicloom_app.recordings.times import iso_time, parse_moment


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """The messages of one turn, and the recorded reply."""

    said: tuple[RecordedMessage, ...]
    """New messages, the one to answer last."""
    reply: RecordedMessage | None
    """The recorded reply; None for messages without a reply."""

    @property
    def ids(self) -> list[str]:
        """Ids of all its messages, in order."""
        return [m.id for m in (*self.said, *([self.reply] if self.reply else []))]

    def __len__(self) -> int:
        return len(self.said) + (self.reply is not None)


class RecordedResponder:
    """Gives the recorded reply of a session, if one is expected, else asks another responder."""

    model = "recorded"

    def __init__(self, otherwise: Responder) -> None:
        self._otherwise = otherwise
        self._replies: dict[str, AIMessage] = {}

    def expect(self, session: str, reply: AIMessage | None) -> None:
        """Set the reply of a session's next turns; None to have the other responder asked."""
        if reply is None:
            self._replies.pop(session, None)
        else:
            self._replies[session] = reply

    def stream(self, request: ReplyRequest) -> Iterator[AIMessageChunk]:
        """The recorded reply in one piece."""
        reply = self._replies.get(request.session)
        yield from self._otherwise.stream(request) if reply is None else [to_chunk(reply)]

    async def astream(self, request: ReplyRequest) -> AsyncIterator[AIMessageChunk]:
        """The recorded reply in one piece."""
        if (reply := self._replies.get(request.session)) is not None:
            yield to_chunk(reply)
            return
        async for chunk in self._otherwise.astream(request):
            yield chunk


def cut_rounds(conversation: Conversation) -> list[RecordedRound]:
    """Cut a recording into turns. Messages without text are left out."""
    found: list[RecordedRound] = []
    waiting: list[RecordedMessage] = []
    for message in (m for m in conversation.messages if m.text.strip()):
        if waiting and waiting[-1].role == "user":
            reply = message if message.role == "assistant" else None
            found.append(RecordedRound(tuple(waiting), reply))
            waiting = []
            if reply:
                continue
        waiting.append(message)
    if waiting:
        found.append(RecordedRound(tuple(waiting), None))
    return found


def replay_conversation(
    graph: Graph, recorded: RecordedResponder, conversation: Conversation, config: RunnableConfig
) -> Iterator[tuple[RecordedRound, dict[str, Any]]]:
    """Feed the rounds that a session does not have yet, one turn at a time.

    A replay that was interrupted goes on where it stopped: the position is the number of
    messages in the session.

    Args:
        graph: A compiled session graph.
        recorded: The responder of the graph.
        conversation: The recording.
        config: Names the thread.

    Yields:
        Each round with the graph's state after it.
    """
    heard = get_session(graph, config).count
    for round_ in cut_rounds(conversation):
        # A turn that was cut off has its message in the session, but not its reply: it is fed
        # again, and the session recognizes the message.
        if heard >= len(round_):
            heard -= len(round_)
            continue
        heard = 0
        yield round_, feed_round(graph, recorded, round_, config)


def feed_round(
    graph: Graph, recorded: RecordedResponder, round_: RecordedRound, config: RunnableConfig
) -> dict[str, Any]:
    """Run one turn with its recorded reply, and return the state after it."""
    thread = config["configurable"]["thread_id"]
    reply = as_message(round_.reply) if round_.reply else None
    recorded.expect(thread, reply if isinstance(reply, AIMessage) else None)
    state: dict[str, Any] = graph.invoke(
        {"messages": [as_message(m) for m in round_.said]},
        config,
        context=TurnOptions(answer=reply is not None),
        durability="exit",
    )
    recorded.expect(thread, None)
    return state


def as_message(message: RecordedMessage) -> BaseMessage:
    """A recorded message as LangChain has it, with its own id and time."""
    kind = AIMessage if message.role == "assistant" else HumanMessage
    extra = {"time": iso_time(message.time)} if message.time else {}
    speaker = message.speaker if message.speaker != message.role else None
    return kind(content=message.text, name=speaker, id=message.id, additional_kwargs=extra)


def find_sample() -> Path:
    """The recording that ships with the package."""
    return min(Path(str(files("topicloom_app"))).joinpath("samples").glob("*.jsonl"))


def load_first_conversation(path: Path, limit: int | None) -> Conversation:
    """The first conversation of a file, with at most `limit` messages and questions on these.

    Raises `NotAConversationError` if there is none, and `InputError` if no message of it has a
    text.
    """
    conversation = next(load_conversations(path))
    if limit is not None:
        conversation = _cut_conversation(conversation, limit)
    if not cut_rounds(conversation):
        raise InputError(
            "{path}: no message of conversation {conversation!r} has any text",
            path=path,
            conversation=conversation.id,
        )
    return conversation


def find_position(question: Question, conversation: Conversation) -> int | None:
    """The number of messages before a question, by a message's id or a time; None for the end."""
    if question.asked_at is None:
        return None
    by_id = question.asked_at in {message.id for message in conversation.messages}
    asked = None if by_id else parse_moment(question.asked_at)
    heard = 0
    for round_ in cut_rounds(conversation):
        said = parse_moment(round_.said[0].time)
        later = asked is not None and said is not None and said > asked
        if later or question.asked_at in {message.id for message in round_.said}:
            return heard
        heard += len(round_)
    return None


def _cut_conversation(conversation: Conversation, limit: int) -> Conversation:
    messages = conversation.messages[:limit]
    known = {message.id for message in messages}
    all_ids = {message.id for message in conversation.messages}
    questions = tuple(
        question
        for question in conversation.questions
        if known.issuperset(question.evidence) and question.asked_at not in all_ids - known
    )
    return conversation.model_copy(update={"messages": messages, "questions": questions})
