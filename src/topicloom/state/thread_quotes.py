"""What a note quotes of a user's other threads: where it is, never what it says."""

from __future__ import annotations

from pydantic import BaseModel, Field


class ThreadQuote(BaseModel, frozen=True):
    """A message of another thread of the user, or a fact of the user."""

    thread: str
    """The thread that it is from."""
    message: str = ""
    """Short id of the message there; "" for a fact."""
    topic: str = ""
    """Id of its topic there at the time; "" for a message that was in none, and for a fact."""
    fact: str = ""
    """Key of the fact."""
    since: str = ""
    """When the fact began to hold, by which its spans are told apart."""
    day: str = ""
    """The day on which it was said, or from which on the fact holds."""
    text: str = Field(default="", exclude=True)
    """What it says now, where a prompt is made of it; kept nowhere."""
