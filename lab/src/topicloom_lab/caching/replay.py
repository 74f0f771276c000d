"""Replaying a conversation to record every prompt, as it is sent to the chat models.

The decisions are the embedded roles': what is read, quoted and split. The prompts are those of the
chat-model roles, sent to a model that writes them down and answers what was said at the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver

from topicloom import (
    READER,
    RESPONDER,
    Answer,
    FileStorage,
    LocalRole,
    Reader,
    Reading,
    ReadRequest,
    Settings,
    TokenCounter,
    TurnOptions,
    build_session_graph,
    default_embedder,
    embedded_roles,
)
from topicloom.lab import (
    Chat,
    ChatReader,
    ChatResponder,
    Graph,
    PrefixMeter,
    choose_counter,
    find_breakpoints,
)
from topicloom_app.recordings.conversations import Conversation
from topicloom_app.recordings.replay import as_message, cut_rounds
from topicloom_lab.asking import AnsweringModel
from topicloom_lab.caching.measure import PromptPart, SentPrompt, parts_of

MAIN = "main"
"""The main window's name; a topic's is `reader:` with its id."""
_WINDOW: ContextVar[str] = ContextVar("_WINDOW", default=MAIN)
"""The window that is being asked: readers run side by side."""
_NOTHING = "<topic_result><relevance_score>0.1</relevance_score></topic_result>"


@dataclass(slots=True)
class Recorder:
    """Writes down what is sent, and when."""

    counter: TokenCounter
    """Counts tokens."""
    at: float = 0.0
    """Now, in seconds."""
    said: str = ""
    """The main model's answer."""
    sent: list[SentPrompt] = field(default_factory=list)

    def answer(self, messages: Sequence[BaseMessage], tools: Sequence[Any]) -> str:
        """Write a prompt down; returns what to answer."""
        window = _WINDOW.get()
        said = self.said if window == MAIN else _NOTHING
        bound = [PromptPart(json.dumps(list(tools)), self.counter.tools(tools))] if tools else []
        parts = (*bound, *parts_of(messages, self.counter.message))
        marks = tuple(len(bound) + n for n in find_breakpoints(messages))
        reply = parts_of([AIMessage(said)], self.counter.message)[0]
        sent = tuple(messages), tuple(tools)
        self.sent.append(SentPrompt(window, self.at, parts, marks, reply, *sent))
        return said


@dataclass(slots=True)
class ShadowedReader(LocalRole[ReadRequest, tuple[Reading, ...]]):
    """One reader decides; another is asked the same for the sake of its prompt."""

    decides: Reader
    asked: Reader

    def call(self, request: ReadRequest) -> Answer[tuple[Reading, ...]]:
        """The answer of the deciding reader."""
        token = _WINDOW.set(f"reader:{'+'.join(w.topic.id for w in request.windows)}")
        try:
            self.asked.call(request)
        finally:
            _WINDOW.reset(token)
        return self.decides.call(request)


def record_prompts(
    conversation: Conversation,
    folder: Path,
    settings: Settings,
    *,
    turns: int,
    seconds: float = 60.0,
    tools: Sequence[BaseTool | Callable[..., object]] = (),
    instructions: str = "",
) -> Iterator[list[SentPrompt]]:
    """Replay the answered turns of a conversation; yields the prompts of each.

    Args:
        conversation: The recording.
        folder: The storage of the session.
        settings: Windows and layout.
        turns: Answered turns at most.
        seconds: From one turn to the next: recordings tell days, caches live for minutes.
        tools: The application's own.
        instructions: The application's own system prompt.
    """
    recorder = Recorder(choose_counter(""))
    model = AnsweringModel(answer=recorder.answer)
    embedded = embedded_roles(default_embedder())
    chat = Chat.of(model, PrefixMeter(), window=settings.topic_window)
    reader = ShadowedReader(embedded[READER], ChatReader(chat))
    roles = embedded.replace(RESPONDER, ChatResponder(model)).replace(READER, reader)
    graph: Graph = build_session_graph(
        settings=settings,
        roles=roles,
        storage=FileStorage(folder, fsync=False),
        tools=tools,
        instructions=instructions,
    ).compile(checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": conversation.id}}
    answered = 0
    for round_ in cut_rounds(conversation):
        recorder.said = round_.reply.text if round_.reply else ""
        said = [as_message(m) for m in round_.said]
        graph.invoke(
            {"messages": said},
            config,
            context=TurnOptions(answer=round_.reply is not None),
            durability="exit",
        )
        if round_.reply is None:
            continue
        yield recorder.sent
        answered += 1
        if answered == turns:
            return
        recorder.sent = []
        recorder.at += seconds
