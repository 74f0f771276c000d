"""topicloom itself: the session graph, fed turn by turn, with its embedded roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from topicloom import (
    RESPONDER,
    FileStorage,
    SessionStore,
    Settings,
    StoredMessage,
    build_session_graph,
    embedded_roles,
    get_session,
)
from topicloom.lab import Graph
from topicloom.testing import ScriptedResponder
from topicloom_app.recordings.conversations import Conversation, RecordedMessage
from topicloom_app.recordings.replay import RecordedResponder, cut_rounds, feed_round
from topicloom_lab.asking import Questioner, Shown
from topicloom_lab.recorded_time import RecordedClock
from topicloom_lab.strategies.base import COUNTER, Context, Strategy, StrategyOptions

WINDOW = 8_000
"""Tokens of the main window while the conversation is fed, as of `topicloom eval memory`."""
_SESSION = "conversation"


class SessionGraphStrategy(Strategy):
    """A session of its own; questions are asked of a checkpoint and forgotten again.

    The session recalls what the settings say while the conversation is fed, and as much as a
    question's budget when it is asked: so all budgets are asked of the same topics.
    """

    def __init__(self, options: StrategyOptions) -> None:
        """An empty session in the options' folder."""
        super().__init__()
        self._oracle = ScriptedResponder(otherwise="-")
        self._recorded = RecordedResponder(self._oracle)
        self._storage = FileStorage(options.folder, fsync=False)
        self._clock = RecordedClock.of(())
        self._embedder = options.embedder
        self.language = options.language
        """Of the conversation."""
        self._settings = Settings(window=WINDOW)
        self._saver = InMemorySaver()
        self._graph = self._compile(self._settings)
        self._config: RunnableConfig = {"configurable": {"thread_id": _SESSION}}
        self._questioners = dict[int, Questioner]()

    def _compile(self, settings: Settings) -> Graph:
        return build_session_graph(
            settings=settings,
            roles=embedded_roles(self._embedder).replace(RESPONDER, self._recorded),
            storage=self._storage,
            counter=COUNTER,
            clock=self._clock,
        ).compile(checkpointer=self._saver)

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
        """See `Strategy.context`; the budget is what the turn's recall may add."""
        shown = self.last = self.ask(question, budget)
        sources = tuple(r.source for r in shown.originals if r.source)
        return Context(shown.prompt, sources, shown.calls)

    def ask(self, question: str, budget: int) -> Shown:
        """What the prompt of a question shows, if its recall may add so many tokens."""
        if budget not in self._questioners:
            asked = self._compile(self._settings.model_copy(update={"recall_tokens": budget}))
            given = self._config, self._storage, self._oracle
            self._questioners[budget] = Questioner(asked, *given)
        return self._questioners[budget].ask(question)

    def fetcher(self) -> Callable[[int], StoredMessage]:
        """What gives an original of the session by its number."""
        session = get_session(self._graph, self._config)
        return SessionStore(self._storage.open(session.id)).fetcher(session)
