"""Evidence recall: does the context that a question gets hold the messages it rests on?"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Literal, get_args

from langchain.agents import create_agent
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from topicloom import (
    RESPONDER,
    SPLITTER,
    Absence,
    ConfigurationError,
    FileStorage,
    Receipt,
    ReviewReport,
    Session,
    SessionStore,
    Settings,
    StoredMessage,
    Topic,
    TopicMiddleware,
    TurnOptions,
    build_session_graph,
    count_budget_tokens,
    default_embedder,
    embedded_roles,
    get_session,
)
from topicloom.lab import Graph, Language, get_text
from topicloom.testing import ScriptedResponder
from topicloom_app.recordings.conversations import Conversation, Question
from topicloom_app.recordings.replay import RecordedResponder, cut_rounds, feed_round
from topicloom_lab.asking import (
    BudgetCounter,
    Questioner,
    RespondingModel,
    Shown,
)
from topicloom_lab.comparison.config import place_of
from topicloom_lab.comparison.measures import answer_stands_in, count_evidence
from topicloom_lab.conservation import check_session
from topicloom_lab.gold_splitter import GoldSplitter, SplitterKind
from topicloom_lab.known_topics import KnownSplitter, Labels, TopicKind, find_labels
from topicloom_lab.readers import EMBEDDED, ReaderChoice, SimulatedReaders
from topicloom_lab.recorded_time import DailyReviews, RecordedClock
from topicloom_lab.turn_costs import FedTurn, TurnClock

Reviews = Literal["none", "daily"]
Reason = Literal["not found", "no room", "not needed"]
"""Why a message is missing: it was not found, found and cut by the budget, or taken for not needed,
by the index or by a model that read its topic."""
REASONS: tuple[Reason, ...] = get_args(Reason)
_REASONS: Mapping[str, Reason] = {
    "quoted": "no room",
    "quoted_before": "no room",
    "no_budget": "no room",
    "needs_nothing": "not needed",
    "passed_over": "not needed",
}
"""Of the steps at which a turn loses a message; at all others it was not found. What is quoted and
missing is quoted in part."""
_ENDLESS = 10**9
"""Tokens or topics that no session comes to."""
_MATTERS = 0.5
"""Score of a topic that a simulated reader says matters: it gives .9, or .1."""


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
    calls: dict[str, int]
    """Calls by role."""
    evidence: tuple[str, ...]
    """Ids of the gold messages."""
    lost: dict[str, Reason]
    """Why those of them are missing whose whole text does not stand in the context."""
    tokens: int
    """Tokens of the context without system prompt and question, by `count_budget_tokens`."""
    recalled: int = 0
    """Those of them that were recalled for the question; the others were in view anyway."""
    evidence_tokens: int = 0
    """Tokens of the evidence in the context, excerpts included."""
    recalled_evidence: int = 0
    """Those of them that were recalled."""
    shown: float | None = None
    """Share of their tokens in the context, excerpts included; None without evidence."""
    answer_in: bool | None = None
    """True if the expected answer stands in the context, word for word; None if there is none."""
    failed: dict[str, int] = field(default_factory=dict)
    """Those of the calls that gave nothing usable."""
    reader_tokens: int = 0
    """Tokens of prompts and answers of all readers, by estimate; embedded ones have none."""
    summed_up: bool | None = None
    """True if the note sums up the best quoted topic of those that a model said matter; None where
    none of these is quoted."""

    @property
    def recall(self) -> float:
        """Share of the evidence in the context; 1 if there is none to find."""
        if not self.evidence:
            return 1.0
        return len(set(self.evidence) & set(self.message_ids)) / len(set(self.evidence))

    def share_lost(self, reason: Reason) -> float:
        """Share of the evidence that is missing for a reason."""
        return list(self.lost.values()).count(reason) / max(1, len(set(self.evidence)))

    def as_json(self) -> dict[str, Any]:
        """The row as the results file has it."""
        return asdict(self) | {"recall": round(self.recall, 4)}


@dataclass(frozen=True, slots=True)
class MemoryEvaluation:
    """One run over a conversation: replay it, then ask about it."""

    budgets: tuple[int, ...]
    """Tokens that are recalled for a question; it is asked under each of them."""
    recent: int | None = None
    """Newest messages that stay in view for a question anyway. None for what a session has in view
    where a question is asked in its place, and for nothing where it is asked at the end."""
    window: int = 8_000
    """Main window while the conversation is replayed."""
    topic_window: int = 64_000
    """Window of a topic."""
    reviews: Reviews = "none"
    """True if the session is reviewed at every midnight that the recording passes."""
    topics: TopicKind = "own"
    """The topics that messages are moved into."""
    labels: Mapping[str, Labels] = field(default_factory=dict)
    """Those that are known, by conversation; for `gold` topics, and a `gold` splitter."""
    splitter: SplitterKind = "embedded"
    """Who moves messages into the session's own topics."""
    readers: ReaderChoice = EMBEDDED
    """Who reads topics for a question."""
    agent: bool = False
    """True for an agent with `TopicMiddleware` in the place of the session graph."""
    settings: Settings = field(default_factory=Settings)
    """Everything else."""

    def __post_init__(self) -> None:
        """Check that topics and splitter go together, and that gold topics are known.

        Raises:
            ConfigurationError: If they do not, or are not.
        """
        if self.topics != "own" and self.splitter == "gold":
            raise ConfigurationError(
                "--topics {topics} needs no splitter: leave --splitter or --topics out",
                topics=self.topics,
            )
        if "gold" in (self.topics, self.splitter) and not self.labels:
            raise ConfigurationError("gold topics need the file that has them: give --threads FILE")

    @property
    def setup(self) -> dict[str, object]:
        """The keys that distinguish the rows of this run in a shared file."""
        keys = ("recent", "window", "topic_window", "reviews", "agent", "topics", "splitter")
        weight = {"readers_say": self.settings.readers}
        return {key: getattr(self, key) for key in keys} | {"readers": str(self.readers)} | weight

    def run(
        self, conversation: Conversation, folder: Path
    ) -> Iterator[MemoryRow | ReviewReport | FedTurn]:
        """Replay and ask; yields rows, and between them reviews and turns that were fed.

        The conversation is fed to the embedded roles, whoever reads for the questions, and recalls
        what the settings say: readers and budgets are asked of the same session then.

        Each question starts from the state at its place in the conversation (the end, or
        `asked_at`) and does not become part of it. Last come questions of our own for what was
        archived; their category is `BY_DATE`.

        Raises:
            BrokenInvariantError: If at the end a message is lost, twice, or not what was said.
            ConfigurationError: If gold topics are not known for all messages.
        """
        oracle = ScriptedResponder(otherwise="-")
        recorded = RecordedResponder(oracle)
        storage = FileStorage(folder, fsync=False)
        clock = RecordedClock.of(conversation.messages)
        options = self._options(conversation, recorded, storage, clock)
        saver = InMemorySaver()
        graph = self._compile(options, saver)
        config: RunnableConfig = {"configurable": {"thread_id": conversation.id}}
        interview = self._open_interview(conversation, options, saver, oracle)
        if self.reviews == "daily":
            daily = DailyReviews(graph, clock, conversation.id)
        due, turn = _group_by_round(conversation), TurnClock()
        for place, round_ in enumerate(cut_rounds(conversation)):
            moment = clock.after(round_.said)
            if self.reviews == "daily":
                yield from daily.until(moment)
            clock.now = moment
            yield from interview.ask(due.get(place, ()), in_place=True)
            turn.start()
            feed_round(graph, recorded, round_, {**config, "callbacks": [turn]})
            yield turn.stop(len(round_))
        yield from interview.ask(due.get(None, ()), in_place=False)
        session = get_session(graph, config)
        store = SessionStore(FileStorage(folder).open(session.id))
        check_session(store, session, [m for m in conversation.messages if m.text.strip()])
        yield from interview.ask(questions_by_date(store, session), in_place=False)

    def _compile(self, options: dict[str, Any], saver: InMemorySaver) -> Graph:
        return (_compile_agent if self.agent else _compile_graph)(options, saver)

    def _open_interview(
        self,
        conversation: Conversation,
        options: dict[str, Any],
        saver: InMemorySaver,
        oracle: ScriptedResponder,
    ) -> _Interview:
        """What asks questions of the session that a graph of the same options and saver has."""
        storage, settings = options["storage"], options["settings"]
        readers = SimulatedReaders(self.readers, conversation, storage)
        if self.readers != EMBEDDED:
            options = options | {"roles": readers.play(options["roles"], settings.topic_window)}
        config: RunnableConfig = {"configurable": {"thread_id": conversation.id}}
        questioners = {}
        for budget in self.budgets:
            recalling = settings.model_copy(update={"recall_tokens": budget})
            graph = self._compile(options | {"settings": recalling}, saver)
            questioners[budget] = Questioner(graph, config, storage, oracle)
        said = (m.id for m in conversation.messages if m.text.strip())
        numbers = {id_: f"m{n}" for n, id_ in enumerate(said, start=1)}
        return _Interview(self, conversation, readers, questioners, numbers)

    def _options(
        self,
        conversation: Conversation,
        recorded: RecordedResponder,
        storage: FileStorage,
        clock: RecordedClock,
    ) -> dict[str, Any]:
        """The arguments of session graph and review graph."""
        windows = {"window": self.window, "topic_window": self.topic_window}
        roles = embedded_roles(default_embedder()).replace(RESPONDER, recorded)
        if self.topics == "none":
            # One topic is never divided, however large it grows.
            windows["topic_window"] = _ENDLESS
            roles = roles.replace(SPLITTER, KnownSplitter(storage, None))
        elif self.topics == "gold":
            # Only a topic that the splitter is told of can be gone on with.
            windows["index_topics"] = _ENDLESS
            known = find_labels(self.labels, conversation)
            roles = roles.replace(SPLITTER, KnownSplitter(storage, known))
        elif self.splitter == "gold":
            told = KnownSplitter(storage, find_labels(self.labels, conversation))
            roles = roles.replace(SPLITTER, GoldSplitter(told, self.window))
        settings = self.settings.model_copy(update=windows)
        return {"settings": settings, "roles": roles, "storage": storage, "clock": clock}


