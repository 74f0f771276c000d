"""Every error topicloom raises on purpose.

```
TopicLoomError
├── ConfigurationError        a setting, model string or folder that cannot be used
│   ├── UnknownModelError     a model string nobody here can open
│   └── StorageUnavailableError   a folder or store that cannot be read or written
├── InputError                what came from outside is not usable
│   ├── MissingThreadError    a turn without `thread_id`
│   ├── InvalidNameError      a session or topic name that may not become a path
│   ├── NoNewMessageError     a turn without anything new to answer
│   ├── OtherPersonError      a thread of another user or scope, or a user who cannot be named so
│   └── NotAConversationError a file that holds no conversation
├── StorageError              stored data that cannot be what was written
│   ├── MissingRecordError    a reference that points at nothing
│   └── NewerFormatError      a session that a newer topicloom wrote
├── BrokenInvariantError      a session that lost, doubled or changed a message
├── SessionBusyError          another process holds the session's lock, or the turn itself does
├── ConflictError             another writer's turn ended first, and `on_conflict` is `raise`
├── TransitionError           a step that the life of a topic does not have
├── UnusableAnswerError       a model's answer that holds nothing of what was asked for
└── ReplyError                the main model failed after its retries
```

A role's failure costs that role's contribution, never the turn, and stands in the receipt:
`UnusableAnswerError` never leaves a turn.

What is most likely not meant, but can be done, is warned of: `TopicLoomWarning`.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class TopicLoomError(Exception):
    """Root of all errors of this package."""


class TopicLoomWarning(UserWarning):
    """Something that can be done, but is most likely not what was meant."""


class ConfigurationError(TopicLoomError, ValueError):
    """A setting, model string or folder that cannot be used."""


class UnknownModelError(ConfigurationError):
    """A model string that names no model topicloom can open."""


class StorageUnavailableError(ConfigurationError):
    """A folder or store that cannot be read or written."""


class InputError(TopicLoomError, ValueError):
    """Something that came from outside and cannot be used as it is."""


class MissingThreadError(InputError):
    """A turn was started without a `thread_id`."""


class InvalidNameError(InputError):
    """A name from outside that may not become a path."""


class NoNewMessageError(InputError):
    """A turn was started with nothing new to answer."""


class OtherPersonError(InputError):
    """A thread belongs to another user or scope, or a name of one cannot be used."""


class NotAConversationError(InputError):
    """A file that does not hold a conversation."""


class StorageError(TopicLoomError):
    """Stored data that cannot be what was written."""


class MissingRecordError(StorageError):
    """A reference into storage that points at nothing."""


class NewerFormatError(StorageError):
    """A session that a newer version wrote, in a format that this one does not know."""


class BrokenInvariantError(TopicLoomError):
    """A session of which a message is lost, in two places, or not what was said."""


class SessionBusyError(TopicLoomError):
    """Another process holds the session, or a turn of it calls for another."""


class ConflictError(TopicLoomError):
    """Another writer's turn ended while this one went on; what was said is kept nevertheless."""


class TransitionError(TopicLoomError):
    """A step that the life of a topic does not have, such as waking one that was divided."""


class UnusableAnswerError(TopicLoomError):
    """A model's answer that holds nothing of what was asked for, even read with good will."""


class ReplyError(TopicLoomError):
    """The main model failed after its retries; nothing the user said is lost."""

    def __init__(
        self, message: str, *, reason: str = "", status: int | None = None, retry_after: str = ""
    ) -> None:
        """Say what failed.

        Args:
            message: The sentence for whoever runs the graph.
            reason: What the model's client or its server said; "" if neither said anything.
            status: The HTTP status that the server answered with; None if there was no answer.
            retry_after: The server's `Retry-After` header as it came; "" if it sent none.
        """
        super().__init__(message)
        self.reason, self.status, self.retry_after = reason, status, retry_after

    @property
    def final(self) -> bool:
        """True if the server refuses the request itself, so that asking again cannot help."""
        return self.status in _FINAL


_FINAL = frozenset({400, 401, 403, 404, 413, 422})
"""Statuses that say what is wrong with a request, not with the moment."""


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that asks whether a known name was meant; "" if none is alike."""
    alike = get_close_matches(name.lower(), list(known), n=1, cutoff=0.7)
    return f"; did you mean {alike[0]!r}?" if alike else ""
