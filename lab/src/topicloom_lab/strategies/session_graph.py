"""topicloom itself: the session graph, fed turn by turn, with its embedded roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from topicloom.graph.session import build_session_graph
from topicloom.graph.stored import get_session
from topicloom.recordings.conversations import Conversation, RecordedMessage
from topicloom.recordings.replay import cut_rounds, feed_round
from topicloom.roles.choice import embedded_roles
from topicloom.roles.responder import RESPONDER, RecordedResponder
from topicloom.settings import Settings
from topicloom.storage.files import FileStorage
from topicloom.storage.sessions import SessionStore
from topicloom_lab.asking import Oracle, Questioner
from topicloom_lab.recorded_time import RecordedClock
from topicloom_lab.strategies.base import COUNTER, Context, Strategy, StrategyOptions

WINDOW = 8_000
"""Tokens of the main window while the conversation is fed, as of `topicloom eval memory`."""
_SESSION = "conversation"


class SessionGraphStrategy(Strategy):
    """A session of its own; questions are asked of a checkpoint and forgotten again."""

    def __init__(
        self, options: StrategyOptions, settings: Settings | None = None, *, recent: int = 0
    ) -> None:
        """Args:
        options: The budget is what a turn's recall may add.
        settings: Everything else that can be set.
        recent: Newest messages that stay in view when a question is asked.
        """
        super().__init__()
        oracle = Oracle()
        self._recorded = RecordedResponder(oracle)
        self._storage = FileStorage(options.folder, fsync=False)
        self._clock = RecordedClock(datetime.now().astimezone())
        chosen = {"window": WINDOW, "recall_tokens": options.budget}
        self._graph = build_session_graph(
            settings=(settings or Settings()).model_copy(update=chosen),
            roles=embedded_roles(options.embedder).replace(RESPONDER, self._recorded),
            storage=self._storage,
            counter=COUNTER,
            clock=self._clock,
        ).compile(checkpointer=InMemorySaver())
        self._config: RunnableConfig = {"configurable": {"thread_id": _SESSION}}
        self._questioner = Questioner(self._graph, self._config, self._storage, oracle, recent)

    def feed(self, messages: Sequence[RecordedMessage]) -> Mapping[str, int]:
        """See `Strategy.feed`; messages without a reply are only recorded."""
        if not messages:
            return {}
        if not self._messages:
            self._clock.now = RecordedClock.of(messages, self._clock).now
        super().feed(messages)
        turns = cut_rounds(Conversation(id=_SESSION, messages=tuple(messages)))
        for round_ in turns:
            self._clock.now = self._clock.after(round_.said)
            feed_round(self._graph, self._recorded, round_, self._config)
        session = get_session(self._graph, self._config)
        store = SessionStore(self._storage.open(session.id))
        receipts = store.receipts(session, len(turns))
        return Counter(call.role for receipt in receipts for call in receipt.calls)

    def context(self, question: str, budget: int) -> Context:
        """See `Strategy.context`; the budget is the one that it was made with."""
        shown = self._questioner.ask(question)
        sources = tuple(r.source for r in shown.originals if r.source)
        return Context(shown.prompt, sources, shown.calls)