@dataclass(frozen=True, slots=True)
class _Interview:
    """Asks a session questions, each of them under every budget."""

    evaluation: MemoryEvaluation
    conversation: Conversation
    readers: SimulatedReaders
    questioners: Mapping[int, Questioner]
    """One for each budget."""
    numbers: Mapping[str, str]
    """Short ids of messages in the session, by their ids in the recording."""

    def ask(self, questions: Iterable[Question], *, in_place: bool) -> Iterator[MemoryRow]:
        """Ask questions at the end, or where they stand in the conversation; yields rows."""
        for question in questions:
            self.readers.expect(question)
            for budget, questioner in self.questioners.items():
                options = self._turn_options(budget, in_place=in_place)
                sought = [self.numbers[i] for i in question.evidence if i in self.numbers]
                shown = questioner.ask(question.question, options, sought)
                yield _measure(self.conversation, question, budget, shown, self.numbers)

    def _turn_options(self, budget: int, *, in_place: bool) -> TurnOptions:
        """The options of a question's turn; one in its place finds the view as it is there.

        What is recalled for the question takes no room from what is in view, and always fits.
        """
        kept, recent = None if in_place else 0, self.evaluation.recent
        return TurnOptions(
            keep_messages=kept if recent is None else recent,
            window=self.evaluation.window + budget,
        )


