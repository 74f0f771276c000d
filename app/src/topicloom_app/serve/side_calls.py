"""Requests that a client makes for itself: a title, tags, what to ask next.

No client's words are looked for. Such a request quotes the newest messages, and it comes within
seconds or asks in another manner: with other instructions, tools or another model. Words alone
never make a message one. If a person's message is taken for one all the same, the client's next
request contains it again, and it is recorded then.
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
    """True if a client makes a request for itself in a conversation that the session does not know.

    If other chats share the session, a person may quote the newest messages. Then a quote counts
    only within seconds or in another manner. If the session belongs to one chat, a first message
    that comes at once after a reply is no person's edit.

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
    """True if a client makes a request for itself in the place of the next message.

    Such a request comes within seconds, in another manner and without tools. Either it is not
    streamed and the conversation is, or it has no instructions and the conversation has.
    """
    if turn.tools or turn.manner == newest.manner or newest.seconds > _SECONDS:
        return False
    unseen = newest.streamed and not turn.stream
    return unseen or (newest.instructed and not turn.instructions)


def is_side_call_about(turn: TurnRequest, said: str, newest: Newest) -> bool:
    """True if a client makes a request for itself that repeats the newest message and its reply.

    By the protocol, such a reply is to be continued. A person who wants that asks in the same
    manner.

    Args:
        turn: What is asked.
        said: The text of its newest message.
        newest: What was said last in its session.
    """
    again = (said, turn.begun) == (newest.asked, newest.replied)
    other = newest.manner not in ("", turn.manner)
    return again and bool(turn.begun) and other and newest.seconds <= _SECONDS


def was_side_call(turn: TurnRequest, said: str, newest: Newest) -> bool:
    """True if the last message was the client's own: it asked what to search for before this one.

    Such a request quotes the message that the client then sends. It is not streamed, it has another
    manner, and the message follows as soon as the answer is there.

    Args:
        turn: What is asked.
        said: The text of its newest message.
        newest: What was said last in its session.
    """
    prepared = turn.stream and not newest.streamed and newest.manner not in ("", turn.manner)
    return prepared and newest.seconds <= _SECONDS and quotes(newest.asked, said)


def quotes(text: str, *said: str) -> bool:
    """True if a text contains the beginnings of all that was said, and more.

    Only letters and digits count, because clients change the layout of quotes and escape them.
    """
    within, parts = _simplify(text), [_simplify(_first_line(part))[:_QUOTED] for part in said]
    length = sum(map(len, parts))
    return all(part in within for part in parts) and _LEAST <= length < len(within)


def _first_line(text: str) -> str:
    return next((line for line in strip_thoughts(text).splitlines() if _simplify(line)), "")


def _simplify(text: str) -> str:
    return _OTHER.sub("", text).casefold()
