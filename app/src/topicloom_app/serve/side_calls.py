"""Questions that a client asks for itself: a title, tags, what to ask next.

They are known by how they relate to what was just said, never by one client's words: they quote
the newest messages, and come in the same seconds or are asked in another manner. A message that a
person sent is never taken for one by its words alone; and if it should be, the client's next
request shows it again, and it is recorded then.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from topicloom_app.serve.sent_messages import strip_thoughts
from topicloom_app.serve.turns import TurnRequest

_SECONDS = 5.0
"""Seconds behind a reply in which no person can have read it and quoted it."""
_AT_ONCE = 2.0
"""Seconds behind a reply in which no person can have changed what they said first."""
_QUOTED = 60
"""Letters of a message's first line by which a quote of it is known: clients shorten the rest."""
_LEAST = 12
"""Letters that the quotes have at least, all together: anything may hold a few."""
_OTHER = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Newest:
    """What was said last in a session."""

    asked: str
    """The user's message."""
    replied: str
    """The reply to it."""
    manner: str
    """`TurnRequest.manner` of the turn."""
    streamed: bool
    """`TurnRequest.stream` of the turn."""
    instructed: bool
    """True if the turn had instructions."""
    seconds: float
    """Since its end; below 0 if it had not ended when the question came."""


def is_side_call(turn: TurnRequest, said: str, newest: Newest) -> bool:
    """True if a client asks for itself in a conversation that the session does not know.

    In a session that other chats come into as well, a person may quote the newest messages: that
    is taken for a client's question only in the same seconds, or where the manner is another. In a
    session of one chat, a first message that comes at once behind a reply is no person's edit.

    Args:
        turn: What is asked.
        said: The text of its newest message.
        newest: What was said last in its session.
    """
    text = f"{turn.instructions}\n{said}"
    other = newest.manner not in ("", turn.manner)
    soon = newest.seconds <= _SECONDS
    if newest.replied and quotes(text, newest.asked, newest.replied):
        return soon or other or turn.complete
    if other and soon and quotes(text, newest.replied):
        return True
    if _simplify(said) in _simplify(newest.asked):
        return False  # the one before was the client's: it asks what to look for, too
    if turn.complete and len(turn.messages) == 1 and newest.replied and newest.seconds <= _AT_ONCE:
        return True
    early = newest.seconds < 0
    return quotes(text, newest.asked) and other and (early or (soon and turn.complete))


def is_side_call_behind(turn: TurnRequest, newest: Newest) -> bool:
    """True if a client asks for itself behind the whole conversation, as the next message would be.

    It comes in the same seconds, in another manner and without tools, and it is not streamed or
    has no instructions, where the talk is or has.
    """
    if turn.tools or turn.manner == newest.manner or newest.seconds > _SECONDS:
        return False
    unseen = newest.streamed and not turn.stream
    return unseen or (newest.instructed and not turn.instructions)


def is_side_call_about(turn: TurnRequest, said: str, newest: Newest) -> bool:
    """True if a client asks for itself by sending the newest message and its whole reply again.

    The protocol has it that such a reply is continued. A person has that done in the same manner.

    Args:
        turn: What is asked.
        said: The text of its newest message.
        newest: What was said last in its session.
    """
    again = (said, turn.begun) == (newest.asked, newest.replied)
    other = newest.manner not in ("", turn.manner)
    return again and bool(turn.begun) and other and newest.seconds <= _SECONDS


def was_side_call(turn: TurnRequest, said: str, newest: Newest) -> bool:
    """True if what was said last was no person's, but a client's question about what comes now.

    A client may ask what to look for before it sends a message, which it quotes. It does not
    stream that, asks in another manner, and sends the message as soon as it has the answer.

    Args:
        turn: What is asked.
        said: The text of its newest message.
        newest: What was said last in its session.
    """
    prepared = turn.stream and not newest.streamed and newest.manner not in ("", turn.manner)
    return prepared and newest.seconds <= _SECONDS and quotes(newest.asked, said)


def quotes(text: str, *said: str) -> bool:
    """True if a text holds the beginnings of all of what was said, and more.

    Letters and digits count alone: clients lay quotes out anew, and escape them.
    """
    within, parts = _simplify(text), [_simplify(_first_line(part))[:_QUOTED] for part in said]
    length = sum(map(len, parts))
    return all(part in within for part in parts) and _LEAST <= length < len(within)


def _first_line(text: str) -> str:
    return next((line for line in strip_thoughts(text).splitlines() if _simplify(line)), "")


def _simplify(text: str) -> str:
    return _OTHER.sub("", text).casefold()
