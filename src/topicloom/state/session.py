"""The state of a session and of its turn in a checkpoint: heads of chains and counters."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationInfo, field_validator

from topicloom.errors import NewerFormatError
from topicloom.state.activation import ActivationChange
from topicloom.state.calibration import TokenCalibration
from topicloom.state.language import Language
from topicloom.state.splitting import SplitPlan
from topicloom.state.zones import place_in_zone

FORMAT = 1
"""Format of what is kept of a session, in checkpoints and in storage; what says none has the
first. Fields that are only added do not make another: they survive the turns of older versions."""


def check_format(what: str, found: object) -> None:
    """Raise NewerFormatError if what was found, in a place called `what`, has a newer format."""
    if isinstance(found, int) and found > FORMAT:
        raise NewerFormatError(
            "{what} has format {found}, and this version of topicloom knows formats up to"
            " {known}: a newer one wrote it. Upgrade topicloom to open it",
            what=what,
            found=found,
            known=FORMAT,
        )


class Session(BaseModel, frozen=True, extra="allow"):
    """The durable core of a session: about a kilobyte, however long the history is.

    The checkpoint is the authority. A head names the newest entry of an append-only
    chain in storage, so a fork from an old checkpoint sees exactly the entries of that time.
    """

    id: str
    """The thread."""
    format: int = 1
    """Format of the session; what a version with another writes says so."""
    branch: str = ""
    """The branch that it is on; "" until something forks, or a thread is copied."""
    transcript: str | None = None
    """Head of the chain of all messages, in order."""
    count: int = 0
    """Messages in the conversation."""
    superseded: str | None = None
    """Head of the chain of edits of the conversation: messages that were removed or changed."""
    shown: int = 0
    """Number of the message from which on the `messages` channel shows all; 0 if not known."""
    tail: int = 1
    """Number of the first message that is in no topic yet."""
    titles: dict[str, str] = {}
    """Titles of imported chats that have messages in no topic yet, by the id of the chat's first
    message; "" for a chat without a title."""
    view: int = 1
    """Number of the first message that the main window shows; never after `tail`."""
    boundaries: tuple[int, ...] = ()
    """Numbers of the newest messages with which, by an arbiter, something else begins."""
    roster: str | None = None
    """Head of the chain of topics."""
    ranges: str | None = None
    """Head of the chain of ranges, which says which messages are in which topic."""
    changes: str | None = None
    """Head of the journal of changes to topics, by reviews and by people."""
    topics: int = 0
    """Topics ever created."""
    ledger: str | None = None
    """Head of the recall notes since the last split."""
    ledger_tokens: int = 0
    """Tokens of these notes in the prompt."""
    turns: str | None = None
    """Head of the turn log (receipts)."""
    turn: int = 0
    """Turns taken."""
    user_id: str = ""
    """The user that the thread belongs to; "" for nobody."""
    scope: str = ""
    """The scope of the user that it is in, such as a project; "" for none."""
    account: str = ""
    """The account whose limits its calls count to; "" for none."""
    timezone: str = ""
    """Where its user is, such as `Europe/Paris`, as a turn of it said last; "" if none did."""
    usual_timezone: str = ""
    """Where its user is in threads that never said it; "" for where the setting says."""
    facts_at: str = ""
    """Of a fork until its next split, when its checkpoint was written, ISO 8601: what other threads
    learnt of the user later is not shown. "" for now."""
    facts_chosen: str = ""
    """In threads of a user, when the facts that the main window shows were chosen, ISO 8601."""
    edits: str | None = None
    """Head of the journal of edits of the application's document."""
    purges: int = 0
    """Digest of the purges that the `messages` channel knows of; 0 for none. If the storage has
    another one by now, something was purged since, and the channel may still show it."""
    language: Language = "en"
    """Language of the prompts; looked at again at every split, so that prefixes last."""
    active: dict[str, tuple[float, ...]] = {}
    """Active topics with their relevance in the last rounds, newest last."""
    facts: dict[str, str] = {}
    """Key and day of each fact that the main window shows; chosen at a split, so that prefixes
    last. The text is fetched: what is purged is shown no more."""
    note_tokens: int = 0
    """Moving average of what a turn's recall adds to the prompt, in tokens."""
    fixed: int = 0
    """Tokens of an agent's own system prompt and tools, as of its last call of the model."""
    correction: TokenCalibration = TokenCalibration()
    """Calibration of the estimates by the provider's reports."""

    @field_validator("format")
    @classmethod
    def _check_format(cls, found: int, info: ValidationInfo) -> int:
        check_format(f"session {info.data.get('id')!r}", found)
        return found

    @property
    def zone(self) -> str:
        """Where its user is; "" for where the setting says."""
        return self.timezone or self.usual_timezone

    def place(self, moment: datetime) -> datetime:
        """A moment by the clocks of where its user is."""
        return place_in_zone(moment, self.zone)

    def for_readers(self) -> Session:
        """The part of it that a reader needs: the payload of every one of them is checkpointed."""
        needed = {"id", "transcript", "count", "superseded", "roster", "ranges", "tail", "language"}
        return Session(**self.model_dump(include=needed))


