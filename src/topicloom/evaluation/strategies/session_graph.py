"""topicloom itself: the session graph, fed turn by turn, with its embedded roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from topicloom.context.options import TurnOptions
from topicloom.evaluation.conversations import Conversation, RecordedMessage
from topicloom.evaluation.memory import Oracle
from topicloom.evaluation.recorded_time import RecordedClock
from topicloom.evaluation.replay import exchanges, feed, session_of
from topicloom.evaluation.strategies.base import COUNTER, Context, Desk, Listener
from topicloom.graph.session import build_session_graph
from topicloom.roles.embedded import embedded_roles
from topicloom.roles.recorded import RecordedResponder
from topicloom.settings import Settings
from topicloom.state.recall import number_of
from topicloom.state.receipt import Receipt
from topicloom.state.records import Record, text_of
from topicloom.state.session import Session
from topicloom.storage.files import FileStorage
from topicloom.storage.sessions import SessionStore

WINDOW = 8_000
"""Tokens of the main window while the conversation is fed, as of `topicloom eval memory`."""
_SESSION = "conversation"


class SessionGraphStrategy(Listener):
    """A session of its own; questions are asked of a checkpoint and forgotten again."""

    def __init__(self, desk: Desk, settings: Settings | None = None, *, recent: int = 0) -> None:
        """Args:
        desk: The budget is what a turn's recall may add.
        settings: Everything else that can be set.
        recent: Newest messages that stay in view when a question is asked.
        """
        super().__init__()
        self._oracle = Oracle()
        self._recorded = RecordedResponder(self._oracle)
        self._storage = FileStorage(desk.folder, fsync=False)
        self._recent = recent
        self._clock = RecordedClock(datetime.now().astimezone())
        chosen = {"window": WINDOW, "recall_tokens": desk.budget}
        self._graph = build_session_graph(
            settings=(settings or Settings()).model_copy(update=chosen),
            roles=replace(embedded_roles(desk.embedder), responder=self._recorded),
            storage=self._storage,
            counter=COUNTER,
            clock=self._clock,
        ).compile(checkpointer=InMemorySaver())
        self._config: RunnableConfig = {"configurable": {"thread_id": _SESSION}}

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`; what nobody answered in these messages is only recorded."""
        if not messages:
            return {}
        if not self._messages:
            self._clock.now = RecordedClock.of(messages, self._clock).now
        super().feed(messages)
        turns = exchanges(Conversation(id=_SESSION, messages=tuple(messages)))
        for exchange in turns:
            self._clock.now = self._clock.after(exchange.said)
            feed(self._graph, self._recorded, exchange, self._config)
        session = session_of(self._graph, self._config)
        return _calls(self._store(session).receipts(session, len(turns)))

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`; the budget is the one that it was made with."""
        base = self._graph.get_state(self._config).config
        self._oracle.prompts.clear()
        events: list[dict[str, Any]] = [
            dict(event)
            for event in self._graph.stream(
                {"messages": [HumanMessage(question)]},
                base if self._messages else self._config,
                context=TurnOptions(keep_messages=self._recent),
                stream_mode="custom",
                durability="exit",
            )
        ]
        receipt = Receipt.model_validate(
            next(e["receipt"] for e in reversed(events) if e["type"] == "receipt")
        )
        sources = tuple(r.source for r in self._shown(receipt) if r.source)
        if self._messages:
            # The thread goes on from where it was, not from the question.
            self._graph.update_state(base, {"messages": []})
        prompt = _without(self._oracle.prompts[-1], question)
        return Context(prompt, sources, _calls([receipt]))

    def _shown(self, receipt: Receipt) -> list[Record]:
        """The originals that the turn quoted whole, or that stood in view."""
        session = session_of(self._graph, self._config)
        quoted = [i for t in receipt.quoted for i in t.quotes if i not in t.partial]
        numbers = {*map(number_of, quoted), *range(session.view, number_of(receipt.user))}
        return list(self._store(session).pick(session, numbers).values())

    def _store(self, session: Session) -> SessionStore:
        return SessionStore(self._storage.open(session.id))


def _calls(receipts: Sequence[Receipt]) -> Mapping[str, int]:
    return Counter(call.role for receipt in receipts for call in receipt.calls)


def _without(prompt: Sequence[BaseMessage], question: str) -> tuple[BaseMessage, ...]:
    """A prompt without its system message and the question; the note behind that stays."""
    *view, last = [m for m in prompt if m.type != "system"]
    note = text_of(last).removeprefix(question).strip("\n")
    return (*view, *([SystemMessage(note)] if note else []))
