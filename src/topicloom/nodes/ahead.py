"""What encoders are given before a turn waits for it: the newest messages."""

from __future__ import annotations

from collections.abc import Sequence

from topicloom.background import defer_exit
from topicloom.nodes.deps import Deps
from topicloom.search.embedder import CachedEmbedder
from topicloom.state.stored_message import StoredMessage

_AHEAD = 16
"""Turns whose messages may wait to be embedded ahead; those of more are left to later turns."""


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
