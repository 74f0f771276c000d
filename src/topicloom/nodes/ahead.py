"""What encoders are given before a turn waits for it: its message, and the newest messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import HumanMessage, convert_to_messages

from topicloom.background import defer_exit
from topicloom.nodes.deps import Deps
from topicloom.search.embedder import CachedEmbedder
from topicloom.state.stored_message import StoredMessage, to_stored_message

_AHEAD = 16
"""Turns whose messages may wait to be embedded ahead; those of more are left to later turns."""


def embed_given(deps: Deps, data: object) -> None:
    """Begin to embed the newest message of an input, while LangGraph prepares the run of it.

    Not in the first turn of a process, when it is not known yet whether the encoders are needed.
    """
    given = data.get("messages") if isinstance(data, Mapping) else None
    newest: Any = given[-1:] if isinstance(given, list | tuple) else [given]

    def work() -> None:
        for message in convert_to_messages(newest):
            if isinstance(message, HumanMessage):
                with defer_exit():
                    deps.adsorber.expect([to_stored_message(message, seq=1, time="")])

    if given and deps.ahead.begun and deps.ahead.waiting < _AHEAD:
        deps.ahead.submit(work)


def embed_written(
    deps: Deps, heard: Sequence[StoredMessage], leaving: Sequence[StoredMessage]
) -> None:
    """Begin to embed, while the user reads, what later turns would wait for.

    Args:
        deps: Has the encoders.
        heard: Messages that the next one is judged by.
        leaving: Messages whose lines are needed when they leave the view; none of a session that
            was never split, as it may end before.
    """
    remembers = isinstance(deps.embedder, CachedEmbedder)

    def work() -> None:
        with defer_exit():
            deps.adsorber.expect(heard)
        for message in leaving if remembers else ():
            with defer_exit():
                deps.embedder.embed([message.line])

    if deps.ahead.waiting < _AHEAD:
        deps.ahead.submit(work)
