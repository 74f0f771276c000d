"""The channels of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.messages import AnyMessage, MessageLikeRepresentation
from langgraph.graph.message import add_messages
from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema
from typing_extensions import TypedDict

from topicloom.state.changes import TopicChange
from topicloom.state.chats import ImportedChat
from topicloom.state.zones import Timezone


def append_or_reset(
    old: list[dict[str, Any]] | None, new: list[dict[str, Any]] | None
) -> list[dict[str, Any]]:
    """Reducer of the updates of parallel nodes: appends, and starts afresh on None."""
    return [] if new is None else [*(old or ()), *new]


class SessionState(TypedDict, total=False):
    """State of the session graph. All but `messages` is JSON-native and of bounded size."""

    messages: Annotated[list[AnyMessage], add_messages]
    """The newest messages of the conversation; older ones are in storage."""
    session: dict[str, Any]
    """The session's core, a dumped `Session`."""
    turn: dict[str, Any]
    """The turn's working data, a dumped `Turn`."""
    readings: Annotated[list[dict[str, Any]], append_or_reset]
    """Dumped `Reading`s of this turn."""
    calls: Annotated[list[dict[str, Any]], append_or_reset]
    """Dumped `Call`s of this turn."""


if TYPE_CHECKING:
    GivenMessages = Sequence[MessageLikeRepresentation]
else:
    GivenMessages = list[AnyMessage]


class SessionInput(TypedDict):
    """Input of an application."""

    messages: Annotated[GivenMessages, add_messages]
    """The new message, or several; older ones need not be passed again."""


class ReadTask(TypedDict):
    """Payload of one call of a reader."""

    topics: tuple[str, ...]
    """Ids of the topics to read whole, together."""
    others: bool
    """True to read what the index finds in all topics but these instead."""
    session: dict[str, Any]
    """The part of the session that a reader needs, a dumped `Session`."""
    lookup: dict[str, Any]
    """What to look for, a dumped `Lookup`."""
    search: int
    """Number of the search that it is read for; 0 if there was none."""


class TurnOptions(BaseModel):
    """Passed as `graph.invoke(..., context=TurnOptions(...))`, or as a dict.

    Other keys of a dict are passed over: clients put their own there, such as `thread_id`.
    """

    model_config = ConfigDict(frozen=True, use_attribute_docstrings=True)

    answer: bool = True
    """True to answer a new user message; False only records it."""
    keep_messages: int | None = None
    """Before answering, move everything into topics and keep this many messages in view. None
    to split only when the window fills."""
    changes: SkipJsonSchema[tuple[TopicChange, ...]] = ()
    """Changes to topics that a review or a person wants. With these a turn needs no message."""
    regroup: SkipJsonSchema[bool] = False
    """True to put right what is filed wrong in topics, as reviews do. Such a turn needs no message
    either."""
    chats: SkipJsonSchema[tuple[ImportedChat, ...]] = ()
    """The conversations of other chats that this turn's messages were said in; an import says so.
    With `keep_messages=0` the newest round moves into a topic as well."""
    model: str | None = None
    """The strong model of this turn, such as `openai:gpt-5`, in the place of the graph's own."""
    cheap_model: str | None = None
    """The cheap model, likewise."""
    window: int | None = Field(default=None, ge=1_000)
    """The main window of this turn, in tokens."""
    user_id: str = ""
    """Who is talking; "" leaves the thread to whom it belongs. What is known of a user is known in
    all threads of that user. A thread belongs to the first user that a turn of it names."""
    scope: str = ""
    """The scope of the user that the thread is in, such as a project or a customer: only threads in
    it know what was said there. "" for none."""
    account: str = ""
    """Whose daily limit its calls count to besides the user's, such as a customer or an API key. ""
    leaves the thread to the account that it counted to last."""
    timezone: Timezone = ""
    """Where the user is, such as `Europe/Paris`: days are those of its clocks, from this turn on.
    "" for where the thread was last, or where its user is known to be (`PersonMemory`)."""
    usual_timezone: Timezone = ""
    """Where the user is if neither the thread nor what is kept of its user says it; "" for where
    the setting says."""
    instructions: str = ""
    """A system prompt for this turn, behind that of the graph."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tools that the caller runs itself, as OpenAI writes them. A call of one ends the turn; what
    came of it is the message of the next."""

    begun: SkipJsonSchema[str] = ""
    """The beginning of the reply, which the caller has already. The model writes what follows, and
    that alone is streamed; both together are kept."""
    reply_tokens: int | None = Field(default=None, ge=1)
    """Tokens of the reply at most; None for what the settings say."""
    stop: tuple[str, ...] = ()
    """Texts before which the reply ends."""
    reply_form: SkipJsonSchema[dict[str, Any]] = {}
    """The form of the reply as OpenAI's protocol asks for it: `tool_choice`, `response_format`. The
    model searches no topics by itself then."""

    @property
    def changes_topics(self) -> bool:
        """True for a turn that changes topics, and may bring no message."""
        return bool(self.changes) or self.regroup

    @property
    def tool_names(self) -> frozenset[str]:
        """The names of these tools."""
        return frozenset(tool["function"]["name"] for tool in self.tools)
