"""Asking about a session without becoming part of it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from topicloom.cli.workplace import thread
from topicloom.errors import InputError
from topicloom.evaluation.conversations import Question
from topicloom.graph.session import SessionGraph
from topicloom.state.recall import number_of
from topicloom.state.receipt import Receipt
from topicloom.state.records import Record, text_of
from topicloom.state.session import Session
from topicloom.storage.sessions import SessionStore


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message that an answer rests on."""

    record: Record
    """The original."""
    topic: str = ""
    """Name of the topic that it was quoted from."""
    in_view: bool = False
    """Whether it stood in the main window anyway, in no topic yet."""

    @property
    def found(self) -> bool:
        """Whether the main model was shown it."""
        return self.in_view or bool(self.topic)


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a question."""

    question: Question
    reply: str
    receipt: Receipt
    evidence: tuple[Evidence, ...]
    """Those messages that its answer rests on, of the ones the session has heard."""

    @property
    def complete(self) -> bool:
        """Whether all of them were found."""
        return all(e.found for e in self.evidence)


class Asker:
    """Asks each question on a fork of its own, from the checkpoint at its place."""

    def __init__(
        self, builder: SessionGraph, saver: SqliteSaver, store: SessionStore, session: Session
    ) -> None:
        """Args:
        builder: The graph.
        saver: Checkpoints of the session; the forks are kept elsewhere, in memory.
        store: Storage of the session.
        session: The session.
        """
        self._forks = InMemorySaver()
        self._graph = builder.compile(checkpointer=self._forks)
        self._numbers = count(1)
        self._saver = saver
        self._store = store
        self._session = session
        self._by_source = {r.source: r for r in store.records(session)}

    def ask(self, question: Question, place: int | None = None) -> Asked:
        """Ask a question.

        Args:
            question: The question.
            place: After how many messages it is asked; None for the end.
        """
        fork = self._fork(self._checkpoint(place))
        state = self._graph.invoke(
            {"messages": [HumanMessage(question.question)]}, thread(fork), durability="exit"
        )
        session = Session.model_validate(state["session"])
        (receipt,) = self._store.receipts(session, newest=1)
        shown = self._shown(session)
        view = range(session.view, number_of(receipt.user))
        records = [self._by_source[i] for i in question.evidence if i in self._by_source]
        evidence = tuple(Evidence(r, shown.get(r.seq, ""), r.seq in view) for r in records)
        return Asked(question, text_of(state["messages"][-1]), receipt, evidence)

    def _shown(self, session: Session) -> dict[int, str]:
        """Topic names by the numbers of the messages that the prompt quoted."""
        notes = [topic for note in self._store.notes(session) for topic in note.topics]
        return {number_of(i): topic.name for topic in notes for i in topic.quotes}

    def _checkpoint(self, place: int | None) -> CheckpointTuple:
        for found in self._saver.list(thread(self._session.id)):
            session = found.checkpoint["channel_values"].get("session")
            heard = session.get("count", 0) if session else 0
            if heard and (place is None or heard <= place):
                return found
        raise InputError(f"nothing of session {self._session.id!r} was said before the question")

    def _fork(self, base: CheckpointTuple) -> str:
        """Put a checkpoint under a thread of its own; returns the thread."""
        name = f"question-{next(self._numbers)}"
        config = thread(name)
        config["configurable"]["checkpoint_ns"] = ""
        checkpoint = base.checkpoint
        self._forks.put(config, checkpoint, base.metadata, checkpoint["channel_versions"])
        return name
