"""Daily limits as commands are given them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from topicloom import DailyLimits, InputError

_SCOPES = {"session": "session", "user": "user", "key": "account", "process": "process"}
"""What a limit is for, as the command line and as the settings call it."""


def change_limits(limits: DailyLimits, given: Sequence[str]) -> DailyLimits:
    """The limits of the settings, with others in their place, such as `user=200000`.

    Raises:
        InputError: One cannot be used.
    """
    for text in given:
        named, _, amount = text.rpartition("=")
        scope, _, key = named.partition(":")
        try:
            if scope not in _SCOPES or (key and scope != "key"):
                raise ValueError
            one = (
                {"accounts": {**limits.accounts, key: amount}} if key else {_SCOPES[scope]: amount}
            )
            limits = DailyLimits.model_validate({**limits.model_dump(), **one})
        except (ValueError, ValidationError):
            raise InputError(
                "the limit {text!r} cannot be used: write session=N, user=N, key=N, key:NAME=N or"
                " process=N, with N above 0",
                text=text,
            ) from None
    return limits
