"""Every error topicloom raises on purpose.

```
TopicLoomError
├── ConfigurationError        a setting, model string or folder that cannot be used
│   ├── UnknownModelError     a model string nobody here can open
│   ├── EncryptionError       an encryption key that is missing, or another one
│   └── StorageUnavailableError   a folder or store that cannot be read or written
├── InputError                an input that cannot be used
│   ├── MissingThreadError    a turn without `thread_id`
│   ├── InvalidNameError      a session or topic name that may not become a path
│   ├── NoNewMessageError     a turn without anything new to answer
│   ├── OtherPersonError      a thread of another user or scope, or an unusable name of a user
│   └── NotAConversationError a file that holds no conversation
├── StorageError              stored data that is damaged or incomplete
│   ├── MissingRecordError    a reference that points at nothing
│   └── NewerFormatError      a session that a newer topicloom wrote
├── SessionBusyError          another process or an unfinished turn holds the session
├── ConflictError             another writer's turn ended first, and `on_conflict` is `raise`
├── TransitionError           a step that a topic in its state cannot take
├── UnusableAnswerError       a model's answer without anything that was asked for
└── ReplyError                the main model failed after its retries
    └── LimitReachedError     a daily limit of tokens or money is used up: nobody was asked
```

If a role fails, the turn goes on without its contribution, and the receipt says so:
`UnusableAnswerError` never leaves a turn.

`TopicLoomWarning` warns of something that is possible but probably a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from math import ceil

from topicloom.texts import FilledText


class TopicLoomError(Exception):
    """Root of all errors of this package.

    Its message is a text, or a template with values by their names. Commands can then say it in
    another language: `InputError("there is no session {name!r}", name=name)`.
    """

    def __init__(self, message: str = "", /, **values: object) -> None:
        """Say what is wrong.

        Args:
            message: A sentence, or a template for `str.format` if there are values.
            values: What stands in the template.
        """
        super().__init__(FilledText(message, **values))

    def __str__(self) -> str:
        """The sentence; it still knows its template."""
        text: str = self.args[0]
        return text


class TopicLoomWarning(UserWarning):
    """Something that is possible, but probably not what you meant."""


class ConfigurationError(TopicLoomError, ValueError):
    """A setting, model string or folder that cannot be used."""


class UnknownModelError(ConfigurationError):
    """A model string that names no model topicloom can open."""


class EncryptionError(ConfigurationError):
    """What is stored is encrypted and the key is missing or another, or it is not encrypted yet."""


class StorageUnavailableError(ConfigurationError):
    """A folder or store that cannot be read or written."""


class InputError(TopicLoomError, ValueError):
    """An input from outside the package that cannot be used as it is."""


class MissingThreadError(InputError):
    """A turn was started without a `thread_id`."""


class InvalidNameError(InputError):
    """A name that may not become part of a path."""


class NoNewMessageError(InputError):
    """A turn was started without a new message to answer."""


class OtherPersonError(InputError):
    """A thread belongs to another user or scope, or the name of a user or scope is unusable."""


class NotAConversationError(InputError):
    """A file that does not hold a conversation."""


class StorageError(TopicLoomError):
    """Stored data that is not what was written: it is damaged or incomplete."""


class MissingRecordError(StorageError):
    """A reference into storage that points at nothing."""


class NewerFormatError(StorageError):
    """A session that a newer version wrote, in a format that this one does not know."""


class SessionBusyError(TopicLoomError):
    """Another process holds the session, or a turn of it tries to start another turn of it."""


class ConflictError(TopicLoomError):
    """Another writer's turn ended while this one was running. The messages of both are kept."""


class TransitionError(TopicLoomError):
    """A step that a topic in its state cannot take, such as waking one that was divided."""


class UnusableAnswerError(TopicLoomError):
    """A model's answer that contains nothing that was asked for, however leniently it is read."""


class ReplyError(TopicLoomError):
    """The main model failed after its retries. The user's message is kept."""

    def __init__(
        self,
        message: str,
        /,
        *,
        reason: str = "",
        status: int | None = None,
        retry_after: str = "",
        **values: object,
    ) -> None:
        """Say what failed.

        Args:
            message: The sentence for whoever runs the graph, or a template for it.
            reason: What the model's client or its server said; "" if neither said anything.
            status: The HTTP status that the server answered with; None if there was no answer.
            retry_after: The server's `Retry-After` header as it came; "" if it sent none.
            values: What stands in the template.
        """
        super().__init__(message, **values)
        self.reason, self.status, self.retry_after = reason, status, retry_after

    @property
    def final(self) -> bool:
        """True if the server refuses the request itself, so that asking again cannot help."""
        return self.status in _FINAL


LIMITED: Mapping[str, str] = {
    "session": "this session",
    "user": "this user",
    "account": "this account",
    "process": "this process",
}
"""What a daily limit is for, in words, by its scope."""


class LimitReachedError(ReplyError):
    """A daily limit is used up, so that the main model was not asked. The user's message is kept.

    Background work raises it too, as all roles rest before that.
    """

    def __init__(
        self, scope: str, limit: float, unit: str, seconds: float, *, rests: bool = False
    ) -> None:
        """Say which limit.

        Args:
            scope: What it is for: `session`, `user`, `account` or `process`.
            limit: The limit of a day.
            unit: `tokens` or `money`.
            seconds: How long until it begins anew.
            rests: True for a role that rests while replies are still given.
        """
        self.scope, self.limit, self.unit = scope, limit, unit
        whose = FilledText(LIMITED[scope])
        rest = FilledText("the daily limit for {whose} is nearly used up", whose=whose)
        super().__init__(
            rest
            if rests
            else "the daily limit for {whose} is used up ({limit} {unit}). It begins anew at"
            " midnight, in {hours} hours. Your message is kept: ask for the reply then",
            reason=rest if rests else "the daily limit is used up",
            status=429,
            retry_after=str(ceil(seconds)),
            whose=whose,
            limit=f"{limit:,.10g}",
            unit=FilledText(unit),
            hours=ceil(seconds / 3_600),
        )

    @property
    def final(self) -> bool:
        """True: asking again before midnight cannot help."""
        return True


_FINAL = frozenset({400, 401, 403, 404, 413, 422})
"""Statuses that say what is wrong with a request, not with the moment."""


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that asks whether a known name was meant; "" if none is alike."""
    alike = get_close_matches(name.lower(), list(known), n=1, cutoff=0.7)
    return FilledText("; did you mean {name!r}?", name=alike[0]) if alike else ""
