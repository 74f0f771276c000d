"""Evidence recall: does the context that a question gets hold the messages it rests on?

And is nothing of the session lost, there twice, or changed?
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from topicloom.context.tokens import count_budget_tokens
from topicloom.errors import BrokenInvariantError
from topicloom.graph.middleware import TopicMiddleware
from topicloom.graph.review import build_review_graph
from topicloom.graph.session import build_session_graph
from topicloom.graph.stored import Graph, get_session
from topicloom.index.encoders import default_embedder
from topicloom.recordings.conversations import Conversation, Question, RecordedMessage
from topicloom.recordings.replay import cut_rounds, feed_round
from topicloom.review.channels import ReviewReport
from topicloom.roles.choice import embedded_roles
from topicloom.roles.responder import RESPONDER, RecordedResponder
from topicloom.settings import Settings
from topicloom.state.channels import TurnOptions
from topicloom.state.language import Language
from topicloom.state.rounds import group_rounds
from topicloom.state.session import Session
from topicloom.state.stored_message import StoredMessage, get_text
from topicloom.state.topics import Topic
from topicloom.storage.files import FileStorage
from topicloom.storage.sessions import SessionStore
from topicloom.testing import ScriptedResponder
from topicloom_lab.asking import BudgetCounter, Questioner, RespondingModel
from topicloom_lab.comparison.measures import answer_stands_in, share_shown
from topicloom_lab.readers import EMBEDDED, ReaderChoice, SimulatedReaders
from topicloom_lab.recorded_time import DailyReviews, RecordedClock


def check_session(
    store: SessionStore, session: Session, said: Sequence[RecordedMessage] | None = None
) -> None:
    """Check that every message is in exactly one place, word for word.

    Args:
        store: The session's storage, best opened anew: nothing is then taken from memory.
        session: As its checkpoint has it.
        said: What was said, in order, where that is known from elsewhere.

    Raises:
        BrokenInvariantError: If something does not hold; it names the message.
        StorageError: If a message cannot be read.
    """
    transcript = store.messages(session)
    _check_numbers(transcript, session)
    if said is not None:
        _check_verbatim(transcript, said)
    homes = _homes(store, session, transcript)
    for stored in transcript[: session.tail - 1]:
        if stored.seq not in homes:
            raise _broken(session, stored, "is in no topic, and not in the tail either")
    for round_ in group_rounds(transcript[: session.tail - 1]):
        parts = {homes[r.seq] for r in round_.messages}
        if len(parts) > 1:
            where = " and ".join(sorted(parts))
            raise _broken(session, round_.messages[0], f"and its exchange are parted: {where}")


def _check_numbers(transcript: Sequence[StoredMessage], session: Session) -> None:
    for place, stored in enumerate(transcript, start=1):
        if stored.seq != place:
            raise _broken(session, stored, f"stands in place {place}")
    if len(transcript) != session.count:
        raise BrokenInvariantError(
            f"session {session.id!r} has {len(transcript)} messages, not {session.count}"
        )


def _check_verbatim(transcript: Sequence[StoredMessage], said: Sequence[RecordedMessage]) -> None:
    for stored, message in zip(transcript, said, strict=False):
        if (stored.source, stored.text) != (message.id, message.text):
            raise BrokenInvariantError(
                f"message {stored.id} is not what was said: {stored.source!r} {stored.text[:60]!r}"
                f" instead of {message.id!r} {message.text[:60]!r}"
            )
    if len(transcript) != len(said):
        missing = said[len(transcript) : len(transcript) + 1]
        first = f": {missing[0].id!r} is missing" if missing else ""
        raise BrokenInvariantError(
            f"{len(said)} messages were said, {len(transcript)} are kept{first}"
        )


def _homes(
    store: SessionStore, session: Session, transcript: Sequence[StoredMessage]
) -> dict[int, str]:
    """The topic of each message that is in one, by number."""
    homes: dict[int, str] = {}
    for topic in store.topic_table(session):
        last = 0
        for stored in store.topic_messages(topic):
            if stored.seq >= session.tail:
                raise _broken(session, stored, f"is in the tail and in {topic.id}")
            if stored.seq in homes:
                raise _broken(session, stored, f"is in {homes[stored.seq]} and in {topic.id}")
            if stored != transcript[stored.seq - 1]:
                raise _broken(session, stored, f"reads otherwise in {topic.id}")
            if stored.seq <= last:
                raise _broken(session, stored, f"stands after m{last} in {topic.id}")
            homes[stored.seq] = topic.id
            last = stored.seq
    return homes


def _broken(session: Session, stored: StoredMessage, what: str) -> BrokenInvariantError:
    return BrokenInvariantError(f"message {stored.id} of session {session.id!r} {what}")


Reviews = Literal["none", "daily"]


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """The measures of one question."""

    conversation: str
    question: str
    """Id of the question."""
    category: str
    budget: int
    message_ids: tuple[str, ...]
    """Ids, in the recording, of the originals whose whole text stands in the context."""
    tokens: int
    """Tokens of the context without system prompt and question, by `count_budget_tokens`."""
    calls: dict[str, int]
    """Calls by role."""
    evidence: tuple[str, ...]
    """Ids of the gold messages."""
    shown: float | None = None
    """Share of their tokens in the context, excerpts included; None without evidence."""
    answer_in: bool | None = None
    """True if the expected answer stands in the context, word for word; None if there is none."""
    failed: dict[str, int] = field(default_factory=dict)
    """Those of the calls that gave nothing usable."""

    @property
    def recall(self) -> float:
        """Share of the evidence in the context; 1 if there is none to find."""
        if not self.evidence:
            return 1.0
        return len(set(self.evidence) & set(self.message_ids)) / len(set(self.evidence))

    def as_json(self) -> dict[str, Any]:
        """The row as the results file has it."""
        return asdict(self) | {"recall": round(self.recall, 4)}


@dataclass(frozen=True, slots=True)
class MemoryEvaluation:
    """One run over a conversation: replay it, then ask about it."""

    budget: int
    """Tokens of recalled context."""
    recent: int = 0
    """Newest messages that stay in view anyway."""
    window: int = 8_000
    """Main window while the conversation is replayed."""
    topic_window: int = 64_000
    """Window of a topic."""
    reviews: Reviews = "none"
    """True if the session is reviewed at every midnight that the recording passes."""
    readers: ReaderChoice = EMBEDDED
    """Who reads topics for a question."""
    agent: bool = False
    """True for an agent with `TopicMiddleware` in the place of the session graph."""
    settings: Settings = field(default_factory=Settings)
    """Everything else."""

    @property
    def setup(self) -> dict[str, object]:
        """The keys that distinguish the rows of this run in a shared file."""
        keys = ("budget", "recent", "window", "topic_window", "reviews", "agent")
        return {key: getattr(self, key) for key in keys} | {"readers": str(self.readers)}

    def run(
        self, conversation: Conversation, folder: Path
    ) -> Iterator[MemoryRow | ReviewReport | int]:
        """Replay and ask; yields rows, and between them reviews and how many messages were fed.

        The conversation is fed to the embedded roles, whoever reads for the questions: they are
        asked of the same session then.

        Each question starts from the state at its place in the conversation (the end, or
        `asked_at`) and does not become part of it. Last come questions of our own for what was
        archived; their category is `BY_DATE`.

        Raises:
            BrokenInvariantError: If at the end a message is lost, twice, or not what was said.
        """
        oracle = ScriptedResponder(otherwise="-")
        recorded = RecordedResponder(oracle)
        storage = FileStorage(folder, fsync=False)
        clock = RecordedClock.of(conversation.messages)
        options = self._options(recorded, storage, clock)
        saver = InMemorySaver()
        compiled = _compile_agent if self.agent else _compile_graph
        graph = asked = compiled(options, saver)
        readers = SimulatedReaders(self.readers, conversation, storage)
        if self.readers != EMBEDDED:
            roles = readers.play(options["roles"], self.topic_window)
            asked = compiled(options | {"roles": roles}, saver)
        config: RunnableConfig = {"configurable": {"thread_id": conversation.id}}
        if self.reviews == "daily":
            reviewed = build_review_graph(graph, **options).compile()
            daily = DailyReviews(reviewed, clock, conversation.id)
        questioner = Questioner(asked, config, storage, oracle, self.recent)
        ask = partial(self._ask, questioner, readers, conversation)
        due = _by_place(conversation)
        for round_ in cut_rounds(conversation):
            moment = clock.after(round_.said)
            if self.reviews == "daily":
                yield from daily.until(moment)
            clock.now = moment
            for message_id in round_.ids:
                for question in due.pop(message_id, ()):
                    yield ask(question)
            feed_round(graph, recorded, round_, config)
            yield len(round_)
        for question in (q for questions in due.values() for q in questions):
            yield ask(question)
        session = get_session(graph, config)
        store = SessionStore(FileStorage(folder).open(session.id))
        check_session(store, session, [m for m in conversation.messages if m.text.strip()])
        for question in questions_by_date(store, session):
            yield ask(question)

    def _options(
        self, recorded: RecordedResponder, storage: FileStorage, clock: RecordedClock
    ) -> dict[str, Any]:
        """The arguments of session graph and review graph."""
        settings = self.settings.model_copy(
            update={
                "window": self.window,
                "topic_window": self.topic_window,
                "recall_tokens": self.budget,
            }
        )
        roles = embedded_roles(default_embedder()).replace(RESPONDER, recorded)
        return {"settings": settings, "roles": roles, "storage": storage, "clock": clock}

    def _ask(
        self,
        questioner: Questioner,
        readers: SimulatedReaders,
        conversation: Conversation,
        question: Question,
    ) -> MemoryRow:
        readers.expect(question)
        shown = questioner.ask(question.question)
        context = "\n".join(map(get_text, shown.prompt))
        gold = set(question.evidence)
        return MemoryRow(
            conversation=conversation.id,
            question=question.id,
            category=question.category,
            budget=self.budget,
            message_ids=tuple(r.source for r in shown.originals if r.source and r.text in context),
            tokens=count_budget_tokens(context),
            calls=dict(shown.calls),
            evidence=question.evidence,
            shown=share_shown([m.text for m in conversation.messages if m.id in gold], context),
            answer_in=answer_stands_in(context, question.answer),
            failed=dict(shown.failed),
        )


def _compile_graph(options: dict[str, Any], saver: InMemorySaver) -> Graph:
    return build_session_graph(**options, counter=BudgetCounter()).compile(checkpointer=saver)


def _compile_agent(options: dict[str, Any], saver: InMemorySaver) -> Graph:
    memory = TopicMiddleware(**options, counter=BudgetCounter())
    model = RespondingModel(responder=options["roles"][RESPONDER])
    return create_agent(model, middleware=[memory], context_schema=TurnOptions, checkpointer=saver)


def _by_place(conversation: Conversation) -> dict[str | None, list[Question]]:
    due: dict[str | None, list[Question]] = {}
    for question in conversation.questions:
        due.setdefault(question.asked_at, []).append(question)
    return due


BY_DATE = "archived, by date"
"""Category of these questions."""


def questions_by_date(store: SessionStore, session: Session) -> list[Question]:
    """One question for each archived topic, for what was said in it on its newest day.

    The evidence is all that was said in it on that day, which may be more than fits a budget.
    """
    found = []
    for topic in store.topic_table(session).archived():
        stored_messages = store.topic_messages(topic)
        said = [r for r in stored_messages if r.day == stored_messages[-1].day]
        if (day := _date(said)) is not None:
            found.append(_question(topic, day, said, session.language))
    return found


def _question(
    topic: Topic, day: date, said: Sequence[StoredMessage], language: Language
) -> Question:
    text = f"What did we talk about on {day.day} {day:%B} {day.year}: {topic.name}?"
    if language == "zh":
        text = f"{day.year}年{day.month}月{day.day}日我们聊了什么：{topic.name}？"
    evidence = tuple(r.source for r in said if r.source)
    return Question(id=f"archived:{topic.id}", category=BY_DATE, question=text, evidence=evidence)


def _date(said: Sequence[StoredMessage]) -> date | None:
    """The day that messages were said on; None if there are none, or it is unknown."""
    try:
        return date.fromisoformat(said[0].day)
    except (IndexError, ValueError):
        return None
