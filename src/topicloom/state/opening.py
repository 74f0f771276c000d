"""The beginning of a turn: what comes in, what is asked, and who waits for an answer. Nothing is
read or written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from topicloom.state.channels import TurnOptions
from topicloom.state.chats import list_titles, mark_chats
from topicloom.state.identity import find_new_messages
from topicloom.state.language import LanguageChoice, choose_language
from topicloom.state.rounds import LOOK_BACK
from topicloom.state.session import Session, Turn
from topicloom.state.stored_message import StoredMessage, get_text, number_messages
from topicloom.state.topics import Topic


@dataclass(frozen=True, slots=True)
class Arrival:
    """What comes in with a turn, and what is wanted."""

    messages: Sequence[StoredMessage]
    """The new messages, numbered; not stored yet."""
    asked: StoredMessage | None
    """The newest message of the user, new or not."""
    sought: str
    """The newest message of all, as it is searched for."""
    query: str
    """What is searched for."""
    answer: bool
    """True if a reply is due."""

    @property
    def asks_anew(self) -> bool:
        """True if what is asked was not searched for before: it is new, or its reply failed."""
        return self.answer and (self.asked in self.messages or not self.messages)

    def rewrite(self, query: str) -> Arrival:
        """The same with the query in other words, which are kept with the message."""
        if self.asked is None or query == self.query:
            return replace(self, query=query)
        rewritten = self.asked.model_copy(update={"query": query})
        messages = [rewritten if m is self.asked else m for m in self.messages]
        return replace(self, messages=messages, query=query)


def take_in(
    session: Session,
    begun: Turn,
    channel: Sequence[AnyMessage],
    recent: Sequence[StoredMessage],
    options: TurnOptions,
    language: LanguageChoice,
    now: datetime,
) -> tuple[Session, Arrival]:
    """What comes in with a turn, and the session with what that says of it.

    Args:
        session: The session as it was.
        begun: What was reconciled of the turn, if anything was.
        channel: The `messages` channel.
        recent: The newest messages that are stored.
        options: Those of the turn.
        language: The language that is set, for the first turn.
        now: The time that new messages get.

    Raises:
        NoNewMessageError: There is nothing new, and the turn needs a message.
    """
    silent = begun.silent or bool(options.changes_topics and recent)
    fresh = find_new_messages(channel, recent, answer=options.answer, silent=silent)
    numbered = number_messages(fresh, session.count + 1, now.isoformat(timespec="seconds"))
    messages = mark_chats(numbered, options.chats)
    update: dict[str, Any] = {"titles": session.titles | list_titles(messages, options.chats)}
    if session.turn == 0:
        update["language"] = choose_language(language, [get_text(m) for m in channel])
    if not recent:  # the channel shows all that there is
        update["shown"] = 1
    talk = [*recent, *messages]
    asked = next((m for m in reversed(talk) if m.role == "user"), None)
    newest = talk[-1] if talk else None
    said = newest.message if newest else None
    # The result of a tool is answered too: of a caller's own tool, or of another agent's.
    due = isinstance(said, HumanMessage) or (isinstance(said, ToolMessage) and asked)
    answer = bool(due) and options.answer
    sought = newest.as_query if newest else ""
    query = asked.as_query if answer and asked else sought
    arrival = Arrival(messages, asked, sought, query, answer)
    return session.model_copy(update=update), arrival


def begin_turn(
    session: Session,
    arrival: Arrival,
    talk: Sequence[StoredMessage],
    now: datetime,
    *,
    continues: float,
    forgot: bool,
    returns: Topic | None,
    events: Sequence[str],
) -> Turn:
    """The turn of what came in.

    Args:
        session: The session before it is stored.
        arrival: What came in.
        talk: The newest messages and those that came in, marked where a topic begins.
        now: When the turn began.
        continues: Probability that the user's message goes on with the talk before it.
        forgot: True if the newest message says that something was forgotten.
        returns: The topic that the user's message returns to, if it does.
        events: What happened so far, for the receipt.
    """
    asked, answer = arrival.asked, arrival.answer
    stored = talk[-max(1, len(arrival.messages)) :]
    first, last = (stored[0].seq, stored[-1].seq) if stored else (session.count, session.count)
    user = asked.seq if answer and asked else last
    return Turn(
        number=session.turn + 1,
        first=first,
        user=user,
        query=arrival.query,
        answer=answer,
        said=bool(arrival.messages),
        amnesia=answer and user >= first and forgot,
        since=_find_beginning(talk, user),
        continues=round(continues, 4) if user >= first else 0.0,
        started=now.isoformat(),
        events=(*events, *([f"returns to {returns.label}"] if returns else ())),
    )


def _find_beginning(talk: Sequence[StoredMessage], user: int) -> int:
    """Number of the message with which the talk before a message began; 0 if there is none."""
    before = [m for m in talk if m.seq < user][-LOOK_BACK:]
    opening = (m.seq for m in reversed(before) if m.opens)
    return next(opening, before[0].seq if before else 0)