class SearchRequest(BaseModel, frozen=True):
    """The arguments that the model gave to `activate_topic`."""

    query: str
    when: str | None = None
    """A time expression in the user's words: "last month", "上个月", "2026-03-03"."""
    include_archived: bool = False
    """True if archived topics may be found: only when the user asks for them."""
    forgotten: bool = False
    """True if the model says that the user holds something was forgotten."""


class SearchScope(BaseModel, frozen=True):
    """What a search looked at, and what it did not."""

    briefs: int = 0
    """Topics that were looked for by their briefs."""
    read: int = 0
    """Topics that were read for it."""
    unsearched: int = 0
    """Archived topics that were not looked at."""
    other_days: bool = False
    """True if these are of other days than the ones asked for."""
    missed: str = ""
    """The days asked for, if nothing was found on them and others were searched."""


class Search(BaseModel, frozen=True):
    """One search through the index window, by the model or for an amnesia cue."""

    query: str
    when: str | None = None
    """The time expression, as given."""
    days: tuple[str, str] | None = None
    """The first and the last day that it means, ISO 8601."""
    archived: bool = False
    """True if archived topics were searched too."""
    found: tuple[str, ...] = ()
    """Topics found that are active after it."""
    listed: tuple[str, ...] = ()
    """Topics found, active or not, best first, where several may be meant."""
    candidates: tuple[str, ...] = ()
    """Topics of which one is meant, to ask the user about; only when the result is ambiguous."""
    scope: SearchScope = SearchScope()
    reason: str = ""
    """Why nothing was found."""
    media: tuple[str, ...] = ()
    """Short ids of the messages whose images it asks for; it searches nothing else."""


NOTHING_BEFORE = (0, 0, 0.0)
"""Of a turn that goes on with nothing; see `Turn.before`."""


class Lookup(BaseModel, frozen=True):
    """What is looked up in the index of a session's topics."""

    query: str
    days: tuple[str, str] | None = None
    """First and last day of what is asked for, ISO 8601, if it is asked for by date."""
    before: tuple[int, int, float] = NOTHING_BEFORE
    """What the turn goes on with; see `Turn.before`."""
    from_user: bool = False
    """True if the query is the user's message, which may need nothing from earlier messages."""
    archived: bool = False
    """True if archived topics are searched too."""


class ReadingEffect(BaseModel, frozen=True):
    """What models that read topics changed in what was quoted for a turn."""

    added: tuple[str, ...] = ()
    """Short ids of messages that are quoted, and that the index alone would not have quoted."""
    kept_out: tuple[str, ...] = ()
    """Those that the index alone would have quoted, and that are not quoted."""
    summaries: int = 0
    """Summaries that are shown."""

    def join(self, other: ReadingEffect) -> ReadingEffect:
        """What both changed, this one first."""
        added = tuple(dict.fromkeys((*self.added, *other.added)))
        kept_out = tuple(dict.fromkeys((*self.kept_out, *other.kept_out)))
        return ReadingEffect(
            added=added,
            kept_out=tuple(i for i in kept_out if i not in added),
            summaries=self.summaries + other.summaries,
        )