def _measure(
    conversation: Conversation,
    question: Question,
    budget: int,
    shown: Shown,
    numbers: Mapping[str, str],
) -> MemoryRow:
    context = "\n".join(map(get_text, shown.prompt))
    wanted = set(question.evidence)
    gold = [m.text for m in conversation.messages if m.id in wanted]
    held = count_evidence(gold, context)
    whole = tuple(r.source for r in shown.originals if r.source and r.text in context)
    missing = wanted.difference(whole)
    return MemoryRow(
        conversation=conversation.id,
        question=question.id,
        category=question.category,
        budget=budget,
        message_ids=whole,
        calls=dict(shown.calls),
        evidence=question.evidence,
        lost={i: _explain(shown.lost.get(numbers.get(i, ""))) for i in sorted(missing)},
        tokens=count_budget_tokens(context),
        recalled=count_budget_tokens(shown.note),
        evidence_tokens=held.held,
        recalled_evidence=count_evidence(gold, shown.note).held,
        shown=held.share,
        answer_in=answer_stands_in(context, question.answer),
        failed=dict(shown.failed),
        reader_tokens=shown.receipt.reading_tokens,
        summed_up=_find_summary(shown.receipt),
    )


def _explain(absence: Absence | None) -> Reason:
    """Why a message is missing; one that was said later, or is blank, was not found."""
    return _REASONS.get(absence.step, "not found") if absence else "not found"


def _find_summary(receipt: Receipt) -> bool | None:
    """See `MemoryRow.summed_up`. Where the stand-in of a model read, no model said anything."""
    if receipt.reading is None:
        return None
    matter = (t for t in receipt.quoted if receipt.scores.get(t.topic, 0.0) >= _MATTERS)
    best = next(matter, None)
    return None if best is None else bool(best.summary)


def _compile_graph(options: dict[str, Any], saver: InMemorySaver) -> Graph:
    return build_session_graph(**options, counter=BudgetCounter()).compile(checkpointer=saver)


def _compile_agent(options: dict[str, Any], saver: InMemorySaver) -> Graph:
    memory = TopicMiddleware(**options, counter=BudgetCounter())
    model = RespondingModel(responder=options["roles"][RESPONDER])
    return create_agent(model, middleware=[memory], context_schema=TurnOptions, checkpointer=saver)


def _group_by_round(conversation: Conversation) -> dict[int | None, list[Question]]:
    """Questions by the number of the round that they are asked before; None for the end."""
    said = conversation.messages
    numbers = {m.id: number for number, m in enumerate(said)}
    rounds = [max(numbers[i] for i in round_.ids) for round_ in cut_rounds(conversation)]
    due: dict[int | None, list[Question]] = {}
    for question in conversation.questions:
        place = bisect_left(rounds, place_of(question, said))
        due.setdefault(place if place < len(rounds) else None, []).append(question)
    return due


BY_DATE = "archived, by date"
"""Category of these questions."""


def questions_by_date(store: SessionStore, session: Session) -> list[Question]:
    """One question for each archived topic, for what was said in it on its newest day.

    The evidence is all that was said in it on that day, which may be more than fits a budget.
    """
    found = []
    for topic in store.topic_table(session).archived():
        stored_messages = store.topic_messages(session, topic)
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
