"""What a session recalls for a message: quotes, tokens, and the evidence among them.

A conversation is replayed once. Each message is asked in its place, of a fork: what a session has
in view there is in view, and the message does not become part of the session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from topicloom import (
    RESPONDER,
    FileStorage,
    Receipt,
    Settings,
    TurnOptions,
    build_session_graph,
    count_budget_tokens,
    default_embedder,
    embedded_roles,
)
from topicloom.lab import Graph, get_text
from topicloom.testing import ScriptedResponder
from topicloom_app.recordings.conversations import Conversation, Question
from topicloom_app.recordings.replay import RecordedResponder, cut_rounds, feed_round
from topicloom_lab.asking import BudgetCounter
from topicloom_lab.comparison.measures import count_evidence
from topicloom_lab.idle.messages import PlacedMessage, WrittenMessage
from topicloom_lab.readers import EMBEDDED, ReaderChoice, SimulatedReaders
from topicloom_lab.recorded_time import RecordedClock


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The measures of one message. Tokens are those of `count_budget_tokens`."""

    quotes: int
    """Messages that were quoted for it, whole or in part."""
    tokens: int
    """Tokens that were recalled for it: quotes, their headings, and what a search says."""
    pieces: int
    """Pieces of evidence that the answer rests on."""
    in_view: int
    """Those of them of which a message stood whole in the prompt before anything was recalled."""
    recalled: int
    """The others of which a message was recalled whole."""
    evidence_tokens: int
    """Tokens of what was recalled that are evidence, excerpts included."""
    calls: dict[str, int]
    """Calls by role."""
    failed: dict[str, int]
    """Those of the calls that gave nothing usable, by role."""

    @property
    def recall(self) -> float:
        """Share of the evidence in the prompt; 1 if there is none to find."""
        return (self.in_view + self.recalled) / self.pieces if self.pieces else 1.0


@dataclass(frozen=True, slots=True)
class IdleEvaluation:
    """One run over a conversation: replay it, and ask messages in their places."""

    budget: int
    """Tokens that may be recalled for a message."""
    window: int = 8_000
    """Main window of the session; what is recalled for a message takes no room from it."""
    topic_window: int = 64_000
    """Window of a topic."""
    readers: ReaderChoice = EMBEDDED
    """Who reads topics for a message; the embedded ones while the conversation is replayed."""
    settings: Settings = field(default_factory=Settings)
    """Everything else."""

    @property
    def setup(self) -> dict[str, object]:
        """The keys that distinguish the rows of this run in a shared file."""
        keys = ("budget", "window", "topic_window")
        return {key: getattr(self, key) for key in keys} | {"readers": str(self.readers)}

    def replay(
        self, conversation: Conversation, placed: Iterable[PlacedMessage], folder: Path
    ) -> Iterator[Callable[[], RecallResult]]:
        """Replay a conversation; yields for each message, in its place, what asks it.

        What comes after the last message is not replayed.

        Args:
            conversation: The recording.
            placed: What is asked, in the order of the places.
            folder: For the session's storage.
        """
        oracle = ScriptedResponder(otherwise="-")
        recorded = RecordedResponder(oracle)
        clock = RecordedClock.of(conversation.messages)
        options = self._options(recorded, FileStorage(folder, fsync=False), clock)
        saver = InMemorySaver()
        graph: Graph = build_session_graph(**options).compile(checkpointer=saver)
        readers = SimulatedReaders(self.readers, conversation, options["storage"])
        if self.readers != EMBEDDED:
            options["roles"] = readers.play(options["roles"], self.topic_window)
        budget = {"recall_tokens": self.budget}
        options["settings"] = options["settings"].model_copy(update=budget)
        asked: Graph = build_session_graph(**options).compile(checkpointer=saver)
        config: RunnableConfig = {"configurable": {"thread_id": conversation.id}}
        texts = {m.id: m.text for m in conversation.messages}

        def ask(message: WrittenMessage) -> RecallResult:
            readers.expect(_as_question(message))
            prompt, receipt = self._ask(asked, oracle, config, message.text)
            return _measure(message, prompt, receipt, texts)

        rounds, said = cut_rounds(conversation), 0
        for place in placed:
            for round_ in rounds[said : place.rounds]:
                clock.now = clock.after(round_.said)
                feed_round(graph, recorded, round_, config)
            said = place.rounds
            yield partial(ask, place.message)

    def _options(
        self, recorded: RecordedResponder, storage: FileStorage, clock: RecordedClock
    ) -> dict[str, Any]:
        """The arguments of the session graph that the conversation is fed to."""
        windows = {"window": self.window, "topic_window": self.topic_window}
        return {
            "settings": self.settings.model_copy(update=windows),
            "roles": embedded_roles(default_embedder()).replace(RESPONDER, recorded),
            "storage": storage,
            "clock": clock,
            "counter": BudgetCounter(),
        }

    def _ask(
        self, graph: Graph, oracle: ScriptedResponder, config: RunnableConfig, text: str
    ) -> tuple[Sequence[BaseMessage], Receipt]:
        """The main model's prompt for a message, and the receipt of its turn."""
        base = graph.get_state(config)
        oracle.requests.clear()
        receipts = [
            event["receipt"]
            for event in graph.stream(
                {"messages": [HumanMessage(text)]},
                base.config if base.values else config,
                context=TurnOptions(window=self.window + self.budget),
                stream_mode="custom",
                durability="exit",
            )
            if event["type"] == "receipt"
        ]
        if base.values:
            graph.update_state(base.config, {"messages": []})
        return oracle.requests[-1].messages, Receipt.model_validate(receipts[-1])


def _as_question(message: WrittenMessage) -> Question:
    evidence = tuple(chain.from_iterable(message.evidence))
    return Question(id=message.id, question=message.text, evidence=evidence)


def _measure(
    message: WrittenMessage,
    prompt: Sequence[BaseMessage],
    receipt: Receipt,
    texts: dict[str, str],
) -> RecallResult:
    *before, last = [m for m in prompt if m.type != "system"]
    view = "\n".join(map(get_text, before))
    note = get_text(last).partition(message.text)[2].strip("\n")
    pieces = [[texts[i] for i in piece] for piece in message.evidence]
    missing = [piece for piece in pieces if not any(text in view for text in piece)]
    return RecallResult(
        quotes=sum(len(topic.quotes) for topic in receipt.quoted),
        tokens=count_budget_tokens(note),
        pieces=len(pieces),
        in_view=len(pieces) - len(missing),
        recalled=sum(any(text in note for text in piece) for piece in missing),
        evidence_tokens=sum(
            count_evidence([text], note).held for text in chain.from_iterable(pieces)
        ),
        calls=dict(Counter(call.role for call in receipt.calls)),
        failed=dict(Counter(call.role for call in receipt.failures)),
    )