class StepTime(NamedTuple):
    """The time that a step of a turn took."""

    name: str
    """The node of the graph."""
    began: float
    """When it began, in seconds since the epoch."""
    seconds: float

    @property
    def ended(self) -> float:
        """When it ended, in seconds since the epoch."""
        return self.began + self.seconds


class Turn(BaseModel, frozen=True, extra="allow"):
    """The working data of one turn; started afresh by `ingest`, behind `reconcile`."""

    number: int = 0
    """Number of the turn, from 1; more than the session's turns until the turn is closed."""
    first: int = 0
    """Number of the turn's first message; 0 until `ingest` took it in."""
    user: int = 0
    """Number of the message to answer; less than `first` where tools of the caller's ran for it."""
    query: str = ""
    """That message, with its references resolved where a rewriter is set."""
    answer: bool = True
    """True if there is a message to answer; otherwise the turn only records."""
    said: bool = True
    """True if it took in any message; a turn that only carries changes takes in none."""
    silent: bool = False
    """True if it may bring no message: what was reconciled is reason enough for a turn."""
    amnesia: bool = False
    """True if the user says that something was forgotten."""
    since: int = 0
    """Number of the message with which the talk before that message began; 0 if there is none."""
    continues: float = 0.0
    """Probability that the message goes on with it, by the adsorber."""
    plan: SplitPlan | None = None
    """The cut that `estimate` asks for, if any."""
    searches: tuple[Search, ...] = ()
    """Searches so far."""
    request: SearchRequest | None = None
    """The search that the model asked for last, until it is made."""
    unread: tuple[tuple[str, ...], ...] = ()
    """Topics whose readers have to run next: those of each call."""
    reads_others: bool = False
    """True if one more reads what the index finds in other topics."""
    idle: bool = False
    """True if the message needs nothing from earlier messages, such as "ok"."""
    about: dict[str, float] = {}
    """Topics that it is about, with how likely each is."""
    effect: ReadingEffect | None = None
    """What models that read topics changed; None if none did."""
    activated: tuple[str, ...] = ()
    """Topics activated in this turn."""
    deactivated: tuple[str, ...] = ()
    """Topics deactivated in this turn."""
    split: tuple[str, ...] = ()
    """Topics that messages moved into in this turn."""
    sections: dict[str, int] = {}
    """Tokens of the last main prompt by section."""
    abandoned: int = 0
    """Replies thrown away because more topics were asked for."""
    started: str = ""
    """When the turn began, ISO 8601."""
    events: tuple[str, ...] = ()
    """Events for the receipt, in words (`split m1-m40 into ...`)."""
    changed: tuple[str, ...] = ()
    """Topics that changes were made to, which the application passed in."""
    refused: dict[str, str] = {}
    """Topics that such changes did not fit any more, and why."""
    fast: bool = False
    """True if, by the plan, the message only wants the application's document changed."""
    edited: tuple[tuple[Any, ...], ...] = ()
    """Edits of the document that were made."""
    rejected: tuple[str, ...] = ()
    """What was wrong with edits that were not."""
    attempts: int = 0
    """How often the main model's edits were refused."""
    steps: tuple[StepTime, ...] = ()
    """The steps so far, in order; readers' are those of their calls."""

    def join(self, change: ActivationChange) -> Turn:
        """The turn behind a change of what is active."""
        return self.model_copy(
            update={
                "activated": (*self.activated, *change.activated),
                "deactivated": (*self.deactivated, *change.deactivated),
            }
        )

    @property
    def before(self) -> tuple[int, int, float]:
        """First and last message that the turn goes on with, and how likely it does.

        A search of its own goes on with none.
        """
        if self.searches or not self.since:
            return NOTHING_BEFORE
        return self.since, self.user - 1, self.continues

    @property
    def lookup(self) -> Lookup:
        """What the turn looks up: its newest search, or what its own message is about."""
        newest = self.searches[-1] if self.searches else Search(query="")
        return Lookup(
            query=self.sought,
            days=newest.days,
            before=self.before,
            from_user=not self.searches,
            archived=newest.archived,
        )

    @property
    def sought(self) -> str:
        """What originals are looked for by: the newest search's query, or else the turn's own."""
        return (self.searches[-1].query if self.searches else "").strip() or self.query
