"""What the inspector's page is answered. `bin/generate` writes the page's types of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from topicloom import (
    Absence,
    ActivationPolicy,
    Fact,
    MemoryChange,
    MemoryTopic,
    Receipt,
    StoredMessage,
)
from topicloom.hosting import cut
from topicloom_app.ui.grounds import Ground, Place
from topicloom_app.ui.replayed import ReplayedTurns

_TEXT = 20_000
"""Characters of a message in a list; one that is asked for alone comes whole."""


class ShownSession(BaseModel, frozen=True):
    """A session, and what the page has to know beside it."""

    name: str
    count: int
    """Messages in it."""
    tail: int
    """Number of the first message that is in no topic yet."""
    turn: int
    """Turns taken."""
    owner: str
    """The name of the user whose session it is; "" if none is known."""
    model: str
    """The name of the model that replies; "" if none is set."""
    editing: bool
    """True if changes are taken."""
    sessions: tuple[str, ...]
    """Names of the sessions that can be opened."""


class ShownTopic(MemoryTopic, frozen=True):
    """A topic in the list of all."""

    relevance: float | None
    """How relevant it was lately, 0 to 1, if it is active."""


class ProvisionalTopic(BaseModel, frozen=True):
    """A topic that unsplit messages would open now."""

    name: str
    """"" for the messages that would open none."""
    first: str
    """Its first message."""
    count: int


class ShownTail(BaseModel, frozen=True):
    """The unsplit messages, and how far the window is from being split."""

    topics: tuple[ProvisionalTopic, ...]
    full: float
    """Share of the main window that the newest prompt filled."""
    splits_at: float
    """Share from which the older messages move into topics."""


class ShownMessage(BaseModel, frozen=True):
    """A message with the topic that it is in."""

    id: str
    seq: int
    role: str
    label: str
    time: str
    text: str
    whole: bool
    """False if the text is cut."""
    media: int
    """Images and other media that it has."""
    topic: str
    """Id of its topic; "" if it is in none."""
    relevance: float | None
    """How well it fits what was searched for, 0 to 1; 0 if it is only the closest in meaning."""


def show_message(
    message: StoredMessage, topic: str = "", *, most: int = _TEXT, relevance: float | None = None
) -> ShownMessage:
    """A message with the topic that it is in, cut to some characters.

    Where it was searched for, `relevance` says how well it fits: 0 to 1.
    """
    return ShownMessage(
        id=message.id,
        seq=message.seq,
        role=message.role,
        label=message.label,
        time=message.time,
        text=cut(message.text, most),
        whole=len(message.text) <= most,
        media=len(message.media),
        topic=topic,
        relevance=relevance,
    )


class ShownGround(ShownMessage, frozen=True):
    """A message that a prompt had, with the sentence that says most of what the reply says."""

    place: Place
    says: str
    """The sentence of the reply that rests on it; "" if none does."""


def show_ground(ground: Ground, topic: str) -> ShownGround:
    """A ground with the topic that its message is in."""
    shown = show_message(ground.message, topic).model_dump() | {"text": ground.sentence}
    return ShownGround(**shown, place=ground.place, says=ground.says)


class ShownTurn(BaseModel, frozen=True):
    """What a turn was asked and replied, and what the reply rests on."""

    asked: ShownMessage
    reply: ShownMessage | None
    """None if nothing was replied."""
    grounds: tuple[ShownGround, ...]
    """What the reply rests on, best first, then what else was quoted."""


class TopicThen(BaseModel, frozen=True):
    """A topic as a turn left it."""

    name: str
    count: int
    """Messages in it."""
    fill: float
    """Share of what a reader's window holds, 0 to 1."""


class ShownReceipt(Receipt, frozen=True):
    """A receipt with what a person wants to know beside it."""

    costs: tuple[float | None, ...]
    """What each call cost, in the currency of the settings' prices."""
    topics: dict[str, TopicThen]
    """The topics that it names, by id."""


class TurnMark(BaseModel, frozen=True):
    """What a turn did, for a line over the days."""

    message: str
    """Short id of the message that it answered."""
    day: str
    quoted: dict[str, int]
    """How many messages were quoted, by the id of their topic."""
    activated: tuple[str, ...]
    split: tuple[str, ...]
    searched: bool


class Moment(BaseModel, frozen=True):
    """A point in time that the session can be shown at: the end of a turn."""

    id: str
    """The checkpoint."""
    parent: str
    """The end of the turn before it; "" if that is out of reach."""
    turn: int
    count: int
    time: str


