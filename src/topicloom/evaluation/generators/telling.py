"""What is told, as a chat: each text a message of the user's, each with a short reply."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from topicloom.evaluation.conversations import RecordedMessage

_REPLIES = ("Noted.", "All right, I have that.", "Understood.", "Got it, go on.")


def told(texts: Iterable[str]) -> Iterator[RecordedMessage]:
    """User messages `u1`, `u2` ... with these texts, and the replies `a1`, `a2` ... to them."""
    for number, text in enumerate(texts, start=1):
        yield RecordedMessage(id=f"u{number}", role="user", text=text)
        reply = _REPLIES[number % len(_REPLIES)]
        yield RecordedMessage(id=f"a{number}", role="assistant", text=reply)
