"""The questions of a recording, asked without becoming part of the session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from rich.cells import cell_len
from rich.text import Text

from topicloom import InputError, Session, SessionGraph, SessionStore, StoredMessage
from topicloom.hosting import get_text, name_thread, parse_message_number
from topicloom_app.cli._views import shorten
from topicloom_app.cli.console import count_of
from topicloom_app.cli.words import say
from topicloom_app.recordings.conversations import Question


@dataclass(frozen=True, slots=True)
class Evidence:
    """A message that an answer rests on."""

    message: StoredMessage
    topic: str = ""
    """Name of the topic that it was quoted from."""
    in_view: bool = False
    """True if it stood in the main window anyway, in no topic yet."""

    @property
    def found(self) -> bool:
        """True if the main model was shown it."""
        return self.in_view or bool(self.topic)


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question with its reply, and the evidence that was found for it."""

    question: Question
    reply: str
    evidence: tuple[Evidence, ...]
    """Messages of the session that its answer rests on."""

    @property
    def complete(self) -> bool:
        """True if all of the evidence was found."""
        return all(e.found for e in self.evidence)


class QuestionAsker:
    """Asks each question on a fork of its own, from the checkpoint at its position."""

    def __init__(
        self, builder: SessionGraph, saver: SqliteSaver, store: SessionStore, session: Session
    ) -> None:
        """Ask about a session with these checkpoints and storage; forks are kept in memory."""
        self._forks = InMemorySaver()
        self._graph = builder.compile(checkpointer=self._forks)
        self._numbers = count(1)
        self._saver = saver
        self._store = store
        self._session = session
        self._by_source = {r.source: r for r in store.messages(session)}

    def ask(self, question: Question, position: int | None = None) -> AskedQuestion:
        """Ask a question after so many messages; None for the end."""
        fork = self._fork(self._find_checkpoint(position))
        state = self._graph.invoke(
            {"messages": [HumanMessage(question.question)]}, fork, durability="exit"
        )
        session = Session.model_validate(state["session"])
        (receipt,) = self._store.receipts(session, newest=1)
        notes = [topic for note in self._store.notes(session) for topic in note.topics]
        shown = {i: t.name for t in notes for i in t.quotes if i not in t.partial}
        view = range(session.view, parse_message_number(receipt.user))
        messages = [self._by_source[i] for i in question.evidence if i in self._by_source]
        evidence = tuple(Evidence(r, shown.get(r.id, ""), r.seq in view) for r in messages)
        return AskedQuestion(question, get_text(state["messages"][-1]), evidence)

    def _find_checkpoint(self, position: int | None) -> CheckpointTuple:
        for found in self._saver.list(name_thread(self._session.id)):
            session = found.checkpoint["channel_values"].get("session")
            heard = session.get("count", 0) if session else 0
            if heard and (position is None or heard <= position):
                return found
        raise InputError(
            "nothing of session {session!r} was said before the question", session=self._session.id
        )

    def _fork(self, base: CheckpointTuple) -> RunnableConfig:
        """Copy a checkpoint to a thread of its own, and return that thread's configuration."""
        config = name_thread(f"question-{next(self._numbers)}")
        config["configurable"]["checkpoint_ns"] = ""
        versions = base.checkpoint["channel_versions"]
        self._forks.put(config, base.checkpoint, base.metadata, versions)
        return config


def to_row(asked: AskedQuestion) -> dict[str, Any]:
    """A question with what came of it, for programs."""
    evidence = [
        {"message": e.message.id, "topic": e.topic, "in_view": e.in_view, "found": e.found}
        for e in asked.evidence
    ]
    question = asked.question
    return {
        "question": question.question,
        "expected": question.answer,
        "reply": asked.reply,
        "complete": asked.complete,
        "evidence": evidence,
    }


def render_question(asked: AskedQuestion, width: int, *, composed: bool) -> Text:
    """A question with what is missing of its evidence; below it the reply, if a model wrote it."""
    missing = ", ".join(e.message.id for e in asked.evidence if not e.found)
    rest = say(" · missing {missing}", missing=shorten(missing, width // 3)) if missing else ""
    text = Text.assemble(
        ("✓ ", "bold green") if asked.complete else ("✗ ", "bold yellow"),
        shorten(asked.question.question, width - 3 - cell_len(rest)),
        (rest, "yellow"),
    )
    answers = [("reply", asked.reply), ("expected", asked.question.answer)] if composed else []
    for label, answer in answers:
        if answer:
            text.append(f"\n   {say(label)} ", style="dim").append(shorten(answer, 3 * width))
    return text


def render_score(asked: Sequence[AskedQuestion]) -> Text:
    """The number of questions that had all of their evidence, as a sentence."""
    complete = sum(a.complete for a in asked)
    found = sum(e.found for a in asked for e in a.evidence)
    wanted = sum(len(a.evidence) for a in asked)
    return Text.assemble(
        (
            say(
                "{complete} of {questions}",
                complete=complete,
                questions=count_of(len(asked), "question"),
            ),
            "bold",
        ),
        say(
            " had all they rest on in the prompt, {found} of {wanted} messages in all.",
            found=found,
            wanted=wanted,
        ),
    )
