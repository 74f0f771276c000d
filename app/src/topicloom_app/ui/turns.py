"""What the page is told while a turn goes on, and the points in time that it can go back to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableConfig

from topicloom import Session
from topicloom.hosting import CompiledSessionGraph, get_text
from topicloom_app.ui.answers import Moment

Event = dict[str, Any]
_HISTORY = 1_000
"""Newest checkpoints that are looked through, those within turns among them."""


def describe_part(graph: CompiledSessionGraph, kind: str, data: Any) -> Iterator[Event]:
    """The events of a part of a turn's stream.

    Besides the graph's own events: `text` of the reply; `reading` and `read` topics; messages that
    are `quoted`; topics that messages `moved` into.
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
            for reading in update["readings"]:
                yield {"type": "read", "topic": reading["topic"], "score": reading["score"]}
        case "retrieve" | "activate_topic" | "amnesia":
            topics = chain.from_iterable(update["turn"].get("unread", ()))
            yield {"type": "reading", "topics": [*topics]}
        case "split":
            yield {"type": "moved", "topics": update["turn"].get("split", ())}
        case "assemble":
            session = Session.model_validate(update["session"])
            notes = graph.builder.workspaces.open(session.id, graph.store).store.notes
            for note in notes(session)[-1:]:
                if note.after == update["turn"]["user"]:
                    yield {"type": "quoted", "quotes": [i for t in note.topics for i in t.quotes]}


def list_moments(graph: CompiledSessionGraph, thread: RunnableConfig) -> list[Moment]:
    """The ends of a thread's turns on all branches, the newest first.

    Each is a checkpoint. Its `parent` is the end of the turn before it; "" if that is out of reach.
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
        Moment(id=i, parent=climb(parents[i]), turn=s.turn, count=s.count, time=time)
        for i, (s, time) in ended.items()
    ]


def _get_id(config: Mapping[str, Any]) -> str:
    return str(config.get("configurable", {}).get("checkpoint_id", ""))