class PromptMessage(BaseModel, frozen=True):
    """A message of a prompt."""

    role: str
    text: str


class IndexState(BaseModel, frozen=True):
    """How far the index of a session is."""

    left: int
    """Messages that a search does without as yet."""


class ShownSpan(BaseModel, frozen=True):
    """A fact of a user for as long as it held."""

    key: str
    fact: str
    since: str
    until: str
    """"" if it still holds."""
    at: str
    thread: str
    scope: str
    messages: tuple[str, ...]
    quote: str = ""


class ShownPerson(BaseModel, frozen=True):
    """The user whose session it is."""

    user: str
    scope: str
    threads: dict[str, str]
    """The scope of each thread of the user that the session may see."""
    spans: tuple[ShownSpan, ...]


class ShownForgotten(BaseModel, frozen=True):
    """What was removed for good, or would be."""

    messages: tuple[ShownMessage, ...]
    topics: tuple[str, ...]
    facts: Mapping[str, Fact]
    left: tuple[str, ...]


class Replays(BaseModel, frozen=True):
    """What thresholds of activation would have done: those in force, and others."""

    in_force: tuple[ActivationPolicy, ReplayedTurns]
    policy: tuple[ActivationPolicy, ReplayedTurns]


class NotUnderstood(BaseModel, frozen=True):
    """Something of an export that could not be read."""

    what: str
    count: int
    example: str


class FoundExport(BaseModel, frozen=True):
    """What an export holds, as `ImportSummary.describe` has it."""

    conversations: int
    recorded: int
    there_already: int
    formats: dict[str, int]
    first: str
    last: str
    names: tuple[str, ...]
    left_out: dict[str, int]
    not_understood: tuple[NotUnderstood, ...]
    dated_by_neighbours: int
    dated_today: int


class TextEvent(TypedDict):
    """A part of the reply."""

    type: Literal["text"]
    text: str


class TopicsEvent(TypedDict):
    """Topics whose readers begin, or that messages moved into."""

    type: Literal["reading", "moved"]
    topics: tuple[str, ...]


class ReadEvent(TypedDict):
    """A topic was read."""

    type: Literal["read"]
    topic: str
    score: float


class QuotedEvent(TypedDict):
    """Messages were quoted."""

    type: Literal["quoted"]
    quotes: tuple[str, ...]


class SplitEvent(TypedDict):
    """Messages begin to move into topics."""

    type: Literal["split"]
    rounds: int
    first: int
    last: int


class SearchingEvent(TypedDict):
    """The model looks for topics."""

    type: Literal["searching"]
    query: str
    when: str | None


class RememberingEvent(TypedDict):
    """All topics are searched, as the user says that something was forgotten."""

    type: Literal["remembering"]
    query: str


class RestartedEvent(TypedDict):
    """What was streamed of the reply is thrown away."""

    type: Literal["reply_restarted"]


class EmbeddingEvent(TypedDict):
    """Older messages are embedded anew, with another encoder."""

    type: Literal["embedding"]
    left: int


class ImportedEvent(TypedDict):
    """Messages of an export were recorded."""

    type: Literal["imported"]
    session: str
    done: int
    all: int


class ReceiptEvent(TypedDict):
    """The turn is over."""

    type: Literal["receipt"]
    user: str
    """The message that it answered."""


class EndEvent(TypedDict):
    """Nothing more comes."""

    type: Literal["end"]
    stopped: bool


class ErrorEvent(TypedDict):
    """Something failed."""

    type: Literal["error"]
    error: str


PageEvent = Annotated[
    TextEvent
    | TopicsEvent
    | ReadEvent
    | QuotedEvent
    | SplitEvent
    | SearchingEvent
    | RememberingEvent
    | RestartedEvent
    | EmbeddingEvent
    | ImportedEvent
    | ReceiptEvent
    | EndEvent
    | ErrorEvent,
    Field(discriminator="type"),
]
"""One event of a stream."""

ANSWERS = (
    ShownSession,
    ShownTopic,
    ShownTail,
    ShownMessage,
    ShownTurn,
    ShownReceipt,
    TurnMark,
    Moment,
    PromptMessage,
    IndexState,
    ShownPerson,
    ShownForgotten,
    Replays,
    FoundExport,
    Absence,
    MemoryChange,
    Fact,
)
"""What answers are made of, beside the events of streams."""
