"""What the inspector's page sends, and the messages that it is sent; `ui/src/api.ts` has all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig
from pydantic import BaseModel, Field, RootModel

from topicloom.graph.compiled import CompiledSessionGraph
from topicloom.memory.memory import Memory
from topicloom.state.recall import ELSEWHERE
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage, get_text

_TEXT = 20_000
"""Characters of a message in a list; one that is asked for alone comes whole."""


class NewMessage(BaseModel, frozen=True):
    """A message to answer, or only to record."""

    text: str = Field(max_length=200_000)
    """"" for the reply to a message that still waits for one."""
    answer: bool = True


class Editing(BaseModel, frozen=True):
    """Whether changes are taken from now on."""

    on: bool


class Forget(BaseModel, frozen=True):
    """What to remove for good: ids of topics, of messages, ranges."""

    what: tuple[str, ...] = Field(min_length=1, max_length=1_000)


class _Change(BaseModel, frozen=True):
    """The name of a method of `Memory`, and what it is called with."""

    do: str

    def make(self, memory: Memory) -> None:
        getattr(memory, self.do)(**self.model_dump(exclude={"do"}))


class _TopicChange(_Change):
    topic_id: str = Field(alias="topic")


class _Rename(_TopicChange):
    do: Literal["rename"]
    name: str


class _Move(_TopicChange):
    do: Literal["move"]
    messages: str


class _Split(_TopicChange):
    do: Literal["split"]
    messages: str
    name: str


class _Merge(_TopicChange):
    do: Literal["merge"]
    into: str


class _Pin(_TopicChange):
    do: Literal["pin"]
    pinned: bool


class _PutAway(_TopicChange):
    do: Literal["archive", "restore"]


class _CorrectFact(_Change):
    do: Literal["correct_fact"]
    key: str
    text: str = Field("", max_length=2_000)


class _ForgetFact(_Change):
    do: Literal["forget_fact"]
    key: str


class _Undo(_Change):
    do: Literal["undo"]
    change_id: str = Field("", alias="change")


class Change(
    RootModel[
        Annotated[
            _Rename
            | _Move
            | _Split
            | _Merge
            | _Pin
            | _PutAway
            | _CorrectFact
            | _ForgetFact
            | _Undo,
            Field(discriminator="do"),
        ]
    ]
):
    """A change to topics, by the name of what `Memory` does."""


def show_message(
    message: StoredMessage, topic: str = "", *, most: int = _TEXT, relevance: float | None = None
) -> dict[str, Any]:
    """A message with the topic that it is in, cut to some characters.

    Where it was searched for, `relevance` says how well it fits: 0 to 1.
    """
    return {
        "id": message.id,
        "seq": message.seq,
        "role": message.role,
        "label": message.label,
        "time": message.time,
        "text": message.text[:most],
        "whole": len(message.text) <= most,
        "media": len(message.media),
        "topic": topic,
        "relevance": relevance,
    }


Event = dict[str, Any]
_HISTORY = 1_000
"""Newest checkpoints that are looked through, those within turns among them."""


def describe_part(graph: CompiledSessionGraph, kind: str, data: Any) -> Iterator[Event]:
    """The events of a part of a turn's stream.

    Beside the own ones of the graph: `text` of the reply; topics that it is `reading`, one that was
    `read`; messages that are `quoted`; topics that messages `moved` into.
    """
    if kind == "custom":
        yield data
    elif kind == "messages":
        chunk, metadata = data
        if isinstance(chunk, AIMessageChunk) and metadata["langgraph_node"] == "main_generate":
            yield from ({"type": "text", "text": text} for text in [get_text(chunk)] if text)
    else:
        for node, update in data.items():
            yield from _describe_update(graph, node, update or {})


def _describe_update(
    graph: CompiledSessionGraph, node: str, update: Mapping[str, Any]
) -> Iterator[Event]:
    match node:
        case "read_topic":
            for reading in (r for r in update["readings"] if r["topic"] != ELSEWHERE):
                yield {"type": "read", "topic": reading["topic"], "score": reading["score"]}
        case "retrieve" | "activate_topic" | "amnesia":
            yield {"type": "reading", "topics": update["turn"].get("unread", ())}
        case "split":
            yield {"type": "moved", "topics": update["turn"].get("split", ())}
        case "assemble":
            session = Session.model_validate(update["session"])
            notes = graph.builder.workspaces.open(session.id, graph.store).store.notes
            for note in notes(session)[-1:]:
                if note.after == update["turn"]["user"]:
                    yield {"type": "quoted", "quotes": [i for t in note.topics for i in t.quotes]}


def list_moments(graph: CompiledSessionGraph, thread: RunnableConfig) -> list[dict[str, object]]:
    """The ends of a thread's turns, of all branches, the newest first.

    Each is a checkpoint, its `parent` the end of the turn before it, "" if that is out of reach.
    """
    parents, ended = dict[str, str](), dict[str, tuple[Session, str]]()
    for state in graph.get_state_history(thread, limit=_HISTORY):
        checkpoint = _get_id(state.config)
        parents[checkpoint] = _get_id(state.parent_config or {})
        if not state.next and (session := state.values.get("session")):
            ended[checkpoint] = Session.model_validate(session), state.created_at or ""

    def climb(checkpoint: str) -> str:
        while checkpoint and checkpoint not in ended:
            checkpoint = parents.get(checkpoint, "")
        return checkpoint

    return [
        {"id": i, "parent": climb(parents[i]), "turn": s.turn, "count": s.count, "time": time}
        for i, (s, time) in ended.items()
    ]


def _get_id(config: Mapping[str, Any]) -> str:
    return str(config.get("configurable", {}).get("checkpoint_id", ""))
